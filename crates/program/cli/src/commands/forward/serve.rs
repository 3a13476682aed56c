//! `skyhaul forward serve`: the end that connects to targets.

use super::file;
use super::notices::Notices;
use crate::commands::ip::IpVersion;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::perf::{self, LaneFlags};
use crate::commands::signals;
use skyhaul_exit::Failure;
use skyhaul_forward::Allow;
use skyhaul_forward_io::Setup;
use skyhaul_net::{AnyEndpoint, Clock};
use skyhaul_quic::EndpointConfig;
use skyhaul_transport::ClassesConfig;
use skyhaul_units::Duration;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The arguments of `skyhaul forward serve`.
#[derive(clap::Args)]
#[command(after_help = "\
        Only what --allow names is permitted; this includes addresses of this host.

Example:
  skyhaul forward serve --bind 0.0.0.0:4730 --key there.key --peer SHA256:… --allow \
  10.0.0.0/8:6000-6010
  skyhaul forward serve --bind 127.0.0.1:4730 --insecure-test --allow 127.0.0.1:8000")]
pub struct Serve {
    /// The address to listen at; several can be given.
    #[arg(long, value_name = "ADDR", required = true, num_args = 1..)]
    bind: Vec<SocketAddr>,
    /// Destinations that this node connects to for other nodes: addresses, networks or a name, and
    /// ports. Put `udp:` before it for datagrams; can be repeated.
    #[arg(long, value_name = "NET:PORTS", num_args = 1..)]
    allow: Vec<Allow>,
    /// Where this node listens for other nodes (-R): addresses or networks and ports, or a socket
    /// file.
    #[arg(long, value_name = "NET:PORTS", num_args = 1..)]
    allow_listen: Vec<Allow>,
    /// A file with further rules (`allow`, `allow_listen`) and with the classes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "forward")]
    name: String,
    /// Prints the amount of forwarded data at this interval.
    #[arg(long, value_name = "DURATION")]
    stats: Option<Duration>,
    /// Prints events as lines of JSON to standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// Serves until interrupted.
///
/// # Errors
/// The address, the keys or the rules cannot be used.
pub fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    let accepted = command.keys.of_server(command.bind.iter().copied())?;
    let setup = command.setup()?;
    super::raise_descriptors();
    let clock = Clock::start();
    let mut configs = Vec::new();
    for address in &command.bind {
        let path = command.line.path(IpVersion::of(*address))?;
        let config = EndpointConfig {
            trusted: accepted.peers.iter().copied().collect(),
            listen: true,
            ..EndpointConfig::new(accepted.own.clone(), path, clock.std_start())
        };
        configs.push((perf::bind(*address)?, config));
    }
    let mut driver = perf::driver(configs, &LaneFlags::default(), clock)?;
    let stop = signals::stop_flag()?;
    let notices = Notices::new(command.json.into(), stop.clone());
    let allows_none = setup.allow.is_empty() && setup.allow_listen.is_empty();
    let forwarder = super::forwarder(setup, driver.waker(), &notices)?;
    if !command.json {
        let bound = driver
            .endpoints()
            .filter_map(AnyEndpoint::local_addr)
            .map(|address| address.to_string());
        writeln!(out, "listening on {}", bound.collect::<Vec<_>>().join(" "))?;
        if allows_none {
            writeln!(out, "no target is allowed: give --allow")?;
        }
        out.flush()?;
    }
    super::drive(&mut driver, forwarder, &notices, &stop)
}

impl Serve {
    fn setup(&self) -> Result<Setup, Failure> {
        let (classes, mut allow, mut allow_listen) = match &self.config {
            Some(path) => file::read_far(path)?,
            None => (ClassesConfig::default(), Vec::new(), Vec::new()),
        };
        allow.extend(self.allow.iter().cloned());
        allow_listen.extend(self.allow_listen.iter().cloned());
        Ok(Setup {
            name: self.name.clone(),
            allow,
            allow_listen,
            classes: file::tree(&classes)?,
            stats: super::interval(self.stats)?,
            budget: super::BUDGET,
            ..Setup::default()
        })
    }
}
