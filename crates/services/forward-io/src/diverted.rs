//! The socket option for connections to other hosts that a router's rules divert here (TPROXY).

use skyhaul_net::option;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Lets a socket have addresses that are not this host's (IP_TRANSPARENT, ip(7); IPV6_TRANSPARENT).
///
/// # Errors
/// This needs CAP_NET_ADMIN.
pub(super) fn allow(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    let (level, name) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
    };
    option::set(socket, level, name, 1)
}
