//! The far node that a command connects to: its addresses, its key, and this end's sockets.

use super::book::{KnownNode, KnownNodes};
use super::ip::{IpVersion, any_port};
use super::knock;
use super::perf::keys::Keys;
use super::perf::line::LineFlags;
use skyhaul_channels_io::{ClientSetup, PathChoice};
use skyhaul_config::{HostPort, Name};
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{PathOptions, SessionConfig};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// A far node as a command line names it.
#[derive(Clone, Copy)]
pub struct FarName<'a> {
    /// The known nodes, `NAME=ADDR`.
    pub known: &'a [String],
    /// The name of the one that is meant.
    pub name: &'a str,
}

/// This end, as the far node sees it.
pub struct OwnEnd<'a> {
    /// Its name, for the other end's log.
    pub name: &'a str,
    /// The configuration of its sessions.
    pub session: SessionConfig,
}

/// Where a far node is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FarPlace {
    /// Not empty.
    pub addresses: Vec<SocketAddr>,
    /// Its keys, if it is a node of the address book.
    pub keys: Vec<Fingerprint>,
}

/// The port of an address that has none.
#[derive(Debug, Clone, Copy)]
pub enum DefaultPort {
    /// An address needs a port, such as the one of the example.
    None {
        /// An address with a port.
        example: &'static str,
    },
    /// The service is found at this port, of nodes of the address book too.
    Of(u16),
}

/// The addresses and the key of the far node, and this end's sockets.
///
/// # Errors
/// The node is not known, or the keys cannot be used.
pub fn far(
    node: FarName<'_>,
    keys: &Keys,
    line: &LineFlags,
    own: OwnEnd<'_>,
) -> Result<(Vec<SocketAddr>, Fingerprint, ClientSetup), Failure> {
    let mut place = FarPlace::default();
    for text in node.known {
        let Some((name, address)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
        else {
            let what = format!("`{text}` is not a node");
            return Err(Failure::new(Exit::Usage, &what, "write it like far=198.51.100.1:4740"));
        };
        if name == node.name {
            place.join(find(address, PORT)?);
        }
    }
    if place.addresses.is_empty() {
        place = in_book(node.name, keys, PORT)?;
    } else {
        place.complete(node.name, keys)?;
    }
    let FarPlace { addresses: remotes, keys: known } = place;
    let accepted = keys.of_far(&known, remotes.iter().copied())?;
    let path = line.path(IpVersion::largest(remotes.iter().copied()))?;
    let peer = knock::shown_key(&accepted, path, remotes[0])?;
    let bind = remotes.iter().map(|remote| any_port(*remote));
    let setup = ClientSetup {
        bind: bind.collect(),
        path,
        session: own.session,
        ..ClientSetup::new(own.name, accepted.own)
    };
    Ok((remotes, peer, setup))
}

/// A path from each socket to its address.
pub fn ways(remotes: &[SocketAddr]) -> Vec<PathChoice> {
    let way = |(socket, remote): (usize, &SocketAddr)| PathChoice {
        socket,
        remote: *remote,
        options: PathOptions::default(),
    };
    remotes.iter().enumerate().map(way).collect()
}

/// The node of this name in the address book.
///
/// # Errors
/// There is none, it has no address, or the book has an error.
pub fn in_book(name: &str, keys: &Keys, port: DefaultPort) -> Result<FarPlace, Failure> {
    let nodes = KnownNodes::load()?;
    let Some(known) = nodes.find(name) else {
        let what = format!("the far node `{name}` is not known");
        let example = match port {
            DefaultPort::None { example } => example,
            DefaultPort::Of(_) => "198.51.100.1",
        };
        let flag = format!("give its address, like --node {name}={example}");
        let help = match nodes.closest(name) {
            Some(close) => format!("did you mean `{close}` of the address book? Or {flag}"),
            None if keys.is_insecure() => flag,
            None => format!("{flag}, or add it to the address book with `skyhaul pair`"),
        };
        return Err(Failure::new(Exit::Usage, &what, &help));
    };
    place_of(known, Port::AsWritten, port)
}

/// Where `text` leads: a node of the address book, `NAME` or `NAME:PORT`, or an address.
///
/// # Errors
/// It leads nowhere, or the book has an error.
pub fn find(text: &str, port: DefaultPort) -> Result<FarPlace, Failure> {
    if let Some(address) = literal(text, port) {
        return Ok(FarPlace { addresses: vec![address], keys: Vec::new() });
    }
    let (host, given) = match text.rsplit_once(':') {
        Some((host, given)) => (host, given.parse::<u16>().ok().map_or(Port::None, Port::Given)),
        None => (text, Port::AsWritten),
    };
    let nodes = match host.parse::<Name>() {
        Ok(_) => Some(KnownNodes::load()?),
        Err(_) => None,
    };
    let known = nodes.as_ref().and_then(|nodes| nodes.find(host));
    if let Some(known) = known.filter(|_| !matches!(given, Port::None)) {
        return place_of(known, given, port);
    }
    let found = resolve(text, port).map_err(|failure| {
        match nodes.as_ref().and_then(|nodes| nodes.closest(host)) {
            Some(close) => failure.suggesting(&format!("did you mean the node `{close}`?")),
            None => failure,
        }
    });
    Ok(FarPlace { addresses: vec![found?], keys: Vec::new() })
}

/// The port behind a name.
#[derive(Debug, Clone, Copy)]
enum Port {
    AsWritten,
    Given(u16),
    /// Something that is no port.
    None,
}

fn place_of(known: &KnownNode, given: Port, port: DefaultPort) -> Result<FarPlace, Failure> {
    let name = &known.peer.name;
    let at = |address: &HostPort| {
        let number = match (given, port) {
            (Port::Given(number), _) | (Port::AsWritten, DefaultPort::Of(number)) => number,
            _ => address.port(),
        };
        let mut found = (address.host(), number).to_socket_addrs().map_err(|error| {
            let what = format!("the address `{address}` of `{name}` is not found ({error})");
            let help = "correct it with `skyhaul node remove` and `skyhaul node add`";
            Failure::new(Exit::Usage, &what, help).at(&known.file.display().to_string())
        })?;
        Ok(found.next())
    };
    let mut addresses = Vec::new();
    let mut failure = None;
    for address in known.peer.addresses.iter() {
        match at(address) {
            Ok(found) => addresses.extend(found),
            // The others may lead there.
            Err(error) => failure = Some(error),
        }
    }
    if addresses.is_empty() {
        return Err(failure.unwrap_or_else(|| {
            let what = format!("the node `{name}` has no address in the address book");
            let help = format!("give one, like `skyhaul node add {name} 198.51.100.1:4740`");
            Failure::new(Exit::Usage, &what, &help).at(&known.file.display().to_string())
        }));
    }
    Ok(FarPlace { addresses, keys: known.peer.fingerprints.iter().collect() })
}

impl FarPlace {
    /// Takes the addresses and keys of another place of the node.
    pub fn join(&mut self, other: Self) {
        self.addresses.extend(other.addresses);
        for key in other.keys {
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }

    /// Takes the keys of the address book for a node whose address was given, if no flag has one.
    ///
    /// # Errors
    /// The book has an error.
    pub fn complete(&mut self, name: &str, keys: &Keys) -> Result<(), Failure> {
        if self.keys.is_empty()
            && keys.needs_peer()
            && let Some(known) = KnownNodes::load()?.find(name)
        {
            self.keys = known.peer.fingerprints.iter().collect();
        }
        Ok(())
    }
}

/// An address in numbers.
fn literal(text: &str, port: DefaultPort) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let DefaultPort::Of(port) = port else { return None };
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().ok().map(|address| (address, port).into())
}

/// The first address of a host.
fn resolve(text: &str, port: DefaultPort) -> Result<SocketAddr, Failure> {
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = match port {
        DefaultPort::Of(port) if !has_port => (text, port).to_socket_addrs(),
        DefaultPort::Of(_) | DefaultPort::None { .. } => text.to_socket_addrs(),
    };
    let refuse = |why: &str| match port {
        DefaultPort::None { example } => {
            let help = format!("give a host and a port, such as {example}");
            Failure::new(Exit::Usage, &format!("`{text}` is not found ({why})"), &help)
        }
        DefaultPort::Of(_) => {
            let help = "give a name or address, with a port as in 192.0.2.7:4720 or \
                        [2001:db8::1]:4720";
            Failure::new(Exit::Usage, &format!("`{text}` has no address ({why})"), help)
        }
    };
    let mut found = found.map_err(|error| refuse(&error.to_string()))?;
    found.next().ok_or_else(|| refuse("no address"))
}

const PORT: DefaultPort = DefaultPort::None { example: "198.51.100.1:4740" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_given_one_or_the_default() {
        let found = |host: &str| {
            find(host, DefaultPort::Of(4720)).map(|place| place.addresses[0].to_string()).ok()
        };
        assert_eq!(found("192.0.2.7").as_deref(), Some("192.0.2.7:4720"));
        assert_eq!(found("192.0.2.7:99").as_deref(), Some("192.0.2.7:99"));
        assert_eq!(found("2001:db8::1").as_deref(), Some("[2001:db8::1]:4720"));
        assert_eq!(found("[2001:db8::1]:99").as_deref(), Some("[2001:db8::1]:99"));
        assert_eq!(found("192.0.2.7:70000"), None);
    }
}
