//! The line that a host is tuned for: given, or measured by a connection to its other end.

use super::Tune;
use skyhaul_exit::{Exit, Failure};
use skyhaul_host::{HostLine, Interface};
use skyhaul_units::{Duration, Rate};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::time::Instant;

/// A line, and how it is known.
pub struct KnownLine {
    pub line: HostLine,
    /// The address at the other end, where there is one.
    pub to: Option<SocketAddr>,
    /// Whether the round trip was measured.
    pub is_measured: bool,
    /// Whether the rate is the interface's.
    pub is_of_interface: bool,
    /// The interface that leads to it.
    pub interface: Option<Interface>,
}

/// The line that the command is about.
///
/// # Errors
/// The other end has no address or does not answer; the rate is not known; there is no such
/// interface.
pub fn find(command: &Tune) -> Result<KnownLine, Failure> {
    let to = command.to.as_deref().map(resolve).transpose()?;
    let interface = interface(command, to)?;
    let (round_trip, is_measured) = match (command.rtt, to) {
        (Some(given), _) => (given, false),
        (None, Some(to)) => (measure(to)?, true),
        (None, None) => {
            return Err(Failure::new(Exit::Usage, "the round trip is not known", "give --rtt"));
        }
    };
    let of_interface = interface.as_ref().and_then(|interface| interface.mbps);
    let rate = command.rate.or_else(|| of_interface.map(Rate::from_mbps)).ok_or_else(|| {
        let named = interface.as_ref().map_or("the interface", |interface| &interface.name);
        let what = format!("{named} does not report its speed");
        Failure::new(Exit::Usage, &what, "give the rate of the line: --rate 1gbit")
    })?;
    let line = HostLine { rate, round_trip, loss: command.loss };
    Ok(KnownLine { line, to, is_measured, is_of_interface: command.rate.is_none(), interface })
}

fn resolve(to: &str) -> Result<SocketAddr, Failure> {
    let has_port = to.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    let full = if has_port { to.to_owned() } else { format!("{}:{PORT}", bracketed(to)) };
    let help = "check the name, or give its address";
    let mut found = full
        .to_socket_addrs()
        .map_err(|source| Failure::io("the host has no address", to, help, source))?;
    found.next().ok_or_else(|| Failure::new(Exit::Usage, "the host has no address", help).at(to))
}

fn bracketed(host: &str) -> String {
    if host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// The shortest of some round trips: from asking for a connection to the answer, which a refusal is
/// too.
#[allow(clippy::disallowed_methods, reason = "a real round trip takes real time")]
fn measure(to: SocketAddr) -> Result<Duration, Failure> {
    let mut shortest = None;
    for _ in 0..ROUND_TRIPS {
        let begun = Instant::now();
        match TcpStream::connect_timeout(&to, PATIENCE) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(source) => {
                let help = "name a port that answers (--to HOST:PORT), or give --rtt";
                return Err(Failure::io(
                    "the other end does not answer",
                    &to.to_string(),
                    help,
                    source,
                ));
            }
        }
        let took = Duration::from_std(begun.elapsed());
        shortest = Some(shortest.map_or(took, |known: Duration| known.min(took)));
    }
    Ok(shortest.unwrap_or_default())
}

fn interface(command: &Tune, to: Option<SocketAddr>) -> Result<Option<Interface>, Failure> {
    let mut all = Interface::read_all(&command.root);
    if let Some(name) = &command.interface {
        return all.remove(name).map(Some).ok_or_else(|| {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            let help = format!(
                "there are {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
            Failure::new(Exit::Usage, "there is no such interface", &help).at(name)
        });
    }
    let leading =
        to.and_then(|to| towards(to, &command.root)).or_else(|| default_route(&command.root));
    Ok(leading.and_then(|name| all.remove(&name)))
}

/// The interface that the system sends over to `to`: that of the route with the longest prefix.
fn towards(to: SocketAddr, root: &Path) -> Option<String> {
    let IpAddr::V4(_) = to.ip() else { return None };
    let any: SocketAddr = ([0, 0, 0, 0], 0).into();
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    let IpAddr::V4(to) = to.ip() else { return None };
    routes(root)?
        .into_iter()
        .filter(|route| u32::from(to) & route.mask == route.destination)
        .max_by_key(|route| route.mask)
        .map(|route| route.interface)
}

fn default_route(root: &Path) -> Option<String> {
    routes(root)?.into_iter().find(|route| route.mask == 0).map(|route| route.interface)
}

struct Route {
    interface: String,
    destination: u32,
    mask: u32,
}

/// The routes of `/proc/net/route`: numbers are hexadecimal, in the order of the processor's bytes.
fn routes(root: &Path) -> Option<Vec<Route>> {
    let text = std::fs::read_to_string(root.join("proc/net/route")).ok()?;
    let number = |text: Option<&str>| u32::from_str_radix(text?, 16).ok().map(u32::from_be);
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Route {
            interface: (*fields.first()?).to_owned(),
            destination: number(fields.get(1).copied())?,
            mask: number(fields.get(7).copied())?,
        })
    };
    Some(text.lines().skip(1).filter_map(of).collect())
}

/// Answers on most hosts, if only by a refusal.
const PORT: u16 = 443;
const ROUND_TRIPS: usize = 5;
/// Longer than any round trip to a satellite and back.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);
