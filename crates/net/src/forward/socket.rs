//! Stream sockets of applications, over TCP and in files: none of these calls waits.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, connect, ipproto, listen, recv, send, shutdown, socket_with, sockopt,
};
use skyhaul_forward::Local;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// What came of reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes; of a reading, at least one.
    Some(usize),
    /// Nothing now.
    Blocked,
    /// The other side sends nothing more.
    End,
    /// The connection is broken.
    Broken,
}

/// Connections that the system completes before they are accepted: a burst of an application that opens thousands.
const BACKLOG: i32 = 4_096;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Listens there. A socket file that a former run has left, at which nobody listens, is replaced.
pub(super) fn listen_at(local: &Local) -> io::Result<OwnedFd> {
    let socket = match local {
        Local::Tcp(address) => {
            let socket = socket_with(family(address), SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, address)?;
            socket
        }
        Local::Unix(path) => {
            let address = SocketAddrUnix::new(path.as_str())?;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
            match bind(&socket, &address) {
                Err(Errno::ADDRINUSE) if is_left_over(&address) => {
                    std::fs::remove_file(path)?;
                    bind(&socket, &address)?;
                }
                bound => bound?,
            }
            socket
        }
    };
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Whether a file is a socket at which nobody listens.
fn is_left_over(address: &SocketAddrUnix) -> bool {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
    socket.is_ok_and(|socket| connect(&socket, address) == Err(Errno::CONNREFUSED))
}

/// The next connection; `None` where there is none now.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    loop {
        return match accept_with(listener, FLAGS) {
            Ok(socket) => {
                prepare(&socket);
                Ok(Some(socket))
            }
            Err(Errno::AGAIN) => Ok(None),
            // It was gone before it was accepted.
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}

/// Connects over TCP; whether it did shows when the socket can be written, or is broken.
pub(super) fn connect_tcp(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = socket_with(family(address), SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    prepare(&socket);
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// Connects to a socket file.
pub(super) fn connect_unix(path: &str) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Blocks have the size that the line wants: nothing is gained by the kernel's holding a short one back. An application that
/// vanished without a word is found by keep-alive. Neither is there for socket files.
fn prepare(socket: &OwnedFd) {
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
}

/// The error that a socket has to tell.
pub(super) fn error(socket: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(socket) {
        Ok(told) => told.err(),
        Err(errno) => Some(errno),
    }
}

/// Reads what fits into `buffer`.
pub(super) fn read(socket: &OwnedFd, buffer: &mut [u8]) -> Moved {
    loop {
        return match recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => Moved::End,
            Ok((count, _)) => Moved::Some(count),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Moved::Blocked,
            Err(_) => Moved::Broken,
        };
    }
}

/// Writes as much as the socket takes.
pub(super) fn write(socket: &OwnedFd, bytes: &[u8]) -> Moved {
    loop {
        return match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => Moved::Some(count),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Moved::Blocked,
            Err(_) => Moved::Broken,
        };
    }
}

/// Says that no more bytes follow.
pub(super) fn finish(socket: &OwnedFd) {
    // One that is broken says so itself.
    let _ = shutdown(socket, Shutdown::Write);
}

/// Closes it so that the application sees a reset. A socket file has none: there it is closed.
pub(super) fn abort(socket: OwnedFd) {
    let _ = sockopt::set_socket_linger(&socket, Some(core::time::Duration::ZERO));
    drop(socket);
}

const fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET }
}
