//! Where the end that connects may connect: nothing that no rule names.

use crate::target::{Target, is_host};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use std::net::IpAddr;

/// One rule: addresses or a name, and ports; or a socket file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Net { net: IpAddr, bits: u8, ports: RangeInclusive<u16> },
    Name { name: String, ports: RangeInclusive<u16> },
    Unix(String),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no rule ({reason}); write it like 10.0.0.0/8:6000-6010, archive.example.org:443, [::1]:22 or unix:/run/a.sock"
)]
pub struct AllowError {
    text: String,
    reason: &'static str,
}

impl Allow {
    /// Whether a connection to `target` may be made at `address`, which its host is, or was looked up to be. A rule for
    /// addresses does not look at names, and a rule for a name takes whatever the name stands for.
    pub fn permits(&self, target: &Target, address: Option<IpAddr>) -> bool {
        let fits = |ports: &RangeInclusive<u16>| target.port().is_some_and(|port| ports.contains(&port));
        match (&self.what, target) {
            (What::Unix(allowed), Target::Unix(path)) => allowed == path,
            (What::Net { net, bits, ports }, _) => {
                fits(ports) && address.is_some_and(|address| contains(*net, *bits, address))
            }
            (What::Name { name, ports }, Target::Tcp(host, _)) => {
                fits(ports) && name.eq_ignore_ascii_case(host)
            }
            (What::Unix(_), _) | (What::Name { .. }, Target::Unix(_)) => false,
        }
    }
}

/// An address that IPv6 maps (RFC 4291 2.5.5.2) is the one it stands for.
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
        if text.starts_with("unix:") {
            let target = text.parse().map_err(|_| error("a socket's path begins with /"))?;
            return match target {
                Target::Unix(path) => Ok(Self { what: What::Unix(path) }),
                Target::Tcp(..) => Err(error("a socket's path begins with /")),
            };
        }
        let (host, ports) = text.rsplit_once(':').ok_or_else(|| error("the ports are missing"))?;
        let ports = range(ports).ok_or_else(|| error("the ports are none"))?;
        let (base, bits) = host.split_once('/').map_or((host, None), |(base, bits)| (base, Some(bits)));
        let in_brackets = base.strip_prefix('[').and_then(|base| base.strip_suffix(']'));
        let Ok(net) = in_brackets.unwrap_or(base).parse::<IpAddr>() else {
            return match bits.is_none() && in_brackets.is_none() && is_host(base) {
                true => Ok(Self { what: What::Name { name: base.to_owned(), ports } }),
                false => Err(error("the host is no name, address or network")),
            };
        };
        if net.is_ipv6() && in_brackets.is_none() {
            return Err(error("an IPv6 address stands in brackets, and the length of a network behind them"));
        }
        let most = if net.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
        let bits = bits.ok_or_else(|| error("the length of the network is none"))?;
        Ok(Self { what: What::Net { net, bits, ports } })
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(1..=u16::MAX);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    fn a_network_and_ports_are_allowed_and_nothing_beside() {
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
    fn a_network_of_no_bits_is_all_of_its_kind() {
        assert!(permits("0.0.0.0/0:*", "127.0.0.1:1", "127.0.0.1"));
        assert!(!permits("0.0.0.0/0:*", "[::1]:1", "::1"));
        assert!(permits("[::]/0:*", "[::1]:65535", "::1"));
    }

    #[test]
    fn names_and_socket_files_are_allowed_as_they_are_written() {
        assert!(permits("archive.example.org:443", "Archive.Example.ORG:443", "192.0.2.1"));
        assert!(!permits("archive.example.org:443", "192.0.2.1:443", "192.0.2.1"));
        assert!(permits("unix:/run/a.sock", "unix:/run/a.sock", ""));
        assert!(!permits("unix:/run/a.sock", "unix:/run/b.sock", ""));
    }

    #[test]
    fn what_is_no_rule_says_what_is_wrong() {
        for (text, part) in [
            ("10.0.0.0/8", "the ports are missing"),
            ("10.0.0.0/33:1", "length of the network"),
            ("10.0.0.0/8:9-8", "the ports are none"),
            ("10.0.0.0/8:0", "the ports are none"),
            ("a b:1", "no name, address or network"),
            ("::1:22", "in brackets"),
            ("unix:x", "begins with /"),
        ] {
            let error = text.parse::<Allow>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
