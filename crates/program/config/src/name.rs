//! Names, addresses and sizes that have rules of their own.

use skyhaul_units::ByteCount;
use std::str::FromStr;

/// The name of a node or a channel: it stands in status output, in logs and in the names of
/// folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The name of a network interface of this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(String);

/// Why a name, address or size was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A node or channel name that is not a valid folder name everywhere.
    #[error(
        "`{0}` is not a name; write 1 to 64 of a-z, A-Z, 0-9, `-`, `_` and `.`, the first a letter \
        or digit"
    )]
    Name(String),
    /// Not a host and a port.
    #[error(
        "`{0}` is not an address; write it like \"centre.example.org:4700\" or \"192.0.2.1:4700\""
    )]
    Address(String),
    /// Not the name of a network interface.
    #[error("`{0}` is not an interface's name; write it as `ip link` shows it, such as \"eth1\"")]
    Interface(String),
    /// A packet size that no path has.
    #[error(
        "`{0}` is not a packet size of a line; write it like \"1500 B\", from 1280 B to 9216 B"
    )]
    Mtu(String),
}

/// A host name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    host: String,
    port: u16,
}

/// The largest IP packet that a line carries whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtu(u16);

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl InterfaceName {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HostPort {
    /// The host's name or address, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// The port, 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Mtu {
    /// The size of the IP packet with its headers.
    pub fn size(self) -> ByteCount {
        ByteCount::new(u64::from(self.0))
    }
}

impl Name {
    /// A name that a program gives: `word-number`.
    pub(super) fn numbered(word: &str, number: usize) -> Self {
        Self(format!("{word}-{number}"))
    }
}

impl FromStr for InterfaceName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
        let known = (1..=MAX_INTERFACE).contains(&text.len()) && text.bytes().all(plain);
        if known && text != "." && text != ".." {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError::Interface(text.to_owned()))
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if !starts_well || text.len() > MAX_NAME || !text.bytes().all(plain) {
            return Err(NameError::Name(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for HostPort {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = || NameError::Address(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(refuse)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let known = match bare {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_host_byte),
        };
        if !known || host.len() > MAX_HOST {
            return Err(refuse());
        }
        Ok(Self { host: bare.unwrap_or(host).to_owned(), port })
    }
}

impl FromStr for Mtu {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let size =
            text.parse::<ByteCount>().ok().and_then(|size| u16::try_from(size.as_u64()).ok());
        match size {
            Some(size) if (MIN_MTU..=MAX_MTU).contains(&size) => Ok(Self(size)),
            _ => Err(NameError::Mtu(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}
impl std::fmt::Display for Mtu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// `Deserialize` through `FromStr`.
macro_rules! from_text {
    ($($type:ty),+) => { $(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+ };
}
pub(super) use from_text;
from_text!(Name, InterfaceName, HostPort, Mtu);

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// A folder's name has at most 255 bytes; the rest is for what is added to it.
const MAX_NAME: usize = 64;
/// Linux's IFNAMSIZ without the end mark (netdevice(7)).
const MAX_INTERFACE: usize = 15;
/// RFC 1035 2.3.4: the longest host name.
const MAX_HOST: usize = 255;
/// RFC 9000 14: QUIC needs datagrams of 1200 bytes; 1280 is also the least that IPv6 carries (RFC
/// 8200 5).
const MIN_MTU: u16 = 1280;
/// The usual limit of Ethernet with jumbo frames.
const MAX_MTU: u16 = 9216;
