//! Socket options that no library of ours offers.
#![allow(unsafe_code, reason = "one call of setsockopt(2)")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Sets an option whose value is a number (setsockopt(2)).
///
/// # Errors
/// As the system says.
pub fn set(socket: impl AsFd, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and the pointer and length are
    // those of `value`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Limits the bytes that a TCP socket takes beyond what TCP may send now (TCP_NOTSENT_LOWAT,
/// tcp(7)).
///
/// # Errors
/// As the system says.
pub fn limit_unsent(socket: impl AsFd, bytes: libc::c_int) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}
