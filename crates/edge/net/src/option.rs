//! Socket options that no library of ours offers.
#![allow(unsafe_code, reason = "one call each of getsockopt(2) and setsockopt(2)")]

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

/// Who called over a UNIX socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketCaller {
    /// The number of its user.
    pub uid: u32,
    /// The number of its process; 0 for one that this PID namespace does not see, such as a process
    /// outside the container (pid_namespaces(7)).
    pub pid: i32,
}

/// Who called over a UNIX socket, as the kernel says (SO_PEERCRED, unix(7)). The function of
/// rustix takes the number 0 for an error.
///
/// # Errors
/// As the system says.
pub fn caller(socket: impl AsFd) -> io::Result<SocketCaller> {
    let mut known = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&known) as libc::socklen_t;
    // SAFETY: the descriptor is open for the length of the call, and the pointer and length are
    // those of `known`, for which any bytes are a value.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut known).cast(),
            &raw mut length,
        )
    };
    if outcome == 0 {
        Ok(SocketCaller { uid: known.uid, pid: known.pid })
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Limits the bytes that a TCP socket takes beyond what TCP may send now (TCP_NOTSENT_LOWAT,
/// tcp(7)).
///
/// # Errors
/// As the system says.
pub fn limit_unsent(socket: impl AsFd, bytes: libc::c_int) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}
