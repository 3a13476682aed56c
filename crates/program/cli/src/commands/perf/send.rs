//! `skyhaul perf send`: the sending end.

mod blocks;
mod course;
mod plan;
mod progress;
mod run;
pub mod share;
mod tally;

use super::LaneFlags;
use super::keys::Keys;
use super::line::LineFlags;
use super::load::{Load, LoadArguments};
use super::one_way;
use super::report::{LossDetail, Report};
use crate::commands::far::{self, DefaultPort};
use crate::commands::ip::{IpVersion, any_port};
use crate::commands::knock;
use crate::commands::one_way::line::LossArguments;
use crate::commands::signals;
use plan::{AddressPair, PathTransport, SendPlan};
use run::PlanRunner;
use share::{ClassLoad, Shares};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::{Clock, TcpConfig};
use skyhaul_quic::{EndpointConfig, Fingerprint};
use skyhaul_units::Duration;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul perf send`.
#[derive(clap::Args)]
#[command(after_help = "\
        A line each second goes to standard error, and the result at the end to standard output. \
        Delivered means acknowledged by the far end. docs/explanation/performance.md explains \
        every figure.

Example:
  skyhaul perf send --to 192.0.2.1:4710 --duration 30s --key station.key --peer SHA256:…
  skyhaul perf send --to 127.0.0.1:4710 --cc line --rate 93mbit --insecure-test --json
  skyhaul perf send --to 192.0.2.1:4710 --class live:guarantee=10mbit,from=5s --class bulk \
  --insecure-test
  skyhaul perf send --to 192.0.2.1:4720 --one-way pass.key --rate 20mbit --loss 5% --burst 8")]
pub struct Send {
    /// The serving end: an address or a name, and a port; or a node of the address book, `NAME` or
    /// `NAME:PORT`, of which the first address is used.
    #[arg(long, value_name = "ADDR", required_unless_present = "path")]
    to: Option<String>,
    /// A path from a local address (port 0: any) to a remote one, instead of --to; can be repeated.
    #[arg(long, value_name = "LOCAL=REMOTE", conflicts_with = "to")]
    path: Vec<AddressPair>,
    /// The transport of the paths: `udp`, `tcp`, or `auto`: UDP, and TCP if UDP brings no answer
    /// within 3 s.
    #[arg(long, value_name = "KIND", default_value = "udp")]
    transport: PathTransport,
    #[command(flatten)]
    load: LoadArguments,
    /// Adds a separate sender under this class, such as
    /// `science:guarantee=30mbit,priority=3,from=10s,until=20s`. Several senders share the line.
    #[arg(long, value_name = "NAME:KEY=VALUE,…",
        conflicts_with_all = ["bytes", "offer", "one_way"])]
    class: Vec<ClassLoad>,
    /// Reports where datagrams were lost.
    #[arg(long)]
    loss_report: bool,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Sends without a return path, sealed with this key (`skyhaul keygen --one-way`); needs
    /// --rate.
    #[arg(long, value_name = "KEYFILE", conflicts_with_all =
        ["path", "key", "peer", "insecure_test", "loss_report", "lanes"])]
    one_way: Option<PathBuf>,
    #[command(flatten)]
    losses: LossArguments,
    #[command(flatten)]
    lanes: LaneFlags,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// Sends, and prints what arrived.
///
/// # Errors
/// The addresses, keys or sizes cannot be used; the other end is not there, refuses or goes away;
/// the run was interrupted.
pub fn run(command: &Send, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(key) = &command.one_way {
        return one_way::send(&command.one_way_run(key)?, out);
    }
    let report = measure(&command.setup()?)?;
    if command.json {
        return report.write_json(out);
    }
    let losses = if command.loss_report { LossDetail::ByPlace } else { LossDetail::Total };
    report.write_text(losses, out)
}

/// A run whose addresses and sizes have been looked at.
struct Setup<'a> {
    pairs: Vec<AddressPair>,
    /// The far end's keys, if it is a node of the address book.
    known: Vec<Fingerprint>,
    load: Load,
    shares: Option<Shares>,
    transport: PathTransport,
    lanes: &'a LaneFlags,
    line: &'a LineFlags,
    keys: &'a Keys,
    /// After the last block.
    patience: Option<Duration>,
}

/// Sends to the serving end `to` for `duration`, with the defaults of `skyhaul perf send`
/// otherwise, and returns the report. Blocks that are not acknowledged some seconds after the last
/// one are not awaited: then the report has what this end knows.
///
/// # Errors
/// As [`run()`].
pub fn short(
    to: &str,
    duration: Duration,
    line: &LineFlags,
    keys: &Keys,
) -> Result<Report, Failure> {
    let (pair, known) = found(to)?;
    let setup = Setup {
        pairs: vec![pair],
        known,
        load: Load::lasting(duration),
        shares: None,
        transport: PathTransport::Udp,
        lanes: &LaneFlags { lanes: None },
        line,
        keys,
        patience: Some(PATIENCE_SHORT),
    };
    measure(&setup)
}

/// Sends, and returns the report.
fn measure(setup: &Setup<'_>) -> Result<Report, Failure> {
    let accepted = setup.keys.of_far(&setup.known, setup.pairs.iter().map(|pair| pair.remote))?;
    if accepted.peers.len() > 1 && setup.known.is_empty() {
        return Err(Failure::new(Exit::Usage, "a sender connects to one node", "give --peer once"));
    }
    let first = setup.pairs[0].remote;
    let peer = knock::shown_key(&accepted, setup.line.path(IpVersion::of(first))?, first)?;
    let clock = Clock::start();
    let mut configs = Vec::new();
    for pair in &setup.pairs {
        let path = setup.line.path(IpVersion::of(pair.remote))?;
        let config = EndpointConfig::new(accepted.own.clone(), path, clock.std_start());
        configs.push((super::bind(pair.local)?, config));
    }
    let mut driver = super::driver(configs, setup.lanes, clock)?;
    let bound = super::addresses(&driver);
    let over_udp = bound.len();
    for pair in setup.pairs.iter().filter(|_| setup.transport != PathTransport::Udp) {
        let udp_payload = setup.line.path(IpVersion::of(pair.remote))?.udp_payload;
        let local = Some(pair.local.ip()).filter(|local| !local.is_unspecified());
        let own = TcpConfig::new(accepted.own.clone());
        driver.add_endpoint(super::over_tcp(TcpConfig { local, udp_payload, ..own })?);
    }
    let paths =
        setup.pairs.iter().zip(bound).map(|(pair, local)| AddressPair { local, ..*pair }).collect();
    let control =
        setup.line.control(IpVersion::largest(setup.pairs.iter().map(|pair| pair.remote)))?;
    let shares = setup.shares.clone();
    let Setup { load, transport, patience, .. } = *setup;
    let plan = SendPlan { paths, over_udp, transport, peer, load, control, shares, patience };
    let stop = signals::stop_flag()?;
    let inodes = super::inodes(&driver);
    let mut sender = PlanRunner::new(plan, clock, &stop);
    driver.run(&mut sender, &stop).map_err(|source| {
        Failure::io("a socket failed", "this host", "check that its network is up", source)
    })?;
    let mut report = sender.finish()?;
    report.losses.send_refused = driver.send_errors();
    report.losses.send_socket = super::socket_drops(&inodes);
    Ok(report)
}

impl Send {
    fn setup(&self) -> Result<Setup<'_>, Failure> {
        let (pairs, known) = self.connections()?;
        Ok(Setup {
            pairs,
            known,
            load: self.load.load()?,
            shares: Shares::of(&self.class)?,
            transport: self.transport,
            lanes: &self.lanes,
            line: &self.line,
            keys: &self.keys,
            patience: None,
        })
    }

    fn one_way_run<'a>(&'a self, key: &'a Path) -> Result<one_way::OneWayRun<'a>, Failure> {
        Ok(one_way::OneWayRun {
            key,
            to: self.to.as_deref().unwrap_or_default(),
            load: self.load.load()?,
            line: self.line.one_way()?,
            losses: &self.losses,
            json: self.json,
        })
    }

    /// Both ends of each connection: as many with the same addresses as there are lanes.
    fn connections(&self) -> Result<(Vec<AddressPair>, Vec<Fingerprint>), Failure> {
        let (pairs, known) = self.addresses()?;
        let lanes = self.lanes.count();
        if self.transport == PathTransport::Tcp && self.lanes.lanes.is_some() {
            let what = "lanes need UDP";
            return Err(Failure::new(Exit::Usage, what, "omit --lanes, or --transport tcp"));
        }
        if let Some(pair) = pairs.iter().find(|pair| lanes > 1 && pair.local.port() != 0) {
            let what = format!("{lanes} lanes cannot share the local port {}", pair.local.port());
            return Err(Failure::new(
                Exit::Usage,
                &what,
                "give port 0: each lane takes a free one",
            ));
        }
        let each = |pair| core::iter::repeat_n(pair, lanes);
        Ok((pairs.into_iter().flat_map(each).collect(), known))
    }

    fn addresses(&self) -> Result<(Vec<AddressPair>, Vec<Fingerprint>), Failure> {
        if !self.path.is_empty() {
            return Ok((self.path.clone(), Vec::new()));
        }
        let (pair, known) = found(self.to.as_deref().unwrap_or_default())?;
        Ok((vec![pair], known))
    }
}

/// From any address of this host to `to`, which may be a node of the address book.
fn found(to: &str) -> Result<(AddressPair, Vec<Fingerprint>), Failure> {
    let place = far::find(to, DefaultPort::None { example: "192.0.2.1:4710" })?;
    let remote = place.addresses[0];
    Ok((AddressPair { local: any_port(remote), remote }, place.keys))
}

/// By then a queue of several seconds has drained, and lost symbols have been recovered.
const PATIENCE_SHORT: Duration = Duration::from_secs(8);
