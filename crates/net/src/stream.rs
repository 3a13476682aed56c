//! TCP sockets for paths over TLS: non-blocking, in large pieces, with as little as possible waiting in the kernel.
//!
//! A [`Stream`] is one socket and its [`TlsPath`]; a [`Listener`] takes calls. Neither waits: their owner polls
//! [`Stream::fd`] for reading while [`Stream::wants_read`] and for writing while [`Stream::wants_write`], and calls
//! [`Stream::read`], [`Stream::write`] and the path's time-outs.

mod unsent;

use crate::Clock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt};
use skyhaul_identity::Refusal;
use skyhaul_tls::{TlsEndpoint, TlsPath};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

/// A TCP socket and the path on it.
pub struct Stream {
    socket: TcpStream,
    path: TlsPath,
    remote: SocketAddr,
    buffer: Box<[u8]>,
    /// What was read and the path has not taken yet, as a part of `buffer`.
    held: core::ops::Range<usize>,
    /// The socket's buffer was full.
    blocked: bool,
    is_shut: bool,
}

impl Stream {
    /// Calls `remote`, from `local` where that is given. Returns at once: what becomes of the call, the path says.
    ///
    /// # Errors
    /// The system has no more sockets, or `local` is not its own.
    pub fn connect(
        clock: &Clock,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        path: TlsPath,
    ) -> io::Result<Self> {
        let family = if remote.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(local) = local {
            bind(&socket, &local)?;
        }
        let called = match connect(&socket, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => None,
            Err(error) => Some(error),
        };
        let mut stream = Self::on(socket.into(), remote, path)?;
        if let Some(error) = called {
            // As if the answer had been long in coming: callers look for it in one place.
            stream.path.stream_failed(clock.now(), &io::Error::from(error).to_string());
        }
        Ok(stream)
    }

    fn on(socket: TcpStream, remote: SocketAddr, path: TlsPath) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The path gives whole batches: nothing is gained by holding a short one back.
        sockopt::set_tcp_nodelay(&socket, true)?;
        unsent::limit(&socket, MOST_UNSENT)?;
        let buffer = vec![0; READ].into();
        Ok(Self { socket, path, remote, buffer, held: 0..0, blocked: true, is_shut: false })
    }

    /// The path.
    pub const fn path(&self) -> &TlsPath {
        &self.path
    }

    /// The path, to use. Follow up with [`Stream::write`].
    pub const fn path_mut(&mut self) -> &mut TlsPath {
        &mut self.path
    }

    /// The far end's address.
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The address here.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// To wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether it is worth waiting for the socket to be readable.
    pub fn wants_read(&self) -> bool {
        self.path.wants_read() && self.held.is_empty()
    }

    /// Whether what is to be written waits for the socket to be writable.
    pub const fn wants_write(&self) -> bool {
        self.blocked
    }

    /// Takes what has arrived, some pieces at most, so that sending gets its turn. Errors of the socket end the path.
    pub fn read(&mut self, clock: &Clock) {
        for _ in 0..READS {
            if !self.held.is_empty() {
                let taken = self.path.receive(clock.now(), &self.buffer[self.held.clone()]);
                self.held.start += taken;
                if !self.held.is_empty() {
                    return;
                }
            }
            if !self.path.wants_read() {
                return;
            }
            match self.socket.read(&mut self.buffer) {
                Ok(0) => return self.path.end_of_stream(clock.now()),
                Ok(count) => self.held = 0..count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.path.stream_failed(clock.now(), &error.to_string()),
            }
        }
    }

    /// Writes what the path has to say, until it has no more or the socket's buffer is full. Errors of the socket end
    /// the path.
    pub fn write(&mut self, clock: &Clock) {
        self.blocked = false;
        loop {
            let bytes = self.path.poll_transmit(clock.now());
            if bytes.is_empty() {
                break;
            }
            match self.socket.write(bytes) {
                Ok(count) => self.path.written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.path.stream_failed(clock.now(), &error.to_string()),
            }
        }
        if self.path.is_written_out() && !self.is_shut {
            self.is_shut = true;
            // A socket that is broken already has nothing to shut.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }

    /// Whether the socket is of no more use: drop the stream once the path's events have been polled.
    pub fn is_finished(&self) -> bool {
        self.path.is_finished()
    }
}

/// Takes calls.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

impl Listener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address is in use, not of this host, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
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

    /// To wait for: readable when somebody calls.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next call, until `None`. A caller beyond what `endpoint` sets up at a time gets its stream closed.
    ///
    /// # Errors
    /// The system has no more sockets: try again when some were closed.
    pub fn accept(&self, clock: &Clock, endpoint: &mut TlsEndpoint) -> io::Result<Option<Call>> {
        loop {
            let (socket, remote) = match self.socket.accept() {
                Ok(call) => call,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // A caller that went away while it waited is not this socket's error (accept(2)).
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let path = match endpoint.accept(clock.now()) {
                Ok(path) => path,
                Err(refusal) => return Ok(Some(Call::Refused(remote, refusal))),
            };
            if let Ok(stream) = Stream::on(socket, remote, path) {
                return Ok(Some(Call::Taken(Box::new(stream))));
            }
        }
    }
}

/// Somebody called.
pub enum Call {
    /// The set-up has begun.
    Taken(Box<Stream>),
    /// There was no place for the call from this address.
    Refused(SocketAddr, Refusal),
}

/// Bytes taken in one system call.
const READ: usize = 256 * 1024;
/// Pieces taken before sending gets its turn: 1 MiB at most.
const READS: usize = 4;
/// What the kernel takes beyond what TCP may send now: 10 ms at 100 Mbit/s. More would be decided too early; with much
/// less the socket would often run dry before this process is woken.
const MOST_UNSENT: i32 = 128 * 1024;

#[cfg(test)]
mod tests;
