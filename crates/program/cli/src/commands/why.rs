//! `skyhaul why`: the verdict on what limits a transfer, from a probe of the line, from the figures
//! of a transfer or a running node, or from both.

mod node;
mod rest;
mod show;
mod tcp;
mod transfer;

use super::node_socket::NodeArguments;
use super::perf::keys::Keys;
use super::perf::line::LineFlags;
use super::perf::send;
use super::probe::far::{FarEnd, FarFlags, able};
use super::probe::tell;
use rustix::time::{ClockId, clock_gettime};
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::StreamDirection;
use skyhaul_probe::why::{Evidence, ExaminePlan, LineFound, Transfer, judge};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul why`.
#[derive(clap::Args)]
#[command(after_help = "\
        The verdict is more certain with both a line and a transfer: a line alone shows faults of \
        the line, a transfer alone those of its ends. docs/how-to/why.md explains each cause and \
        its remedy.

Example:
  skyhaul why centre.example.org
  skyhaul why centre.example.org run.json
  skyhaul why --config station.toml
  skyhaul why centre.example.org --send centre.example.org:4710 --key station.key --peer SHA256:…
  skyhaul why --tcp 192.0.2.7:5201")]
pub struct WhyCommand {
    /// The host of `skyhaul probe serve`, or a file with the output of `skyhaul perf send --json`,
    /// or both.
    #[arg(value_name = "HOST|TRANSFER", num_args = 0..=2)]
    of: Vec<String>,
    /// Sends to this `skyhaul perf serve` for some seconds, and judges that transfer.
    #[arg(long, value_name = "ADDR", conflicts_with = "tcp")]
    send: Option<String>,
    /// Judges the transfer of the station or centre that runs here with this configuration.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tcp", "send"])]
    config: Option<PathBuf>,
    /// The same, by the path of the node's socket.
    #[arg(long, value_name = "PATH", alias = "socket",
        conflicts_with_all = ["tcp", "send", "config"])]
    node: Option<PathBuf>,
    /// Of a node's sessions, the one with this node. Default: with the destination that lacks most,
    /// or the peer that sends most.
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    /// Judges a TCP connection of this host, given by the other end's address and port, or by the
    /// number of the process that owns it.
    #[arg(long, value_name = "ADDR|PID")]
    tcp: Option<String>,
    /// Judges the direction from the far end to this one.
    #[arg(long)]
    down: bool,
    /// The approximate duration of the probe in seconds.
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
    /// The highest rate of the probe, in UDP payload. Default: the highest that both ends reach and
    /// the far end permits.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<Rate>,
    /// How long a transfer, a node or a TCP connection is observed.
    #[arg(long, value_name = "DURATION", default_value = "8 s")]
    watch: Duration,
    /// Prints the verdict as one JSON object (docs/reference/schema/why.json).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// Measures, judges and prints.
///
/// # Errors
/// There is nothing to judge; the far end, file or connection is not there; the run was
/// interrupted.
pub fn run(command: &WhyCommand, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(with) = command.with.as_deref().filter(|_| !command.has_node()) {
        let what = format!("--with {with} applies to a node on this machine");
        return Err(Failure::new(Exit::Usage, &what, "give the node too, with --config or --node"));
    }
    let (host, file) = command.targets()?;
    let far = host.map(|host| FarFlags::of(host).find()).transpose()?;
    // The running transfer is observed first: traffic of this command would disturb it.
    let (made, name) = match command.transfer(file) {
        Err(failure) if far.is_some() && command.send.is_some() => {
            (Err(command.missed(failure)?), None)
        }
        transfer => {
            let (transfer, name) = transfer?.unzip();
            (Ok(transfer), name)
        }
    };
    let probed = far.as_ref().map(|far| command.examined(far)).transpose();
    let (line, transfer) = match (probed, made) {
        (Ok(line), Ok(transfer)) => (line, transfer),
        (Ok(line), Err(_)) => (line, None),
        (Err(failure), Ok(Some(transfer))) => {
            command.missed(failure)?;
            (None, Some(transfer))
        }
        (Err(failure), Ok(None) | Err(_)) => return Err(failure),
    };
    let evidence = Evidence { line, transfer };
    let verdict = judge(&evidence);
    let of = show::Of { far: far.as_ref().map(FarEnd::place), transfer: name };
    if command.json {
        show::json(&of, &verdict, &evidence, out)
    } else {
        show::text(&of, &verdict, out)
    }
}

impl WhyCommand {
    /// The host and the file among the arguments.
    fn targets(&self) -> Result<(Option<&str>, Option<&str>), Failure> {
        let (files, hosts): (Vec<&str>, Vec<&str>) =
            self.of.iter().map(String::as_str).partition(|name| Path::new(name).is_file());
        let live = [self.send.is_some(), self.tcp.is_some(), self.has_node()];
        let transfers = files.len() + live.into_iter().filter(|is_given| *is_given).count();
        let is_nothing = self.of.is_empty() && transfers == 0;
        let fault = match (hosts.len(), transfers) {
            _ if is_nothing => "there is nothing to judge",
            (2.., _) => "two hosts are given, and no file",
            (_, 2..) => "two transfers are given",
            _ => return Ok((hosts.first().copied(), files.first().copied())),
        };
        let help = "give a host with `skyhaul probe serve`, and a transfer as a file, --config, \
                   --send or --tcp";
        Err(Failure::new(Exit::Usage, fault, help).at(&self.of.join(" ")))
    }

    const fn has_node(&self) -> bool {
        self.config.is_some() || self.node.is_some()
    }

    /// The transfer, and what it is called.
    fn transfer(&self, file: Option<&str>) -> Result<Option<(Transfer, String)>, Failure> {
        if let Some(file) = file {
            return Ok(Some((transfer::read(Path::new(file))?, file.to_owned())));
        }
        if let Some(to) = &self.send {
            self.progress(&format!("a transfer to {to}"));
            let report = send::short(to, self.watch, &self.line, &self.keys)?;
            return Ok(Some((transfer::of(&report)?, format!("to {to}"))));
        }
        if self.has_node() {
            self.progress(&format!("the node that runs here, for {}", self.watch));
            let node = NodeArguments::of(self.config.clone(), self.node.clone());
            let watched = node::watched(&node, self.with.as_deref(), self.watch)?;
            return Ok(Some((watched.transfer, watched.name)));
        }
        let Some(which) = &self.tcp else { return Ok(None) };
        self.progress(&format!("the TCP connection {which}, for {}", self.watch));
        Ok(Some((tcp::watched(which, self.watch)?, format!("TCP {which}"))))
    }

    fn examined(&self, far: &FarEnd) -> Result<LineFound, Failure> {
        let (_, rate_max) = able(PAYLOAD, self.max_rate)?;
        let mut near = far.open()?;
        let plan = ExaminePlan {
            direction: if self.down { StreamDirection::Down } else { StreamDirection::Up },
            time: Duration::from_secs(self.seconds),
            rate_max,
            payload_max: PAYLOAD_MAX,
            headers: far.headers(),
        };
        let (begin, own) = (far.utc(), own_clock(far));
        let found =
            skyhaul_probe::why::examine(&mut near, &plan, &mut |doing| self.progress(doing));
        let mut found = found.map_err(|error| far.failure(&error))?;
        near.close();
        let seconds = far.utc().since(begin).as_secs_f64();
        let stepped = own_clock(far) - own;
        // A clock that is slewed (at most 500 parts in a million, RFC 5905 11.3) is not set.
        if stepped.abs() > CLOCK_SLEW * seconds * 1e3 + CLOCK_STEP_MS
            && stepped.abs() > found.clock_step_ms.abs()
        {
            // The far end's clock moves in the opposite direction relative to this one.
            (found.clock_step_ms, found.clock_step_at_s) = (-stepped, seconds);
        }
        Ok(found)
    }

    /// Warns that one of the two measurements is missing because the far end did not answer. The
    /// other is judged alone.
    fn missed(&self, failure: Failure) -> Result<Failure, Failure> {
        if failure.exit() != Exit::Peer {
            return Err(failure);
        }
        tell(&format!("not measured: {failure}"));
        Ok(failure)
    }

    fn progress(&self, doing: &str) {
        if !self.json {
            tell(&format!("measuring: {doing}"));
        }
    }
}

/// By how many milliseconds this host's time of day is ahead of its monotonic clock.
fn own_clock(far: &FarEnd) -> f64 {
    let calendar = clock_gettime(ClockId::Realtime);
    let nanos = i128::from(calendar.tv_sec) * 1_000_000_000 + i128::from(calendar.tv_nsec);
    (nanos - i128::from(far.utc().as_nanos())) as f64 / 1e6
}

/// For the calibration of this machine: what programs send.
const PAYLOAD: ByteCount = ByteCount::new(1_400);
/// The longest UDP payload of a jumbo frame over IPv4.
const PAYLOAD_MAX: ByteCount = ByteCount::new(8_972);

/// Of a clock that is being slewed.
const CLOCK_SLEW: f64 = 500e-6;
/// As the verdict's own rule.
const CLOCK_STEP_MS: f64 = 5.0;
