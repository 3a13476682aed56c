//! Listening for connections to other hosts, which a router's rules divert here (TPROXY): one socket option.
#![allow(unsafe_code, reason = "one call of setsockopt(2)")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Lets a socket have addresses that are not this host's (IP_TRANSPARENT, ip(7); IPV6_TRANSPARENT).
///
/// # Errors
/// This needs CAP_NET_ADMIN.
pub(super) fn allow(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    let (level, name) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
    };
    let value: libc::c_int = 1;
    // SAFETY: the descriptor is open for the length of the call, and the pointer and length are those of `value`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
