//! `skyhaul emulate`: an emulated long line for UDP, without root.

use super::signals::stop_flag;
use skyhaul_emulator::proxy::{
    DirectionCounters, LinkProxy, ProxyConfig, ProxyCounters, ProxyError,
};
use skyhaul_exit::{Exit, Failure};
use skyhaul_link::{GilbertElliott, LinkConfig, Loss, Reordering};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul emulate`.
#[derive(clap::Args)]
#[command(after_help = "\
        Send UDP to the listening address; answers come back the same way. Both directions have \
        the same properties. For different directions, outages and changes, write a file \
        (docs/how-to/emulate.md).

Example:
  skyhaul emulate --listen 127.0.0.1:4701 --to 127.0.0.1:4700 --rate 93mbit --delay 80ms \
  --loss 1%")]
pub struct EmulateCommand {
    /// The address to which clients send.
    #[arg(long, value_name = "ADDR", required_unless_present = "config")]
    listen: Option<SocketAddr>,
    /// The address to which the proxy sends their datagrams.
    #[arg(long, value_name = "ADDR", required_unless_present = "config")]
    to: Option<SocketAddr>,
    /// The proxy's TOML file, instead of all other flags except --json.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "to", "LineFlags"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    line: LineFlags,
    /// Prints the totals as one line of JSON at the end.
    #[arg(long)]
    json: bool,
}

/// What each direction of the line is like.
#[derive(clap::Args)]
struct LineFlags {
    /// The rate of each direction, including IP headers. Default: no limit.
    #[arg(long)]
    rate: Option<Rate>,
    /// The delay of each direction: half of the round trip.
    #[arg(long, visible_alias = "delay", value_name = "DURATION", default_value = "0 ms")]
    one_way_delay: Duration,
    /// The delay of each packet varies by up to this much.
    #[arg(long, value_name = "DURATION", default_value = "0 ms")]
    jitter: Duration,
    /// The probability that a packet is lost, in each direction.
    #[arg(long, value_name = "PROBABILITY", default_value = "0 %")]
    loss: Probability,
    /// Losses come in bursts of this many packets on average. Default: single losses.
    #[arg(long, value_name = "PACKETS")]
    loss_burst: Option<NonZeroU32>,
    /// The probability that a packet is delayed, and so reordered.
    #[arg(long, value_name = "PROBABILITY", requires = "reorder_delay")]
    reorder: Option<Probability>,
    /// The additional delay of a reordered packet.
    #[arg(long, value_name = "DURATION", requires = "reorder")]
    reorder_delay: Option<Duration>,
    /// The size of the queue. Default: the bytes of one one-way delay, at least 1 MiB.
    #[arg(long, value_name = "SIZE")]
    queue: Option<ByteCount>,
    /// The same seed loses the same packets.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Passes until it is interrupted, then prints the totals.
///
/// # Errors
/// The address is in use or not this machine's, or the line is an impossible one.
pub fn run(command: &EmulateCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let config = config(command)?;
    let to = config.to;
    let stop = stop_flag()?;
    let mut proxy = LinkProxy::bind(config).map_err(|error| refused(&error))?;
    if !command.json {
        writeln!(out, "proxying {} to {to}", proxy.local_addr())?;
        out.flush()?;
    }
    proxy.run(&stop).map_err(|error| refused(&error))?;
    let totals = proxy.counters();
    if command.json {
        let line = serde_json::to_string(&totals).expect("counters are plain data");
        return Ok(writeln!(out, "{line}")?);
    }
    write_totals(&totals, out)
}

fn config(command: &EmulateCommand) -> Result<ProxyConfig, Failure> {
    if let Some(file) = &command.config {
        return read(file);
    }
    let (Some(listen), Some(to)) = (command.listen, command.to) else {
        return Err(Failure::from_sentence(
            Exit::Usage,
            "the addresses are missing; give --listen and --to",
        ));
    };
    let mut config = ProxyConfig::new(listen, to, command.line.line()?);
    config.seed = command.line.seed;
    Ok(config)
}

fn read(file: &Path) -> Result<ProxyConfig, Failure> {
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| {
        Failure::io("the file cannot be read", &place, "give the path of a proxy's file", source)
    })?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().replace('\n', " ");
        let (what, help) =
            what.split_once(", ").unwrap_or((&what, "docs/how-to/emulate.md shows every key"));
        Failure::from_sentence(Exit::Usage, &format!("{what}; {help}"))
            .at(&format!("{place}:{line}"))
    })
}

impl LineFlags {
    fn line(&self) -> Result<LinkConfig, Failure> {
        let mut line = match self.rate {
            Some(rate) => LinkConfig::line(rate, self.one_way_delay),
            None => LinkConfig { one_way_delay: self.one_way_delay, ..LinkConfig::default() },
        };
        line.jitter = self.jitter;
        line.loss = self.loss()?;
        line.queue = self.queue.unwrap_or(line.queue);
        line.reordering = self
            .reorder
            .zip(self.reorder_delay)
            .map(|(probability, extra_delay)| Reordering { probability, extra_delay });
        Ok(line)
    }

    fn loss(&self) -> Result<Loss, Failure> {
        if self.loss == Probability::ZERO {
            return Ok(Loss::None);
        }
        let Some(burst) = self.loss_burst else { return Ok(Loss::Independent(self.loss)) };
        GilbertElliott::with_bursts(self.loss, burst).map(Loss::GilbertElliott).map_err(|error| {
            Failure::from_sentence(Exit::Usage, &error.to_string().replacen(": ", "; ", 1))
        })
    }
}

fn refused(error: &ProxyError) -> Failure {
    let exit = match error {
        ProxyError::Destination(_) => Exit::Usage,
        _ => Exit::Environment,
    };
    Failure::from_sentence(exit, &error.to_string())
}

fn write_totals(totals: &ProxyCounters, out: &mut dyn Write) -> Result<(), Failure> {
    for (name, DirectionCounters { link, sent, send_failed, .. }) in
        [("up", totals.up), ("down", totals.down)]
    {
        writeln!(
            out,
            "{name:<5} {} offered, {} lost, {} dropped by the queue, {sent} sent on, {send_failed} \
            refused by the system",
            link.offered, link.lost, link.queue_dropped
        )?;
    }
    Ok(())
}
