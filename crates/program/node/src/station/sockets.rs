//! The sockets of paths: from a local address, an interface, or wherever the system chooses.

use crate::config::{InterfaceName, Line, LinePath, Transport};
use crate::fault::Fault;
use crate::services;
use skyhaul_congestion::ControllerConfig;
use skyhaul_net::{AnyEndpoint, Clock, Socket, TcpConfig, TcpEndpoint, interfaces};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// What is needed to open a path's socket.
#[derive(Debug)]
pub struct PathSocketOpener {
    /// The station's key.
    pub identity: Identity,
    /// What is known of the line.
    pub line: Line,
    /// The centre's host and port, for paths that name none.
    pub centre: String,
    /// The process's clock.
    pub clock: Clock,
}

/// A path's socket.
pub struct PathSocket {
    /// The socket, and what speaks there.
    pub endpoint: AnyEndpoint,
    /// Which family of addresses it speaks to.
    pub is_ipv6: bool,
}

impl PathSocketOpener {
    /// The centre's host and port on a path.
    pub fn remote(&self, path: &LinePath) -> String {
        path.remote.as_ref().map_or_else(|| self.centre.clone(), ToString::to_string)
    }

    /// Opens the socket of a path.
    ///
    /// # Errors
    /// The address is in use or none of this host; the interface is not there, or has no address
    /// that goes with the centre's.
    pub fn open(&self, path: &LinePath) -> Result<PathSocket, Fault> {
        if path.transport == Transport::Tcp {
            return self.open_only_tcp(path);
        }
        let remote = self.remote(path);
        let found: Vec<SocketAddr> =
            remote.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
        let (socket, place, is_ipv6) = match (&path.interface, path.local) {
            (Some(interface), _) => {
                let (socket, is_ipv6) = on_interface(interface, (&remote, &found))?;
                (socket, format!("interface {interface}"), is_ipv6)
            }
            (None, local) => {
                let is_ipv6 = found.first().is_some_and(SocketAddr::is_ipv6);
                let local = local.unwrap_or(any(is_ipv6));
                let bind = SocketAddr::new(local, 0);
                (Socket::bind(bind), bind.to_string(), local.is_ipv6())
            }
        };
        let settings = self.settings(path, is_ipv6);
        let config = EndpointConfig::new(self.identity.clone(), settings, self.clock.std_start());
        let endpoint = services::endpoint(socket, &place, config)?.into();
        Ok(PathSocket { endpoint, is_ipv6 })
    }

    /// How a path over UDP runs.
    pub fn settings(&self, path: &LinePath, is_ipv6: bool) -> PathConfig {
        PathConfig {
            udp_payload: services::udp_payload(self.line.mtu, is_ipv6),
            controller: path.rate.map_or(self.line.controller(), ControllerConfig::declared),
            ..PathConfig::default()
        }
    }

    fn open_only_tcp(&self, path: &LinePath) -> Result<PathSocket, Fault> {
        let found = self.remote(path).to_socket_addrs().ok().and_then(|mut found| found.next());
        let is_ipv6 =
            path.local.map_or(found.is_some_and(|found| found.is_ipv6()), |local| local.is_ipv6());
        Ok(PathSocket { endpoint: self.open_tcp(path, is_ipv6)?.into(), is_ipv6 })
    }

    /// What calls over TCP on a path.
    ///
    /// # Errors
    /// As [`Opener::open`].
    pub fn open_tcp(&self, path: &LinePath, is_ipv6: bool) -> Result<TcpEndpoint, Fault> {
        let local = match &path.interface {
            Some(interface) => Some(address_of(interface, is_ipv6)?),
            None => path.local,
        };
        let udp_payload = services::udp_payload(self.line.mtu, is_ipv6);
        let config = TcpConfig { local, udp_payload, ..TcpConfig::new(self.identity.clone()) };
        services::over_tcp(config, &path.place())
    }
}

/// A socket on an interface, and its family: that of the first of the centre's addresses that the
/// interface has too.
fn on_interface(
    name: &InterfaceName,
    (remote, found): (&str, &[SocketAddr]),
) -> Result<(io::Result<Socket>, bool), Fault> {
    let place = format!("interface {name}");
    let all = interfaces().map_err(|error| {
        let what = format!("the network interfaces cannot be listed ({error})");
        Fault::environment(what, &place, "write `local` with an address of this host instead")
    })?;
    let Some(own) = all.get(name.as_str()) else {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        let help = format!("the interfaces of this host are {}", known.join(", "));
        return Err(Fault::configuration("there is no such network interface", place, help));
    };
    let has = |is_ipv6: bool| own.iter().any(|address| address.is_ipv6() == is_ipv6);
    let families = found.iter().map(SocketAddr::is_ipv6);
    let family = if found.is_empty() {
        [false, true].into_iter().find(|family| has(*family))
    } else {
        families.into_iter().find(|family| has(*family))
    };
    let Some(is_ipv6) = family else {
        let what = format!("the network interface has no address of the same family as {remote}");
        return Err(Fault::configuration(
            what,
            place,
            format!("the addresses here are {}", listed(&all)),
        ));
    };
    let socket = Socket::bind_on(SocketAddr::new(any(is_ipv6), 0), name.as_str());
    let socket = match socket {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            bind_one_of(own, is_ipv6, error)
        }
        outcome => outcome,
    };
    Ok((socket, is_ipv6))
}

/// The address of an interface from which calls over TCP go: what leaves by it, the routes say.
fn address_of(name: &InterfaceName, is_ipv6: bool) -> Result<IpAddr, Fault> {
    let own = interfaces().ok().and_then(|mut all| all.remove(name.as_str())).unwrap_or_default();
    let is_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let mut fitting =
        own.into_iter().filter(|address| address.is_ipv6() == is_ipv6 && !is_local(address));
    fitting.next().ok_or_else(|| {
        let what = "the network interface has no address to connect to the centre over TCP";
        Fault::configuration(what, format!("interface {name}"), "set `local`, or another interface")
    })
}

/// A socket on the first of an interface's addresses that lets itself be used without more: what
/// leaves by it, the routes say.
fn bind_one_of(own: &[IpAddr], is_ipv6: bool, refused: io::Error) -> io::Result<Socket> {
    let is_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let mut fitting =
        own.iter().filter(|address| address.is_ipv6() == is_ipv6 && !is_local(address));
    fitting.next().map_or(Err(refused), |address| Socket::bind(SocketAddr::new(*address, 0)))
}

fn listed(all: &BTreeMap<String, Vec<IpAddr>>) -> String {
    let with = all.iter().filter(|(_, addresses)| !addresses.is_empty());
    let one = |(name, addresses): (&String, &Vec<IpAddr>)| {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        format!("{name} {}", addresses.join(" "))
    };
    with.map(one).collect::<Vec<_>>().join(", ")
}

fn any(is_ipv6: bool) -> IpAddr {
    if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// The first address of `host:port`.
///
/// # Errors
/// A sentence for the log.
pub fn resolve(address: &str) -> Result<SocketAddr, String> {
    addresses(address)?.next().ok_or_else(|| format!("`{address}` has no address"))
}

/// The first address of `host:port` in a family.
///
/// # Errors
/// A sentence for the log.
pub fn resolve_in(address: &str, is_ipv6: bool) -> Result<SocketAddr, String> {
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    let found = addresses(address)?.find(|found| found.is_ipv6() == is_ipv6);
    found.ok_or_else(|| format!("`{address}` has no {family} address, as the path needs"))
}

fn addresses(address: &str) -> Result<impl Iterator<Item = SocketAddr>, String> {
    address.to_socket_addrs().map_err(|error| format!("`{address}` is not found ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opener() -> PathSocketOpener {
        PathSocketOpener {
            identity: Identity::from_seed(&[1; 32]).expect("a key"),
            line: toml::from_str("rate = \"10 Mbit/s\"").expect("a line"),
            centre: "127.0.0.1:9".to_owned(),
            clock: Clock::start(),
        }
    }

    fn path(text: &str) -> LinePath {
        toml::from_str(text).expect("a path")
    }

    #[test]
    fn an_interface_that_is_there_gives_a_socket_of_the_remotes_family() {
        let opened = opener().open(&path("interface = \"lo\"")).expect("a socket");
        assert!(!opened.is_ipv6 && opened.endpoint.local_addr().expect("bound").is_ipv4());
    }

    #[test]
    fn one_that_is_not_there_or_lacks_the_family_is_named_with_those_that_are() {
        let absent =
            opener().open(&path("interface = \"eth99\"")).err().expect("refused").to_string();
        assert!(
            absent.contains("eth99") && absent.contains("are") && absent.contains("lo"),
            "{absent}"
        );
        let all = BTreeMap::from([
            ("lo".to_owned(), vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]),
            ("tun0".to_owned(), Vec::new()),
        ]);
        assert_eq!(listed(&all), "lo 127.0.0.1");
    }

    #[test]
    fn without_the_right_to_keep_to_an_interface_one_of_its_addresses_serves() {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let own = ["fe80::1", "127.0.0.1"].map(|text| text.parse().expect("an address"));
        assert!(bind_one_of(&own, false, refused()).is_ok());
        assert!(bind_one_of(&own, true, refused()).is_err(), "a link-local address needs a zone");
    }

    #[test]
    fn names_are_looked_up_in_the_family_that_is_needed() {
        assert_eq!(resolve_in("127.0.0.1:9", false).expect("found").port(), 9);
        assert!(resolve_in("127.0.0.1:9", true).unwrap_err().contains("no IPv6"));
    }
}
