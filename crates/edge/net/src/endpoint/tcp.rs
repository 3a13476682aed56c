//! TLS over TCP: connections, their sockets, and the listener.
//!
//! One epoll instance (epoll(7)) watches the sockets, and the driver waits for that: the cost of a
//! wake-up does not grow with idle connections.

use crate::Clock;
use crate::left_socket::LeftSocket;
use crate::stream::{TcpPathListener, TcpPathStream};
use crate::turn::{Arrived, Left};
use core::net::{IpAddr, SocketAddr};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use skyhaul_identity::{Fingerprint, OwnKey};
use skyhaul_sessions::{ConnectError, ConnectionId, ConnectionPurpose, Endpoint, EndpointEvent};
use skyhaul_tcp::{TlsConnections, TlsEndpoint, TlsEndpointConfig, TlsPathConfig};
use skyhaul_transport::Path;
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

/// Connections over TCP and their sockets.
pub struct TcpEndpoint {
    connections: TlsConnections,
    listener: Option<TcpPathListener>,
    /// The address to connect from.
    local: Option<IpAddr>,
    sockets: BTreeMap<ConnectionId, Held>,
    epoll: OwnedFd,
    /// The bytes read last, of any socket.
    buffer: Box<[u8]>,
    /// The system had no more sockets: until then no connections are accepted.
    pause: Option<Instant>,
    /// This node goes on in another process, which accepts connections.
    goes_on: bool,
}

struct Held {
    stream: TcpPathStream,
    /// What the socket is watched for.
    watched: EventFlags,
}

/// Bytes read by one system call.
const READ: usize = 256 * 1024;
/// Sockets served in one turn; the others have the next.
const AT_ONCE: usize = 64;
/// Connections accepted in one turn.
const CALLS: usize = 16;
/// Where the system has no more sockets, accepting waits this long: no event would tell that there
/// are some again.
const PAUSE: Duration = Duration::from_secs(1);
/// The listener's token in epoll; connections are numbered from 0.
const LISTENER: u64 = u64::MAX;

/// How to make a [`TcpEndpoint`].
#[derive(Debug, Clone)]
pub struct TcpConfig {
    /// This node's key.
    pub identity: OwnKey,
    /// Keys of the nodes that may connect.
    pub trusted: BTreeSet<Fingerprint>,
    /// Where it listens; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// The address to connect from; `None`: the system chooses.
    pub local: Option<IpAddr>,
    /// The UDP payload of the paths beside these, in bytes, so that a symbol of one can be
    /// retransmitted on the other as it is.
    pub udp_payload: u16,
}

impl TcpConfig {
    /// Connects with `identity`, and does not listen. Default payload: that of an IPv4 packet of
    /// 1500 bytes.
    pub fn new(identity: impl Into<OwnKey>) -> Self {
        let identity = identity.into();
        Self { identity, trusted: BTreeSet::new(), listen: None, local: None, udp_payload: 1_472 }
    }
}

impl TcpEndpoint {
    /// An endpoint without connections.
    ///
    /// # Errors
    /// The address to listen at is in use, not of this host, or not permitted; the system has no
    /// more file descriptors.
    pub fn open(config: TcpConfig) -> io::Result<Self> {
        let listener = config.listen.map(TcpPathListener::bind).transpose()?;
        Self::with(config, listener)
    }

    /// The same with a socket that listens already.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn open_on(config: TcpConfig, listener: OwnedFd) -> io::Result<Self> {
        Self::with(config, Some(TcpPathListener::given(listener)?))
    }

    fn with(config: TcpConfig, listener: Option<TcpPathListener>) -> io::Result<Self> {
        let endpoint = TlsEndpoint::new(TlsEndpointConfig {
            trusted: config.trusted,
            path: TlsPathConfig::beside(config.udp_payload),
            ..TlsEndpointConfig::new(config.identity)
        });
        let local = config.local;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        if let Some(listener) = &listener {
            epoll::add(&epoll, listener.fd(), EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        let (connections, sockets) = (TlsConnections::new(endpoint), BTreeMap::new());
        Ok(Self {
            connections,
            listener,
            local,
            sockets,
            epoll,
            buffer: vec![0; READ].into(),
            pause: None,
            goes_on: false,
        })
    }

    /// Changes which nodes may connect. Existing connections stay.
    pub(super) fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        self.connections.endpoint().set_trusted(trusted);
    }

    /// Closes all connections, because this node goes on in another process. Calls wait for that in
    /// the system from now on.
    pub(super) fn close_to_go_on(&mut self, now: Instant) {
        self.connections.close_to_go_on(now);
        self.goes_on = true;
        if let Some(listener) = &self.listener {
            // Not watched while it pauses.
            let _ = epoll::delete(&self.epoll, listener.fd());
            self.pause = None;
        }
    }

    /// Whether far ends may still send their last bytes. A socket that is closed before they are
    /// read takes back what was sent on it (RFC 9293 3.6.1).
    pub(super) fn is_closing(&self) -> bool {
        self.goes_on && !self.sockets.is_empty()
    }

    /// The socket that listens.
    pub(super) fn leave(&self) -> io::Result<Option<LeftSocket>> {
        let listener = self.listener.as_ref().map(|one| one.fd().try_clone_to_owned());
        Ok(listener.transpose()?.map(LeftSocket::Tcp))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.epoll.as_fd(), PollFlags::IN)
    }

    pub(super) fn receive(&mut self, clock: &Clock) -> io::Result<Arrived> {
        let nothing = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut ready = [nothing; AT_ONCE];
        let count = match epoll::wait(&self.epoll, &mut ready, Some(&Timespec::default())) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let (mut taken, mut more) = (ByteCount::ZERO, count == AT_ONCE);
        for (id, held) in self.sockets.iter_mut().filter(|(_, held)| held.stream.is_holding()) {
            if let Some(path) = self.connections.stream(*id) {
                taken += held.stream.read(clock, path, &mut self.buffer);
            }
        }
        for event in &ready[..count] {
            // Copied, because the fields of the kernel's structure need not be aligned.
            let (flags, id) = (event.flags, event.data.u64());
            if id == LISTENER {
                more |= self.accept(clock)?;
                continue;
            }
            let id = ConnectionId(id);
            let (Some(held), Some(path)) = (self.sockets.get_mut(&id), self.connections.stream(id))
            else {
                continue;
            };
            if flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
                held.stream.unblock();
            }
            let bytes = held.stream.read(clock, path, &mut self.buffer);
            more |= bytes.as_usize() >= READ;
            taken += bytes;
        }
        Ok(if more { Arrived::More } else { Arrived::all(taken) })
    }

    /// Accepts connections. Returns whether there may be more.
    fn accept(&mut self, clock: &Clock) -> io::Result<bool> {
        let Some(listener) = &self.listener else { return Ok(false) };
        for _ in 0..CALLS {
            let (socket, remote) = match listener.accept() {
                Ok(Some(call)) => call,
                Ok(None) => return Ok(false),
                Err(_) => {
                    epoll::delete(&self.epoll, listener.fd())?;
                    self.pause = Some(clock.now() + PAUSE);
                    return Ok(false);
                }
            };
            // Where there is no room for one more, or its socket cannot be used, it is closed.
            if let Some(id) = self.connections.accept(clock.now(), remote)
                && let Some(path) = self.connections.stream(id)
            {
                match TcpPathStream::on(socket) {
                    Ok(stream) => drop(self.sockets.insert(id, watch(&self.epoll, id, stream)?)),
                    Err(error) => path.stream_failed(clock.now(), &error.to_string()),
                }
            }
        }
        Ok(true)
    }

    pub(super) fn transmit(&mut self, clock: &Clock) -> io::Result<Left> {
        let mut left = Left::Nothing;
        while let Some((id, remote)) = self.connections.poll_call() {
            let Some(path) = self.connections.stream(id) else { continue };
            left = Left::All;
            match TcpPathStream::connect(self.local, remote) {
                Ok(stream) => drop(self.sockets.insert(id, watch(&self.epoll, id, stream)?)),
                Err(error) => path.stream_failed(clock.now(), &error.to_string()),
            }
        }
        let mut gone = Vec::new();
        for (id, held) in &mut self.sockets {
            let Some(path) = self.connections.stream(*id) else {
                gone.push(*id);
                continue;
            };
            if held.stream.write(clock, path) {
                left = left.max(Left::All);
            }
            if held.stream.is_holding() && path.wants_read() {
                // Bytes that it had no room for have room now.
                left = Left::Part;
            }
            if path.is_finished() {
                gone.push(*id);
                continue;
            }
            let reading = if path.wants_read() { EventFlags::IN } else { EventFlags::empty() };
            let wanted = reading | writing(&held.stream);
            if wanted != held.watched {
                epoll::modify(&self.epoll, held.stream.fd(), EventData::new_u64(id.0), wanted)?;
                held.watched = wanted;
            }
        }
        for id in gone {
            // Closing a socket ends the watch: it has no other descriptor.
            self.sockets.remove(&id);
        }
        Ok(left)
    }
}

fn watch(epoll: &OwnedFd, id: ConnectionId, stream: TcpPathStream) -> io::Result<Held> {
    let watched = EventFlags::IN | writing(&stream);
    epoll::add(epoll, stream.fd(), EventData::new_u64(id.0), watched)?;
    Ok(Held { stream, watched })
}

/// A stream waits to be writable only while it has bytes that the socket did not take.
fn writing(stream: &TcpPathStream) -> EventFlags {
    if stream.is_blocked() { EventFlags::OUT } else { EventFlags::empty() }
}

impl Endpoint for TcpEndpoint {
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError> {
        self.connections.call(now, remote, expected, purpose)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        self.connections.connection(id)
    }

    fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.connections.remote(id)
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.connections.poll_event()
    }

    fn next_timeout(&self) -> Option<Instant> {
        [self.connections.next_timeout(), self.pause].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connections.handle_timeout(now);
        if self.pause.is_some_and(|until| until <= now)
            && let Some(listener) = &self.listener
        {
            let flags = EventFlags::IN;
            let added = epoll::add(&self.epoll, listener.fd(), EventData::new_u64(LISTENER), flags);
            self.pause = added.err().map(|_| now + PAUSE);
        }
    }
}
