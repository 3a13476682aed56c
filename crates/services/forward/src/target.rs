//! Targets of forwards: a host and a TCP or UDP port, or a socket file.

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

/// What a node connects to for its far node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A TCP port of a host: its address, or a name that the connecting node looks up.
    Tcp(String, u16),
    /// A UDP port of a host.
    Udp(String, u16),
    /// A UNIX stream socket.
    Unix(String),
}

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a target ({reason}); write HOST:PORT, [IPv6]:PORT, udp:HOST:PORT or unix:/path"
)]
pub struct TargetError {
    text: String,
    reason: &'static str,
}

/// The longest target as a text, in bytes: a name of 253 (RFC 1035 2.3.4) and a port, or a path of
/// 107 (`unix(7)`).
pub const TARGET_MAX: usize = 300;
const HOST_MAX: usize = 253;
const PATH_MAX: usize = 107;

impl Target {
    /// A TCP port of an address.
    pub fn of(address: std::net::SocketAddr) -> Self {
        Self::Tcp(address.ip().to_string(), address.port())
    }

    /// The same host and port for datagrams; `None` for a socket file.
    pub fn for_datagrams(self) -> Option<Self> {
        match self {
            Self::Tcp(host, port) | Self::Udp(host, port) => Some(Self::Udp(host, port)),
            Self::Unix(_) => None,
        }
    }

    /// Whether it takes datagrams.
    pub const fn is_for_datagrams(&self) -> bool {
        matches!(self, Self::Udp(..))
    }

    /// The host.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp(host, _) | Self::Udp(host, _) => Some(host),
            Self::Unix(_) => None,
        }
    }

    /// The host's address, if it is not a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host()?.parse().ok()
    }

    /// The port, if it has one.
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(_, port) | Self::Udp(_, port) => Some(*port),
            Self::Unix(_) => None,
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let error = |reason| TargetError { text: text.to_owned(), reason };
        if let Some(rest) = text.strip_prefix("udp:") {
            return match Self::connection(rest)? {
                Self::Tcp(host, port) => Ok(Self::Udp(host, port)),
                _ => Err(error("datagrams go to a host and a port")),
            };
        }
        Self::connection(text)
    }
}

impl Target {
    /// A target of connections.
    fn connection(text: &str) -> Result<Self, TargetError> {
        let error = |reason| TargetError { text: text.to_owned(), reason };
        if let Some(path) = text.strip_prefix("unix:") {
            let fits = path.starts_with('/') && path.len() <= PATH_MAX && !path.contains('\0');
            return match fits {
                true => Ok(Self::Unix(path.to_owned())),
                false => Err(error("a socket's path must begin with / and have at most 107 bytes")),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| error("the port is missing"))?;
        let port: u16 = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| error("the port is not valid"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) if host.parse::<std::net::Ipv6Addr>().is_ok() => host,
            Some(_) => return Err(error("the text in brackets is not an IPv6 address")),
            None if is_host(host) => host,
            None => return Err(error("the host is not a name or address")),
        };
        Ok(Self::Tcp(host.to_owned(), port))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, host, port) = match self {
            Self::Tcp(host, port) => ("", host, port),
            Self::Udp(host, port) => ("udp:", host, port),
            Self::Unix(path) => return write!(f, "unix:{path}"),
        };
        match host.contains(':') {
            true => write!(f, "{before}[{host}]:{port}"),
            false => write!(f, "{before}{host}:{port}"),
        }
    }
}

/// A name of letters, digits, hyphens, underscores and dots, or an IPv4 address.
pub(crate) fn is_host(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    (1..=HOST_MAX).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_written_the_same() {
        for text in [
            "10.0.0.5:80",
            "archive.example.org:443",
            "[2001:db8::1]:22",
            "unix:/run/a.sock",
            "udp:10.0.0.5:53",
            "udp:[::1]:53",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_target_says_what_is_wrong() {
        for (text, part) in [
            ("10.0.0.5", "the port is missing"),
            ("10.0.0.5:0", "the port is not valid"),
            (":80", "not a name or address"),
            ("::1:80", "not a name or address"),
            ("[nowhere]:80", "not an IPv6 address"),
            ("unix:relative", "must begin with /"),
            ("udp:unix:/run/a.sock", "datagrams go to a host"),
            ("udp:udp:a:1", "not a name or address"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
