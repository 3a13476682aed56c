//! The socket option that limits a TCP socket's unsent bytes: no library wraps it.
#![allow(unsafe_code, reason = "one call of setsockopt(2)")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

/// Limits the bytes that `socket` takes beyond what TCP may send now (TCP_NOTSENT_LOWAT, tcp(7)).
pub(super) fn limit(socket: &TcpStream, bytes: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&bytes)).expect("four bytes");
    // SAFETY: the descriptor is open while `socket` is borrowed; the kernel reads `length` bytes of
    // `bytes`, which outlives the call, and keeps no reference to it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const bytes).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
