//! The version of IP that a line carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The version of IP, which determines the size of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// Of datagrams to this address.
    pub const fn of(address: SocketAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    /// The one with the larger headers, where datagrams go to several addresses.
    pub fn largest(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        if addresses.into_iter().any(|address| address.is_ipv6()) { Self::V6 } else { Self::V4 }
    }
}

/// Any free port of this host, to reach `remote` from.
pub const fn any_port(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}
