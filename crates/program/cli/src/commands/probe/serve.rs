//! `skyhaul probe serve`: the far end.

use super::PORT;
use crate::commands::signals;
use skyhaul_exit::Failure;
use skyhaul_probe::wire::RequestLimits;
use skyhaul_probe_io::{HostFiles, Server};
use skyhaul_units::{Duration, Rate};
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};

/// The arguments of `skyhaul probe serve`.
#[derive(clap::Args)]
#[command(after_help = "\
        Anyone who reaches the port can measure, within the limits. Nothing is sent to an address \
        that has not answered first, and no answer is longer than its request.

Example:
  skyhaul probe serve
  skyhaul probe serve --bind 192.0.2.7:4720 --max-rate 300mbit --max-time 5min")]
pub struct Serve {
    /// The address to listen at. Default: all addresses of this host, port 4720.
    #[arg(long, value_name = "ADDR")]
    bind: Option<SocketAddr>,
    /// The limit of each stream in each direction, and of all outgoing streams together, in UDP
    /// payload.
    #[arg(long, value_name = "RATE", default_value = "1 Gbit/s")]
    max_rate: Rate,
    /// The limit of the duration of a measurement.
    #[arg(long, value_name = "DURATION", default_value = "1 h")]
    max_time: Duration,
}

/// Serves until interrupted.
///
/// # Errors
/// The address cannot be used.
pub fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    let address = command.bind.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, PORT).into());
    let limits =
        RequestLimits { rate: command.max_rate, time: command.max_time, datagrams: DATAGRAMS_MAX };
    let failed = |error: skyhaul_probe_io::ServeError| {
        let help = "stop the program that uses the port, or give --bind another address and port \
                   of this host";
        let source = std::io::Error::other(error.to_string());
        Failure::io("the UDP port cannot be used", &address.to_string(), help, source)
    };
    let mut server = Server::bind(address, limits, HostFiles::default()).map_err(failed)?;
    writeln!(out, "listening on {}", server.local_addr().map_err(failed)?)?;
    out.flush()?;
    let stop = signals::stop_flag()?;
    server.run(&stop).map_err(failed)?;
    let counters = server.counters();
    Ok(writeln!(
        out,
        "{} measurements, {} refused, {} foreign datagrams, {} answers withheld",
        counters.sessions, counters.refused, counters.foreign, counters.withheld
    )?)
}

/// Of a stream: 12 s at a gigabit and 1,400 bytes; their arrivals take 16 MiB.
const DATAGRAMS_MAX: u32 = 1 << 20;
