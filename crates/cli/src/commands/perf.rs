//! `skyhaul perf`: measures what a line carries, with the transport that the nodes use.
//!
//! The serving end waits for callers and keeps nothing of what comes; the sending end sends blocks for a time or up to an
//! amount, and prints what arrived. Latency is measured by the receiving end, between an application's handing over
//! a block and its delivery; the sender's stamps are read after the two clocks have been compared (`clock`).

mod clock;
mod keys;
mod line;
mod message;
mod one_way;
mod report;
mod send;
mod serve;
mod source;

use crate::failure::{Exit, Failure};
use rustix::time::{ClockId, clock_gettime};
use skyhaul_net::Engine;
use skyhaul_net::{Clock, Driver, Socket, TcpCarrier, TcpConfig, UdpCarrier, drops};
use skyhaul_quic::{Endpoint, EndpointConfig};
use skyhaul_transport::SessionConfig;
use skyhaul_units::Bytes;
use std::io::Write;
use std::net::SocketAddr;

/// What `skyhaul perf` can do.
#[derive(clap::Subcommand)]
pub enum Perf {
    /// Sends blocks to a serving end and prints what arrived, how fast and how late.
    Send(send::Send),
    /// Receives from senders until it is interrupted.
    Serve(serve::Serve),
}

/// Carries out one end.
///
/// # Errors
/// An address or key cannot be used, the other end is not there or refuses, or the run was interrupted.
pub fn run(command: Perf, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Perf::Send(command) => send::run(&command, out),
        Perf::Serve(command) => serve::run(&command, out),
    }
}

/// A socket at `address`; for the first, what the system refuses of its buffers is said.
fn bind(address: SocketAddr, is_first: bool) -> Result<Socket, Failure> {
    let socket = Socket::bind(address).map_err(|source| {
        let help =
            "stop the program that uses the port, or give another one of this host's addresses and ports";
        Failure::io("the UDP port cannot be used", &address.to_string(), help, source)
    })?;
    if let Some(advice) = socket.buffers().advice().filter(|_| is_first) {
        // Standard error may be closed; the run goes on all the same.
        let _ = writeln!(std::io::stderr(), "note: {advice}");
    }
    Ok(socket)
}

/// An engine on a socket for each address; there is at least one.
fn driver(configs: Vec<(SocketAddr, EndpointConfig)>, clock: Clock) -> Result<Driver, Failure> {
    let session = SessionConfig {
        receive_window: WINDOW,
        send_buffer: WINDOW,
        utc_at_zero: clock.utc_at_start(),
        ..SessionConfig::default()
    };
    let mut driver: Option<Driver> = None;
    for (address, mut config) in configs {
        let socket = bind(address, driver.is_none())?;
        config.path.max_segments = socket.max_segments();
        let endpoint =
            Endpoint::new(config).map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
        match &mut driver {
            Some(driver) => {
                driver.add_carrier(UdpCarrier::new(endpoint, socket));
            }
            None => {
                driver = Some(Driver::new(
                    Engine::new(UdpCarrier::new(endpoint, socket).into(), session.clone()),
                    clock,
                )?)
            }
        }
    }
    driver.ok_or_else(|| Failure::new(Exit::Usage, "there is no address", "give one"))
}

/// TLS over TCP, at the address to listen at or to call from.
fn over_tcp(config: TcpConfig) -> Result<TcpCarrier, Failure> {
    let place = config.listen.map_or("this host".to_owned(), |address| address.to_string());
    TcpCarrier::open(config).map_err(|source| {
        let help = "stop the program that uses the port, or leave out --tcp";
        Failure::io("the TCP port cannot be used", &place, help, source)
    })
}

/// Where a driver's sockets are bound.
fn addresses(driver: &Driver) -> Result<Vec<SocketAddr>, Failure> {
    let bound = driver.sockets().map(Socket::local_addr);
    Ok(bound.collect::<Result<_, _>>()?)
}

/// By which the kernel knows a driver's sockets.
fn inodes(driver: &Driver) -> Vec<u64> {
    driver.sockets().filter_map(|socket| drops::inode(socket).ok()).collect()
}

/// Processor time of this process so far, all its threads.
fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Datagrams that the kernel dropped at the sockets so far.
fn socket_drops(inodes: &[u64]) -> Option<u64> {
    drops::kernel_drops(|inode| inodes.contains(&inode))
}

/// Blocks under way in one direction, counted with their book-keeping: twice 1 Gbit/s at 660 ms and more.
const WINDOW: Bytes = Bytes::mib(256);

/// The node name both ends give: there is nothing to be told apart by it.
const NAME: &str = "perf";
