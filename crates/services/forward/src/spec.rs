//! Forwards as `-L`, `-R` and `-D` name them: from a port or socket file of one node to a target of
//! the other.

use crate::target::{Target, TargetError, is_host};
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where applications connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    /// A TCP port of one of this host's addresses.
    Tcp(SocketAddr),
    /// A UDP port of one of this host's addresses.
    Udp(SocketAddr),
    /// A UNIX stream socket.
    Unix(String),
}

/// `[BIND:]PORT=NODE:HOST:PORT`, after `udp:` for datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Where applications connect; a port alone means the loopback address.
    pub local: Local,
    /// The far node.
    pub node: String,
    /// Where the other node connects to.
    pub target: Target,
}

/// `[BIND:]PORT[=NODE]`: applications, or connections that a router diverts, name their targets
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entrance {
    /// Where they connect.
    pub local: Local,
    /// The far node; optional if there is only one.
    pub node: Option<String>,
}

/// One forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Applications connect here; the far node connects to the target.
    Local(Forward),
    /// Applications connect at the far node; this one connects to the target.
    Remote(Forward),
    /// Applications connect here, and name their targets by SOCKS.
    Socks(Entrance),
    /// Diverted connections come in here; the far node connects to their targets.
    Transparent(Entrance),
}

impl What {
    /// The far node, if it is named.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Local(forward) | Self::Remote(forward) => Some(&forward.node),
            Self::Socks(entrance) | Self::Transparent(entrance) => entrance.node.as_deref(),
        }
    }
}

/// Why a text is not a forward.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Its form is wrong.
    #[error(
        "`{0}` is not a forward ({1}); write it like 8080=centre:10.0.0.5:80 or \
        127.0.0.1:8080=centre:unix:/run/a.sock"
    )]
    Form(String, &'static str),
    /// It is not an entry port.
    #[error("`{0}` is not an entry port ({1}); write it like 1080, 127.0.0.1:1080 or 1080=centre")]
    Entrance(String, &'static str),
    /// Its target is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl FromStr for Forward {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let form = |reason| SpecError::Form(text.to_owned(), reason);
        let (local, far) = text.split_once('=').ok_or_else(|| form("the `=` is missing"))?;
        let local = local.parse().map_err(form)?;
        let (node, target) = far.split_once(':').ok_or_else(|| form("the far node is missing"))?;
        if !is_host(node) {
            return Err(form(NO_NODE));
        }
        let target: Target = target.parse()?;
        let target = match (&local, target.is_for_datagrams()) {
            (Local::Udp(_), _) => target
                .for_datagrams()
                .ok_or_else(|| form("datagrams go to a port, not to a file"))?,
            (_, true) => return Err(form("write `udp:` before the first port")),
            (_, false) => target,
        };
        Ok(Self { local, node: node.to_owned(), target })
    }
}

impl FromStr for Entrance {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let error = |reason| SpecError::Entrance(text.to_owned(), reason);
        let (local, node) =
            text.split_once('=').map_or((text, None), |(local, node)| (local, Some(node)));
        match local.parse().map_err(error)? {
            Local::Udp(_) => Err(error("it begins with a TCP connection")),
            _ if node.is_some_and(|node| !is_host(node)) => Err(error(NO_NODE)),
            local => Ok(Self { local, node: node.map(str::to_owned) }),
        }
    }
}

const NO_NODE: &str = "the far node's name may have letters, digits, - and . only";

impl Local {
    /// The address, if it has one.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Udp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The same with the port that the system gave.
    pub fn at(&self, port: u16) -> Self {
        match self {
            Self::Tcp(address) => Self::Tcp(SocketAddr::new(address.ip(), port)),
            Self::Udp(address) => Self::Udp(SocketAddr::new(address.ip(), port)),
            Self::Unix(path) => Self::Unix(path.clone()),
        }
    }
}

impl FromStr for Local {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.starts_with("unix:") {
            return match text.parse() {
                Ok(Target::Unix(path)) => Ok(Self::Unix(path)),
                _ => Err("a socket's path must begin with / and have at most 107 bytes"),
            };
        }
        if let Some(rest) = text.strip_prefix("udp:") {
            return port(rest)
                .map(Self::Udp)
                .ok_or("the text after `udp:` is not a port, or address and port");
        }
        port(text)
            .map(Self::Tcp)
            .ok_or("the text before the `=` is not a port, or address and port")
    }
}

/// `PORT` or `ADDRESS:PORT`.
fn port(text: &str) -> Option<SocketAddr> {
    match text.parse() {
        Ok(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Err(_) => text.parse().ok(),
    }
}

impl core::fmt::Display for Local {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_the_loopback_address() {
        let forward: Forward = "8080=centre:archive:80".parse().unwrap();
        assert_eq!(forward.local.to_string(), "127.0.0.1:8080");
        assert_eq!(
            (forward.node.as_str(), forward.target.to_string().as_str()),
            ("centre", "archive:80")
        );
        let forward: Forward = "[::]:8080=centre:[::1]:80".parse().unwrap();
        assert_eq!(forward.local.to_string(), "[::]:8080");
        let forward: Forward = "unix:/run/a.sock=centre:unix:/run/b.sock".parse().unwrap();
        assert_eq!(forward.target, Target::Unix("/run/b.sock".to_owned()));
    }

    #[test]
    fn datagrams_have_a_prefix_before_the_port() {
        for text in ["udp:5353=centre:10.0.0.5:53", "udp:127.0.0.1:5353=centre:udp:10.0.0.5:53"] {
            let forward: Forward = text.parse().unwrap();
            assert_eq!(forward.local.to_string(), "udp:127.0.0.1:5353");
            assert_eq!(forward.target.to_string(), "udp:10.0.0.5:53");
        }
    }

    #[test]
    fn an_entrance_has_a_port_and_optionally_a_node() {
        let entrance: Entrance = "1080".parse().unwrap();
        assert_eq!((entrance.local.to_string().as_str(), entrance.node), ("127.0.0.1:1080", None));
        let entrance: Entrance = "[::1]:1080=centre".parse().unwrap();
        assert_eq!(
            (entrance.local.to_string().as_str(), entrance.node.as_deref()),
            ("[::1]:1080", Some("centre"))
        );
        for (text, part) in [
            ("x", "not a port"),
            ("1080=a b", "the far node's name"),
            ("udp:1080", "a TCP connection"),
        ] {
            assert!(text.parse::<Entrance>().unwrap_err().to_string().contains(part), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_forward_says_what_is_wrong() {
        for (text, part) in [
            ("8080", "the `=` is missing"),
            ("8080=", "the far node is missing"),
            ("x=centre:a:1", "not a port, or address and port"),
            ("8080=centre:80", "the port is missing"),
            ("8080=a b:c:80", "the far node's name"),
            ("udp:53=centre:unix:/run/a.sock", "not to a file"),
            ("53=centre:udp:a:53", "before the first port"),
            ("udp:unix:/a=centre:a:53", "after `udp:`"),
        ] {
            let error = text.parse::<Forward>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
