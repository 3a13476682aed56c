//! Applications' sockets: TCP, UDP and UNIX. None of these calls blocks.

use crate::diverted;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, getpeername, getsockname, ipproto, listen, recv, recvfrom, send,
    sendto, shutdown, socket_with, sockopt,
};
use skyhaul_forward::Local;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The result of reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes; at least one if they were read.
    Some(usize),
    /// The socket has nothing, or takes nothing, now.
    Blocked,
    /// The other side sends nothing more.
    End,
    /// The connection is broken.
    Broken,
}

/// Connections that the system completes before they are accepted. Some applications open thousands
/// at a time.
const BACKLOG: i32 = 4_096;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Receive buffer of a UDP socket: 80 ms of 100 Mbit/s.
const DATAGRAMS_BUFFER: usize = 1 << 20;

/// Listens there. A socket file that a previous run has left behind is replaced.
pub(super) fn listen_at(local: &Local) -> io::Result<OwnedFd> {
    let socket = match local {
        Local::Tcp(address) => bound_to(address)?,
        Local::Udp(address) => {
            let socket =
                socket_with(family(address), SocketType::DGRAM, FLAGS, Some(ipproto::UDP))?;
            bind(&socket, address)?;
            enlarge(&socket);
            return Ok(socket);
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

/// Listens there, also for connections to other hosts that rules divert here.
pub(super) fn listen_for_others(local: &Local) -> io::Result<OwnedFd> {
    let Local::Tcp(address) = local else { return listen_at(local) };
    let socket = bound_to(address)?;
    diverted::allow(&socket, address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn bound_to(address: &SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket_with(family(address), SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, address)?;
    Ok(socket)
}

/// Whether no process listens at a socket file.
fn is_left_over(address: &SocketAddrUnix) -> bool {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
    socket.is_ok_and(|socket| connect(&socket, address) == Err(Errno::CONNREFUSED))
}

/// The next connection, if there is one now.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    loop {
        return match accept_with(listener, FLAGS) {
            Ok(socket) => {
                prepare(&socket);
                Ok(Some(socket))
            }
            Err(Errno::AGAIN) => Ok(None),
            // The application closed it before it was accepted.
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}

/// Begins to connect over TCP. The attempt has ended when the socket is writable or broken.
pub(super) fn connect_tcp(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = socket_with(family(address), SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    prepare(&socket);
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// A socket for datagrams from and to this address only.
pub(super) fn connect_udp(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = socket_with(family(address), SocketType::DGRAM, FLAGS, Some(ipproto::UDP))?;
    enlarge(&socket);
    connect(&socket, address)?;
    Ok(socket)
}

/// Asks for a larger receive buffer; the system may grant less.
fn enlarge(socket: &OwnedFd) {
    let _ = sockopt::set_socket_recv_buffer_size(socket, DATAGRAMS_BUFFER);
}

/// Connects to a socket file.
pub(super) fn connect_unix(path: &str) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sets TCP_NODELAY, because blocks have the right size for the line and must not be held back, and
/// keep-alive, which finds hosts that have vanished. UNIX sockets have neither.
fn prepare(socket: &OwnedFd) {
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
}

/// The pending error of a socket.
pub(super) fn error(socket: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(socket) {
        Ok(told) => told.err(),
        Err(errno) => Some(errno),
    }
}

/// The socket's own address; a UNIX socket has none.
pub(super) fn address(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(socket).ok()?).ok()
}

/// The address of the other side.
pub(super) fn peer(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getpeername(socket).ok()??).ok()
}

/// The length of the next datagram at a connected socket. Errors of earlier datagrams that did not
/// arrive are skipped.
pub(super) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    loop {
        return match recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, len)) => Some(len.min(buffer.len())),
            Err(Errno::AGAIN) => None,
            Err(Errno::INTR | Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH) => {
                continue;
            }
            Err(_) => None,
        };
    }
}

/// The length of the next datagram, and its sender.
pub(super) fn receive_from(socket: &OwnedFd, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
    loop {
        return match recvfrom(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, len, from)) => Some((len.min(buffer.len()), SocketAddr::try_from(from?).ok()?)),
            Err(Errno::INTR) => continue,
            Err(_) => None,
        };
    }
}

/// Sends a datagram.
pub(super) fn send_to(socket: &OwnedFd, bytes: &[u8], to: &SocketAddr) -> Moved {
    match sendto(socket, bytes, SendFlags::NOSIGNAL, to) {
        Ok(count) => Moved::Some(count),
        Err(Errno::AGAIN) => Moved::Blocked,
        Err(_) => Moved::Broken,
    }
}

/// Writes a few bytes to a socket whose buffer is nearly empty. Returns whether it took all.
pub(super) fn say(socket: &OwnedFd, bytes: &[u8]) -> bool {
    matches!(write(socket, bytes), Moved::Some(count) if count == bytes.len())
}

/// Writes some last bytes, and closes.
pub(super) fn farewell(socket: OwnedFd, bytes: &[u8]) {
    if bytes.is_empty() || say(&socket, bytes) {
        finish(&socket);
    }
    // Closing with unread bytes would send a reset, which would discard what was written.
    let _ = read(&socket, &mut [0; 4_096]);
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

/// Ends the direction to the application.
pub(super) fn finish(socket: &OwnedFd) {
    // A broken socket shows its error at the next read.
    let _ = shutdown(socket, Shutdown::Write);
}

/// Closes the socket so that the application sees a reset. A UNIX socket is only closed.
pub(super) fn abort(socket: OwnedFd) {
    let _ = sockopt::set_socket_linger(&socket, Some(core::time::Duration::ZERO));
    drop(socket);
}

const fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET }
}
