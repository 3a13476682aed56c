//! Rules for what a node connects to and listens at for its far nodes. What no rule names is
//! forbidden.

use crate::spec::Local;
use crate::target::{Target, is_host};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use std::net::IpAddr;

/// One rule: addresses or a name, and TCP ports, or UDP ports after `udp:`; or a socket file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    datagrams: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Net { net: IpAddr, bits: u8, ports: RangeInclusive<u16> },
    Name { name: String, ports: RangeInclusive<u16> },
    Unix(String),
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a rule ({reason}); write it like 10.0.0.0/8:6000-6010, \
    archive.example.org:443, [::1]:22, udp:10.0.0.5:53 or unix:/run/a.sock"
)]
pub struct AllowError {
    text: String,
    reason: &'static str,
}

impl Allow {
    /// Whether a connection to `target` is allowed at `address`, the address of its host. A rule
    /// for addresses ignores names, and a rule for a name allows any address that the name has.
    /// Servers on this host's loopback interface rely on being reached from this host only: a rule
    /// must name that interface.
    pub fn permits(&self, target: &Target, address: Option<IpAddr>) -> bool {
        let fits = |ports: &RangeInclusive<u16>| {
            self.datagrams == target.is_for_datagrams()
                && target.port().is_some_and(|port| ports.contains(&port))
        };
        match &self.what {
            What::Unix(allowed) => matches!(target, Target::Unix(path) if path == allowed),
            What::Net { net, bits, ports } => {
                fits(ports)
                    && address.is_some_and(|address| {
                        contains(*net, *bits, address)
                            && (!is_own(address) || is_of_own(*net, *bits))
                    })
            }
            What::Name { name, ports } => {
                let is_open =
                    || address.is_none_or(|address| !is_own(address) || names_loopback(name));
                fits(ports)
                    && target.host().is_some_and(|host| name.eq_ignore_ascii_case(host))
                    && is_open()
            }
        }
    }

    /// The ports that it names; none of a socket file, and none where it names all.
    pub fn ports(&self) -> Option<RangeInclusive<u16>> {
        match &self.what {
            What::Net { ports, .. } | What::Name { ports, .. } => {
                (*ports != ALL_PORTS).then(|| ports.clone())
            }
            What::Unix(_) => None,
        }
    }

    /// The socket file that it names.
    pub fn socket_file(&self) -> Option<&str> {
        match &self.what {
            What::Unix(path) => Some(path),
            What::Net { .. } | What::Name { .. } => None,
        }
    }

    /// Whether the far end may ask this one to listen at `local`. Port 0, which the system chooses,
    /// needs a rule for all ports.
    pub fn permits_listening(&self, local: &Local) -> bool {
        match (local, &self.what) {
            (Local::Unix(path), What::Unix(allowed)) => path == allowed,
            (Local::Tcp(address) | Local::Udp(address), What::Net { net, bits, ports }) => {
                let port = address.port();
                let fits = ports.contains(&port) || (port == 0 && *ports == ALL_PORTS);
                fits && self.datagrams == matches!(local, Local::Udp(_))
                    && contains(*net, *bits, address.ip())
                    && (!is_loopback(address.ip()) || is_of_own(*net, *bits))
            }
            _ => false,
        }
    }
}

/// Whether a connection to this address stays on this host: an address of the loopback interface,
/// or the unspecified one (`0.0.0.0`), which systems treat as such.
fn is_own(address: IpAddr) -> bool {
    is_loopback(address) || address.to_canonical().is_unspecified()
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether a network has only such addresses, so that a rule for it names the loopback interface.
fn is_of_own(net: IpAddr, bits: u8) -> bool {
    match net {
        IpAddr::V4(net) => (net.is_loopback() && bits >= 8) || (net.is_unspecified() && bits == 32),
        IpAddr::V6(net) => (net.is_loopback() || net.is_unspecified()) && bits == 128,
    }
}

/// Whether a name always means the loopback interface (RFC 6761 6.3).
fn names_loopback(name: &str) -> bool {
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

/// Whether a network contains an address. An IPv4-mapped address (RFC 4291 2.5.5.2) counts as the
/// IPv4 address.
fn contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, address.to_canonical()) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let shift = 32 - u32::from(bits);
            net.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let shift = 128 - u32::from(bits);
            net.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
        }
        _ => false,
    }
}

impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let error = |reason| AllowError { text: text.to_owned(), reason };
        if let Some(rest) = text.strip_prefix("udp:") {
            return match Self::connections(rest)? {
                Self { what: What::Unix(_), .. } => {
                    Err(error("datagrams go to addresses or a name, and ports"))
                }
                rule => Ok(Self { datagrams: true, ..rule }),
            };
        }
        Self::connections(text)
    }
}

impl Allow {
    /// A rule for connections.
    fn connections(text: &str) -> Result<Self, AllowError> {
        let error = |reason| AllowError { text: text.to_owned(), reason };
        if text.starts_with("unix:") {
            let target = text.parse().map_err(|_| error("a socket's path must begin with /"))?;
            return match target {
                Target::Unix(path) => Ok(Self { datagrams: false, what: What::Unix(path) }),
                Target::Tcp(..) | Target::Udp(..) => {
                    Err(error("a socket's path must begin with /"))
                }
            };
        }
        let (host, ports) = text.rsplit_once(':').ok_or_else(|| error("the ports are missing"))?;
        let ports = range(ports).ok_or_else(|| error("the ports are not valid"))?;
        let (base, bits) =
            host.split_once('/').map_or((host, None), |(base, bits)| (base, Some(bits)));
        let in_brackets = base.strip_prefix('[').and_then(|base| base.strip_suffix(']'));
        let Ok(net) = in_brackets.unwrap_or(base).parse::<IpAddr>() else {
            return match bits.is_none() && in_brackets.is_none() && is_host(base) {
                true => {
                    Ok(Self { datagrams: false, what: What::Name { name: base.to_owned(), ports } })
                }
                false => Err(error("the host is not a name, address or network")),
            };
        };
        if net.is_ipv6() && in_brackets.is_none() {
            return Err(error(
                "write an IPv6 address in brackets, and the prefix length behind them",
            ));
        }
        let most = if net.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
        let bits = bits.ok_or_else(|| error("the prefix length is not valid"))?;
        Ok(Self { datagrams: false, what: What::Net { net, bits, ports } })
    }
}

const ALL_PORTS: RangeInclusive<u16> = 1..=u16::MAX;

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(ALL_PORTS);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.datagrams { "udp:" } else { "" })?;
        let ports = match &self.what {
            What::Unix(path) => return write!(f, "unix:{path}"),
            What::Net { net: IpAddr::V6(net), bits, ports } => {
                write!(f, "[{net}]/{bits}")?;
                ports
            }
            What::Net { net, bits, ports } => {
                write!(f, "{net}/{bits}")?;
                ports
            }
            What::Name { name, ports } => {
                f.write_str(name)?;
                ports
            }
        };
        write!(f, ":{}-{}", ports.start(), ports.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(rule: &str, target: &str, address: &str) -> bool {
        let rule: Allow = rule.parse().unwrap();
        assert_eq!(rule.to_string().parse::<Allow>().unwrap(), rule);
        rule.permits(&target.parse().unwrap(), address.parse().ok())
    }

    #[test]
    fn a_network_and_ports_are_allowed_and_nothing_else() {
        let rule = "10.0.0.0/8:6000-6010";
        assert!(permits(rule, "10.9.8.7:6000", "10.9.8.7"));
        assert!(permits(rule, "archive.example.org:6010", "10.0.0.1"));
        assert!(permits(rule, "[::ffff:10.0.0.1]:6010", "::ffff:10.0.0.1"));
        for (target, address) in [
            ("10.9.8.7:5999", "10.9.8.7"),
            ("11.0.0.1:6000", "11.0.0.1"),
            ("archive.example.org:6000", "127.0.0.1"),
            ("archive.example.org:6000", "not looked up"),
            ("[::1]:6000", "::1"),
            ("unix:/run/a.sock", ""),
        ] {
            assert!(!permits(rule, target, address), "{target}");
        }
    }

    #[test]
    fn a_network_of_no_bits_is_every_address_except_loopback() {
        assert!(permits("0.0.0.0/0:*", "192.0.2.1:1", "192.0.2.1"));
        assert!(!permits("0.0.0.0/0:*", "[2001:db8::1]:1", "2001:db8::1"));
        assert!(permits("[::]/0:*", "[2001:db8::1]:65535", "2001:db8::1"));
        for (wide, target, address, named) in [
            ("0.0.0.0/0:*", "127.0.0.1:1", "127.0.0.1", "127.0.0.1:*"),
            ("0.0.0.0/0:*", "127.9.8.7:1", "127.9.8.7", "127.0.0.0/8:*"),
            ("112.0.0.0/4:*", "127.0.0.1:1", "127.0.0.1", "127.0.0.1:1"),
            ("0.0.0.0/0:*", "0.0.0.0:1", "0.0.0.0", "0.0.0.0:*"),
            ("[::]/0:*", "[::1]:1", "::1", "[::1]:1"),
            ("[::]/0:*", "[::]:1", "::", "[::]:1"),
            ("0.0.0.0/0:*", "[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", "127.0.0.1:1"),
            ("0.0.0.0/0:*", "archive.example.org:1", "127.0.0.1", "127.0.0.1:1"),
            ("archive.example.org:*", "archive.example.org:1", "127.0.0.1", "127.0.0.1:1"),
            ("archive.example.org:*", "localhost:1", "127.0.0.1", "localhost:1"),
        ] {
            assert!(!permits(wide, target, address), "{wide} {target}");
            assert!(permits(named, target, address), "{named} {target}");
        }
        let listens = |rule: &str, local: &str| {
            rule.parse::<Allow>().unwrap().permits_listening(&local.parse().unwrap())
        };
        assert!(
            !listens("0.0.0.0/0:8000", "127.0.0.1:8000")
                && listens("127.0.0.1:8000", "127.0.0.1:8000")
        );
    }

    #[test]
    fn names_and_socket_files_are_allowed_as_written() {
        assert!(permits("archive.example.org:443", "Archive.Example.ORG:443", "192.0.2.1"));
        assert!(!permits("archive.example.org:443", "192.0.2.1:443", "192.0.2.1"));
        assert!(permits("unix:/run/a.sock", "unix:/run/a.sock", ""));
        assert!(!permits("unix:/run/a.sock", "unix:/run/b.sock", ""));
    }

    #[test]
    fn ports_of_datagrams_are_not_those_of_connections() {
        assert!(permits("udp:10.0.0.0/8:53", "udp:10.0.0.5:53", "10.0.0.5"));
        assert!(permits("udp:names.example.org:53", "udp:names.example.org:53", "192.0.2.1"));
        assert!(!permits("10.0.0.0/8:53", "udp:10.0.0.5:53", "10.0.0.5"));
        assert!(!permits("udp:10.0.0.0/8:53", "10.0.0.5:53", "10.0.0.5"));
    }

    #[test]
    fn listening_is_allowed_by_address_and_port_or_path() {
        let permits = |rule: &str, local: &str| {
            rule.parse::<Allow>().unwrap().permits_listening(&local.parse().unwrap())
        };
        assert!(permits("127.0.0.1:8000-8010", "8005"));
        assert!(permits("127.0.0.1:*", "0"));
        assert!(permits("udp:0.0.0.0/0:53", "udp:0.0.0.0:53"));
        assert!(permits("unix:/run/a.sock", "unix:/run/a.sock"));
        for (rule, local) in [
            ("127.0.0.1:8000-8010", "0"),
            ("127.0.0.1:8000-8010", "0.0.0.0:8005"),
            ("127.0.0.1:53", "udp:53"),
            ("udp:127.0.0.1:53", "53"),
            ("localhost:53", "53"),
            ("unix:/run/a.sock", "unix:/run/b.sock"),
        ] {
            assert!(!permits(rule, local), "{rule} {local}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_rule_says_what_is_wrong() {
        for (text, part) in [
            ("10.0.0.0/8", "the ports are missing"),
            ("10.0.0.0/33:1", "prefix length"),
            ("10.0.0.0/8:9-8", "the ports are not valid"),
            ("10.0.0.0/8:0", "the ports are not valid"),
            ("a b:1", "not a name, address or network"),
            ("::1:22", "in brackets"),
            ("unix:x", "must begin with /"),
            ("udp:unix:/x", "datagrams go to addresses"),
            ("udp:udp:a:1", "not a name, address or network"),
        ] {
            let error = text.parse::<Allow>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
