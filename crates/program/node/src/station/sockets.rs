//! The sockets of paths: on a local address, an interface, or where the system chooses.

use crate::address_family::AddressFamily;
use crate::fault::Fault;
use crate::services;
use skyhaul_config::{InterfaceName, Line, LinePath, Transport};
use skyhaul_congestion::ControllerConfig;
use skyhaul_net::{AnyEndpoint, Clock, Socket, TcpConfig, TcpEndpoint, interfaces};
use skyhaul_quic::{EndpointConfig, OwnKey, PathConfig};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// What is needed to open a path's socket.
#[derive(Debug)]
pub struct PathSocketOpener {
    /// The station's key.
    pub identity: OwnKey,
    /// The settings of the line.
    pub line: Line,
    /// The destination's hosts and ports, for paths that name none.
    pub centre: Vec<String>,
    /// The process's clock.
    pub clock: Clock,
}

/// A path's socket.
pub struct PathSocket {
    /// The endpoint on the socket.
    pub endpoint: AnyEndpoint,
    /// The family of the addresses it speaks to.
    pub family: AddressFamily,
}

impl PathSocketOpener {
    /// The destination's hosts and ports on a path, at least one.
    pub fn remotes(&self, path: &LinePath) -> Vec<String> {
        path.remote.as_ref().map_or_else(|| self.centre.clone(), |one| vec![one.to_string()])
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
        let remotes = self.remotes(path);
        let addresses = |remote: &String| remote.to_socket_addrs().into_iter().flatten();
        let found: Vec<SocketAddr> = remotes.iter().flat_map(addresses).collect();
        let (socket, place, family) = match (&path.interface, path.local) {
            (Some(interface), _) => {
                let bound = on_interface(interface, &remotes.join(" or "), &found)?;
                (bound.socket, format!("interface {interface}"), bound.family)
            }
            (None, local) => {
                let family = family_of(found.first());
                let local = local.unwrap_or(family.unspecified());
                let bind = SocketAddr::new(local, 0);
                (Socket::bind(bind), bind.to_string(), AddressFamily::of(&local))
            }
        };
        let settings = self.settings(path, family);
        let config = EndpointConfig::new(self.identity.clone(), settings, self.clock.std_start());
        let endpoint = services::endpoint(socket, &place, config)?.into();
        Ok(PathSocket { endpoint, family })
    }

    /// The settings of a path over UDP.
    pub fn settings(&self, path: &LinePath, family: AddressFamily) -> PathConfig {
        PathConfig {
            udp_payload: services::udp_payload(self.line.mtu, family),
            controller: path.rate.map_or(self.line.controller(), ControllerConfig::declared),
            ..PathConfig::default()
        }
    }

    fn open_only_tcp(&self, path: &LinePath) -> Result<PathSocket, Fault> {
        let remotes = self.remotes(path);
        let mut addresses = remotes.iter().flat_map(|remote| remote.to_socket_addrs().ok());
        let found = addresses.find_map(|mut found| found.next());
        let family =
            path.local.as_ref().map_or_else(|| family_of(found.as_ref()), AddressFamily::of);
        Ok(PathSocket { endpoint: self.open_tcp(path, family)?.into(), family })
    }

    /// Opens the endpoint that calls over TCP on a path.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_tcp(&self, path: &LinePath, family: AddressFamily) -> Result<TcpEndpoint, Fault> {
        let local = match &path.interface {
            Some(interface) => Some(address_of(interface, family)?),
            None => path.local,
        };
        let udp_payload = services::udp_payload(self.line.mtu, family);
        let config = TcpConfig { local, udp_payload, ..TcpConfig::new(self.identity.clone()) };
        services::over_tcp(config, None, &path.place())
    }
}

/// A socket that is bound to an interface.
struct InterfaceSocket {
    socket: io::Result<Socket>,
    family: AddressFamily,
}

/// Opens a socket on an interface. Its family is that of the first of the addresses `found` for the
/// centre at `remote` that the interface has too.
fn on_interface(
    name: &InterfaceName,
    remote: &str,
    found: &[SocketAddr],
) -> Result<InterfaceSocket, Fault> {
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
    let has =
        |family: &AddressFamily| own.iter().any(|address| AddressFamily::of(address) == *family);
    let family = if found.is_empty() {
        [AddressFamily::V4, AddressFamily::V6].into_iter().find(has)
    } else {
        found.iter().map(AddressFamily::of_socket).find(has)
    };
    let Some(family) = family else {
        let what = format!("the network interface has no address of the same family as {remote}");
        return Err(Fault::configuration(
            what,
            place,
            format!("the addresses here are {}", listed(&all)),
        ));
    };
    let socket = Socket::bind_on(SocketAddr::new(family.unspecified(), 0), name.as_str());
    let socket = match socket {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            bind_one_of(own, family, error)
        }
        outcome => outcome,
    };
    Ok(InterfaceSocket { socket, family })
}

/// The address of an interface from which calls over TCP go. The system's routes decide which
/// interface they leave by.
fn address_of(name: &InterfaceName, family: AddressFamily) -> Result<IpAddr, Fault> {
    let own = interfaces().ok().and_then(|mut all| all.remove(name.as_str())).unwrap_or_default();
    own.into_iter().find(|address| is_usable(address, family)).ok_or_else(|| {
        let what = "the network interface has no address to connect to the centre over TCP";
        Fault::configuration(what, format!("interface {name}"), "set `local`, or another interface")
    })
}

/// A socket on the first usable address of an interface, where this user may not bind to the
/// interface itself. The system's routes decide which interface its datagrams leave by.
fn bind_one_of(own: &[IpAddr], family: AddressFamily, refused: io::Error) -> io::Result<Socket> {
    let mut usable = own.iter().filter(|address| is_usable(address, family));
    usable.next().map_or(Err(refused), |address| Socket::bind(SocketAddr::new(*address, 0)))
}

fn listed(all: &BTreeMap<String, Vec<IpAddr>>) -> String {
    let with = all.iter().filter(|(_, addresses)| !addresses.is_empty());
    let one = |(name, addresses): (&String, &Vec<IpAddr>)| {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        format!("{name} {}", addresses.join(" "))
    };
    with.map(one).collect::<Vec<_>>().join(", ")
}

/// The family of the centre's address; IPv4 where none is found.
fn family_of(found: Option<&SocketAddr>) -> AddressFamily {
    found.map_or(AddressFamily::V4, AddressFamily::of_socket)
}

/// Whether a socket can be bound to an address of this family as it is: a link-local one needs a
/// zone.
fn is_usable(address: &IpAddr, family: AddressFamily) -> bool {
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    AddressFamily::of(address) == family && !is_link_local
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
pub fn resolve_in(address: &str, family: AddressFamily) -> Result<SocketAddr, String> {
    let found = addresses(address)?.find(|found| AddressFamily::of_socket(found) == family);
    found.ok_or_else(|| format!("`{address}` has no {family} address, as the path needs"))
}

fn addresses(address: &str) -> Result<impl Iterator<Item = SocketAddr>, String> {
    address.to_socket_addrs().map_err(|error| format!("`{address}` is not found ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn opener() -> PathSocketOpener {
        PathSocketOpener {
            identity: skyhaul_quic::Identity::from_seed(&[1; 32]).expect("a key").into(),
            line: toml::from_str("rate = \"10 Mbit/s\"").expect("a line"),
            centre: vec!["127.0.0.1:9".to_owned()],
            clock: Clock::start(),
        }
    }

    fn path(text: &str) -> LinePath {
        toml::from_str(text).expect("a path")
    }

    #[test]
    fn an_interface_that_is_there_gives_a_socket_of_the_remotes_family() {
        let opened = opener().open(&path("interface = \"lo\"")).expect("a socket");
        assert!(opened.family == AddressFamily::V4);
        assert!(opened.endpoint.local_addr().expect("bound").is_ipv4());
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
        assert!(bind_one_of(&own, AddressFamily::V4, refused()).is_ok());
        assert!(
            bind_one_of(&own, AddressFamily::V6, refused()).is_err(),
            "a link-local address needs a zone"
        );
    }

    #[test]
    fn names_are_looked_up_in_the_family_that_is_needed() {
        assert_eq!(resolve_in("127.0.0.1:9", AddressFamily::V4).expect("found").port(), 9);
        assert!(resolve_in("127.0.0.1:9", AddressFamily::V6).unwrap_err().contains("no IPv6"));
    }
}
