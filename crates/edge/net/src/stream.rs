//! TCP sockets for paths over TLS: non-blocking, in large pieces, with as few bytes as possible in
//! the kernel's send buffer.
//!
//! A [`TcpPathStream`] is one socket; a [`TcpPathListener`] accepts connections. Neither blocks:
//! their owner watches [`TcpPathStream::fd`] for reading while the path wants to read, and for
//! writing while [`TcpPathStream::is_blocked`].

use crate::{Clock, option};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt,
};
use skyhaul_tcp::TcpPath;
use skyhaul_units::ByteCount;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// The TCP socket of a path. The path itself is passed to each call that needs it.
#[derive(Debug)]
pub struct TcpPathStream {
    socket: TcpStream,
    /// Bytes that were read and that the path has not taken yet.
    held: Vec<u8>,
    /// The socket takes no bytes now: it is not connected yet, or its buffer is full.
    blocked: bool,
    is_shut: bool,
}

impl TcpPathStream {
    /// Begins to connect to `remote`, from `local` if that is given. The result shows when the
    /// socket is read or written.
    ///
    /// # Errors
    /// The system has no more sockets or no route to `remote`, or `local` is not its own.
    pub fn connect(local: Option<IpAddr>, remote: SocketAddr) -> io::Result<Self> {
        let family = if remote.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(local) = local {
            bind(&socket, &SocketAddr::new(local, 0))?;
        }
        match connect(&socket, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => Self::on(socket.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Uses a socket that is connected, or will be.
    ///
    /// # Errors
    /// As the system says.
    pub fn on(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The path hands over whole batches, which must not be held back.
        sockopt::set_tcp_nodelay(&socket, true)?;
        option::limit_unsent(&socket, MOST_UNSENT)?;
        Ok(Self { socket, held: Vec::new(), blocked: true, is_shut: false })
    }

    /// Its own address.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether to wait for the socket to be writable.
    pub const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether bytes were read for which the path had no room.
    pub const fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The socket is writable, or broken.
    pub const fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Reads what has arrived, by way of `buffer`, a few pieces at most, so that sending has its
    /// turn. Returns how much was read. An error of the socket ends the path.
    pub fn read(&mut self, clock: &Clock, path: &mut TcpPath, buffer: &mut [u8]) -> ByteCount {
        let mut total = ByteCount::ZERO;
        for _ in 0..READS {
            if !self.held.is_empty() {
                let taken = path.receive(clock.now(), &self.held);
                self.held.drain(..taken);
            }
            if !self.held.is_empty() || !path.wants_read() {
                break;
            }
            match self.socket.read(buffer) {
                Ok(0) => {
                    path.end_of_stream(clock.now());
                    break;
                }
                Ok(count) => {
                    total += ByteCount::of(count);
                    let taken = path.receive(clock.now(), &buffer[..count]);
                    self.held.extend_from_slice(&buffer[taken..count]);
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    path.stream_failed(clock.now(), &error.to_string());
                    break;
                }
            }
        }
        total
    }

    /// Writes the path's bytes, until there are no more or the socket takes no more. Returns
    /// whether any were written. An error of the socket ends the path.
    pub fn write(&mut self, clock: &Clock, path: &mut TcpPath) -> bool {
        let mut any = false;
        loop {
            let bytes = path.poll_transmit(clock.now());
            if self.blocked {
                return any;
            }
            if bytes.is_empty() {
                break;
            }
            match self.socket.write(bytes) {
                Ok(count) => {
                    path.written(count);
                    any = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => path.stream_failed(clock.now(), &error.to_string()),
            }
        }
        if path.is_written_out() && !self.is_shut {
            self.is_shut = true;
            // The error of a broken socket has been reported already.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        any
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct TcpPathListener {
    socket: TcpListener,
}

impl TcpPathListener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address is in use, not of this host, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// A socket that listens already.
    ///
    /// # Errors
    /// As the system says.
    pub fn given(socket: OwnedFd) -> io::Result<Self> {
        let socket = TcpListener::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The descriptor to wait for: readable when there is a connection.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next connection, until `None`.
    ///
    /// # Errors
    /// The system has no more sockets: try again when some were closed.
    pub fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        loop {
            match self.socket.accept() {
                Ok(call) => return Ok(Some(call)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // A far end that left before it was accepted is not an error of the listener
                // (accept(2)).
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Pieces read before sending has its turn.
const READS: usize = 4;
/// Bytes that the kernel takes beyond what TCP may send now: 10 ms at 100 Mbit/s. With more,
/// symbols would be chosen too early; with much less, the socket would run dry before this thread
/// wakes.
const MOST_UNSENT: i32 = 128 * 1024;

#[cfg(test)]
mod tests;
