//! The version of IP that a line carries.

use std::net::SocketAddr;

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
