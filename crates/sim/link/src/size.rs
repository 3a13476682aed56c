//! What a datagram costs on the line.

use core::net::IpAddr;
use skyhaul_units::ByteCount;

/// The size of the IP packet that carries a UDP payload of `payload` bytes to or from `address`:
/// 28 bytes more over IPv4, 48 over IPv6. A v4-mapped IPv6 address travels as IPv4.
pub const fn ip_packet_size(address: IpAddr, payload: usize) -> ByteCount {
    let header = match address {
        IpAddr::V4(_) => IPV4_HEADER,
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => IPV4_HEADER,
        IpAddr::V6(_) => IPV6_HEADER,
    };
    ByteCount::of(payload + header + UDP_HEADER)
}

/// RFC 791 3.1, without options.
const IPV4_HEADER: usize = 20;
/// RFC 8200 3, without extension headers.
const IPV6_HEADER: usize = 40;
/// RFC 768.
const UDP_HEADER: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn headers_are_counted_by_family() {
        let v4 = Ipv4Addr::LOCALHOST;
        assert_eq!(ip_packet_size(v4.into(), 1472), ByteCount::new(1500));
        assert_eq!(ip_packet_size(Ipv6Addr::LOCALHOST.into(), 1452), ByteCount::new(1500));
        assert_eq!(ip_packet_size(v4.to_ipv6_mapped().into(), 1472), ByteCount::new(1500));
    }
}
