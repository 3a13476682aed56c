//! What is forwarded, as `-L` names it: from a port or socket file here to a target that a far node connects to.

use crate::target::{Target, TargetError, is_host};
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where applications come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    /// A TCP port of one of this host's addresses.
    Tcp(SocketAddr),
    /// A UNIX stream socket.
    Unix(String),
}

/// `[BIND:]PORT=NODE:HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Where applications come in: of a port alone, at the loopback address.
    pub local: Local,
    /// The far node.
    pub node: String,
    /// Where that connects to.
    pub target: Target,
}

/// Why a text is no forward.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The form.
    #[error(
        "`{0}` is no forward ({1}); write it like 8080=centre:10.0.0.5:80 or 127.0.0.1:8080=centre:unix:/run/a.sock"
    )]
    Form(String, &'static str),
    /// The target.
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
            return Err(form("the far node's name has other characters than letters, digits, - and ."));
        }
        Ok(Self { local, node: node.to_owned(), target: target.parse()? })
    }
}

impl FromStr for Local {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.starts_with("unix:") {
            return match text.parse() {
                Ok(Target::Unix(path)) => Ok(Self::Unix(path)),
                _ => Err("a socket's path begins with / and has at most 107 bytes"),
            };
        }
        if let Ok(port) = text.parse() {
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self::Tcp).map_err(|_| "what stands before the `=` is no port, or address and port")
    }
}

impl core::fmt::Display for Local {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
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
        assert_eq!((forward.node.as_str(), forward.target.to_string().as_str()), ("centre", "archive:80"));
        let forward: Forward = "[::]:8080=centre:[::1]:80".parse().unwrap();
        assert_eq!(forward.local.to_string(), "[::]:8080");
        let forward: Forward = "unix:/run/a.sock=centre:unix:/run/b.sock".parse().unwrap();
        assert_eq!(forward.target, Target::Unix("/run/b.sock".to_owned()));
    }

    #[test]
    fn what_is_no_forward_says_what_is_wrong() {
        for (text, part) in [
            ("8080", "the `=` is missing"),
            ("8080=", "the far node is missing"),
            ("x=centre:a:1", "no port, or address and port"),
            ("8080=centre:80", "the port is missing"),
            ("8080=a b:c:80", "the far node's name"),
        ] {
            let error = text.parse::<Forward>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
