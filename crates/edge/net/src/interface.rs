//! Network interfaces of this host: their names and addresses, and sockets that stay on one of
//! them.
#![allow(
    unsafe_code,
    reason = "getifaddrs(3) gives a list of C structures; setsockopt(2) for one option"
)]

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// The interfaces of this host, by name, with their addresses of both families. Those without an
/// address are included.
///
/// # Errors
/// As the system says.
pub fn interfaces() -> io::Result<BTreeMap<String, Vec<IpAddr>>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `head` is a valid place for the list's first element; the list is freed below, and
    // not used afterwards.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    let mut next = head;
    // SAFETY: `next` is null or an element of the list, which lives until it is freed.
    while let Some(element) = unsafe { next.as_ref() } {
        // SAFETY: the name of an element is a C string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(element.ifa_name) }.to_string_lossy().into_owned();
        let addresses = found.entry(name).or_default();
        // SAFETY: the address of an element is null or a socket address of the family that it says.
        addresses.extend(unsafe { address(element.ifa_addr) });
        next = element.ifa_next;
    }
    // SAFETY: `head` came from getifaddrs, and is freed once.
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

/// The IP address at `address`, where it is one.
///
/// # Safety
/// `address` is null or points to a socket address that is as long as its family says.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as this function asks for.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: an address of this family is a `sockaddr_in`; it may stand at any boundary.
            let found = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is a `sockaddr_in6`; it may stand at any boundary.
            let found = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(found.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Binds a socket to one interface (`SO_BINDTODEVICE`, socket(7)): it sends there whatever the
/// routes say. Since Linux 5.7 this needs no privilege for a socket that is bound to none yet.
pub(crate) fn keep_on(socket: &UdpSocket, interface: &str) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and the pointer and length are
    // those of `interface`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            interface.len() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let found = interfaces().unwrap();
        assert!(found["lo"].contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
    }

    #[test]
    fn a_socket_is_kept_on_an_interface_that_exists() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(keep_on(&socket, "no-such-one").is_err());
        match keep_on(&socket, "lo") {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
    }
}
