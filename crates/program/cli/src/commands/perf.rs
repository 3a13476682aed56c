//! `skyhaul perf`: measures what a line carries, with the transport that the nodes use.
//!
//! The serving end discards received data, unless it is asked to write it to disk (`keep`). The
//! sending end sends blocks for a time or up to an amount, and prints what arrived. The receiving
//! end measures latency: from handing over a block, by the sender's time stamp, to its delivery.
//! For this the two clocks are compared first (`clock`).

mod clock;
mod keep;
pub mod keys;
pub mod line;
mod load;
mod message;
mod one_way;
pub mod report;
pub mod send;
mod serve;
mod source;

use rustix::time::{ClockId, clock_gettime};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::SessionManager;
use skyhaul_net::{
    AnyEndpoint, Clock, Driver, Socket, TcpConfig, TcpEndpoint, ThreadedEndpoint, UdpEndpoint,
    Waker, drops,
};
use skyhaul_node::log;
use skyhaul_quic::{EndpointConfig, QuicEndpoint};
use skyhaul_transport::SessionConfig;
use skyhaul_units::ByteCount;
use std::io::Write;
use std::net::SocketAddr;

/// What `skyhaul perf` can do.
#[derive(clap::Subcommand)]
pub enum Perf {
    /// Sends blocks to a serving end, and prints goodput, latency and loss.
    Send(send::Send),
    /// Receives from senders until it is interrupted.
    Serve(serve::Serve),
}

/// Carries out one end.
///
/// # Errors
/// An address or key cannot be used, the other end is not there or refuses, or the run was
/// interrupted.
pub fn run(command: Perf, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Perf::Send(command) => send::run(&command, out),
        Perf::Serve(command) => serve::run(&command, out),
    }
}

/// A socket at `address`.
///
/// # Errors
/// The address or port is not to be had.
pub fn bind(address: SocketAddr) -> Result<Socket, Failure> {
    bound(address, Socket::bind(address))
}

/// A socket at `address`, which further ones of this program may be bound to too.
fn bind_shared(address: SocketAddr) -> Result<Socket, Failure> {
    bound(address, Socket::bind_shared(address))
}

fn bound(address: SocketAddr, socket: std::io::Result<Socket>) -> Result<Socket, Failure> {
    socket.map_err(|source| {
        let help =
            "stop the program that uses the port, or give another address and port of this host";
        Failure::io("the UDP port cannot be used", &address.to_string(), help, source)
    })
}

/// Prints a note if the system limits the socket's buffers. The other sockets have the same limits.
fn advise(socket: &Socket) {
    if let Some(advice) = socket.buffers().advice() {
        log::say(&format!("note: {advice}"));
    }
}

/// A session manager on a socket for each address; there is at least one. With `lanes` each has a
/// thread of its own.
///
/// # Errors
/// The paths cannot be as configured, or the system has no more threads or descriptors.
pub fn driver(
    configs: Vec<(Socket, EndpointConfig)>,
    lanes: &LaneFlags,
    clock: Clock,
) -> Result<Driver, Failure> {
    driver_with(configs, lanes, WINDOW, clock)
}

/// The same with a limit of the bytes that a far end may have under way.
///
/// # Errors
/// The paths cannot be as configured, or the system has no more threads or descriptors.
fn driver_with(
    configs: Vec<(Socket, EndpointConfig)>,
    lanes: &LaneFlags,
    window: ByteCount,
    clock: Clock,
) -> Result<Driver, Failure> {
    let session = SessionConfig {
        receive_window: window,
        send_buffer: WINDOW,
        utc_at_zero: clock.utc_at_start(),
        ..SessionConfig::default()
    };
    if let Some((socket, _)) = configs.first() {
        advise(socket);
    }
    let waker = Waker::new()?;
    let mut manager: Option<SessionManager> = None;
    for (index, (socket, config)) in configs.into_iter().enumerate() {
        let quic = QuicEndpoint::new(config)
            .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
        let endpoint = UdpEndpoint::new(quic, socket);
        let endpoint: AnyEndpoint = match lanes.lanes {
            Some(_) => {
                ThreadedEndpoint::start(endpoint, clock, &waker, &format!("lane {index}"))?.into()
            }
            None => endpoint.into(),
        };
        match &mut manager {
            Some(manager) => drop(manager.add_endpoint(endpoint)),
            None => manager = Some(SessionManager::new(endpoint, session.clone())),
        }
    }
    let manager =
        manager.ok_or_else(|| Failure::new(Exit::Usage, "there is no address", "give one"))?;
    Ok(Driver::woken_by(waker, manager, clock))
}

/// TLS over TCP, at the address to listen at or to call from.
fn over_tcp(config: TcpConfig) -> Result<TcpEndpoint, Failure> {
    let place = config.listen.map_or("this host".to_owned(), |address| address.to_string());
    TcpEndpoint::open(config).map_err(|source| {
        let help = "stop the program that uses the port, or omit --tcp";
        Failure::io("the TCP port cannot be used", &place, help, source)
    })
}

/// Where a driver's endpoints are.
fn addresses(driver: &Driver) -> Vec<SocketAddr> {
    driver.endpoints().filter_map(AnyEndpoint::local_addr).collect()
}

/// By which the kernel knows a driver's sockets.
fn inodes(driver: &Driver) -> Vec<u64> {
    driver.endpoints().filter_map(AnyEndpoint::inode).collect()
}

/// How many connections a path has.
#[derive(clap::Args, Default)]
pub struct LaneFlags {
    /// The number of connections on each path, each with its own thread, so that one core is not
    /// the limit. Without this flag, all paths share one thread. At the serving end: the number of
    /// sockets on each address, among which the system distributes senders.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=LANES_MAX))]
    lanes: Option<u16>,
}

impl LaneFlags {
    fn count(&self) -> usize {
        usize::from(self.lanes.unwrap_or(1))
    }
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

/// Blocks under way in one direction, counted with their book-keeping: twice 1 Gbit/s at 660 ms and
/// more.
const WINDOW: ByteCount = ByteCount::mib(256);

/// Lanes of a path: a session holds 64 paths.
const LANES_MAX: i64 = 16;

/// The node name of both ends; it distinguishes nothing.
const NAME: &str = "perf";
