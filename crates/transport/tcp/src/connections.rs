//! The connections of one node over TCP, each known by its id. Sans-IO: its owner has the sockets
//! and moves the bytes.
//!
//! A connection begins with [`TlsConnections::accept`], or as an address that
//! [`TlsConnections::poll_call`] asks the owner to connect to. The owner moves bytes between its
//! socket and [`TlsConnections::stream`] until that is `None` or has finished.

use crate::lifecycle::End;
use crate::{TcpPath, TlsEndpoint, close_to_go_on};
use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Keying, Refusal};
use skyhaul_sessions::admission::{Admission, Doorkeeper};
use skyhaul_sessions::{ConnectError, ConnectionId, ConnectionPurpose, Endpoint, EndpointEvent};
use skyhaul_transport::Path;
use skyhaul_units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// All connections over TCP of one node.
#[derive(Debug)]
pub struct TlsConnections {
    endpoint: TlsEndpoint,
    connections: BTreeMap<ConnectionId, Held>,
    /// Calls that the owner has not begun yet. Bounded by the connections.
    calls: VecDeque<(ConnectionId, SocketAddr)>,
    next_id: u64,
    /// Bounded by twice the connections, and the refusals of one turn of the owner: see
    /// [`MAX_EVENTS`].
    events: VecDeque<EndpointEvent>,
    refused_busy: u64,
    doorkeeper: Doorkeeper,
}

struct Held {
    path: TcpPath,
    remote: SocketAddr,
    incoming: bool,
    stage: Stage,
}

impl core::fmt::Debug for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Held")
            .field("remote", &self.remote)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Setup,
    /// Reported as ready, so that its owner reads it to its end.
    Ready,
    /// Its end was reported after it had been ready.
    Closed,
    /// It never was ready, and that was reported.
    Refused,
}

impl Held {
    /// Whether it is an incoming connection that is not up yet.
    fn is_being_set_up(&self) -> bool {
        self.incoming
            && !self.path.lifecycle().is_up()
            && self.path.lifecycle().end_reason().is_none()
    }

    /// Whether it has ended and its owner has read it out.
    fn is_done(&self) -> bool {
        match self.stage {
            Stage::Setup | Stage::Ready => false,
            Stage::Closed => self.path.is_finished() && self.path.lifecycle().is_polled_out(),
            Stage::Refused => self.path.is_finished(),
        }
    }
}

impl TlsConnections {
    /// An endpoint without connections.
    pub fn new(endpoint: TlsEndpoint) -> Self {
        Self {
            doorkeeper: Doorkeeper::new(endpoint.fingerprint().as_bytes()),
            endpoint,
            connections: BTreeMap::new(),
            calls: VecDeque::new(),
            next_id: 0,
            events: VecDeque::new(),
            refused_busy: 0,
        }
    }

    /// Keys and trust.
    pub const fn endpoint(&mut self) -> &mut TlsEndpoint {
        &mut self.endpoint
    }

    /// Calls refused or closed by chance because too many were being set up or open.
    pub const fn refused_busy(&self) -> u64 {
        self.refused_busy
    }

    /// Accepts a connection from `remote`; `None` where there is no room for it, which is reported:
    /// close the stream.
    pub fn accept(&mut self, now: Instant, remote: SocketAddr) -> Option<ConnectionId> {
        self.sweep();
        let room = self.connections.len() < MAX_CONNECTIONS;
        let others = self.connections.values().filter(|held| held.is_being_set_up());
        // Closed at once, whatever the reason: its caller calls again.
        let others = others.map(|held| (held.remote.ip(), held.path.lifecycle().began()));
        let admission = self.doorkeeper.admit(now, remote.ip(), others);
        if admission == Admission::Replaces {
            let slow = self.connections.values_mut().filter(|held| held.is_being_set_up());
            if let Some(oldest) = slow.min_by_key(|held| held.path.lifecycle().began()) {
                oldest.path.end(now, End::Refused(Refusal::TooSlow));
            }
        }
        let is_taken = room && matches!(admission, Admission::Taken | Admission::Replaces);
        let accepted = if is_taken { self.endpoint.accept(now) } else { Err(Refusal::Busy) };
        match accepted {
            Ok(path) => Some(self.hold(Held { path, remote, incoming: true, stage: Stage::Setup })),
            Err(reason) => {
                self.refused_busy += 1;
                if self.events.len() < MAX_EVENTS {
                    let refused =
                        EndpointEvent::Refused { id: None, remote, fingerprint: None, reason };
                    self.events.push_back(refused);
                }
                None
            }
        }
    }

    /// The next address to open a stream to, for the connection of this id. Where that fails, tell
    /// its stream with
    /// [`TcpPath::stream_failed`].
    pub fn poll_call(&mut self) -> Option<(ConnectionId, SocketAddr)> {
        self.calls.pop_front()
    }

    /// A connection's stream, to move its bytes; `None` once it has ended and was read out.
    pub fn stream(&mut self, id: ConnectionId) -> Option<&mut TcpPath> {
        self.connections.get_mut(&id).map(|held| &mut held.path)
    }

    /// Closes all connections, because this node goes on in another process: the far ends may call
    /// that at once.
    pub fn close_to_go_on(&mut self, now: Instant) {
        self.connections.values_mut().for_each(|held| close_to_go_on(&mut held.path, now));
    }

    fn hold(&mut self, held: Held) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.connections.insert(id, held);
        id
    }

    /// Removes connections that have ended and were read out.
    fn sweep(&mut self) {
        self.connections.retain(|_, held| !held.is_done());
    }

    /// Reports what has become of the connections.
    fn settle(&mut self) {
        for (id, held) in &mut self.connections {
            if held.stage == Stage::Setup {
                let (stage, event) = match (
                    held.path.lifecycle().is_up(),
                    held.path.lifecycle().end_reason(),
                    held.path.lifecycle().refusal(),
                ) {
                    (false, None, _) => continue,
                    (_, _, Some(refusal)) => (Stage::Refused, refused(*id, held, refusal.clone())),
                    // Up, and maybe over again already.
                    (_, _, None) => match ready(*id, held) {
                        Some(event) => (Stage::Ready, event),
                        None => {
                            let reason = Refusal::Failed("no keying material".to_owned());
                            (Stage::Refused, refused(*id, held, reason))
                        }
                    },
                };
                held.stage = stage;
                self.events.push_back(event);
            }
            if held.stage == Stage::Ready
                && let Some(reason) = held.path.lifecycle().end_reason()
            {
                held.stage = Stage::Closed;
                self.events.push_back(EndpointEvent::Closed { id: *id, reason: reason.clone() });
            }
        }
    }
}

fn ready(id: ConnectionId, held: &Held) -> Option<EndpointEvent> {
    let path = &held.path;
    let keying = Keying::derive(|out, label| path.export_keying_material(out, label, b"").is_ok())?;
    let (peer, purpose) = (path.lifecycle().peer()?, path.lifecycle().purpose());
    let (incoming, version) = (held.incoming, path.lifecycle().version()?);
    Some(EndpointEvent::Ready { id, peer, keying, incoming, purpose, version })
}

fn refused(id: ConnectionId, held: &Held, reason: Refusal) -> EndpointEvent {
    EndpointEvent::Refused {
        id: Some(id),
        remote: held.remote,
        fingerprint: held.path.lifecycle().peer(),
        reason,
    }
}

impl Endpoint for TlsConnections {
    fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.connections.get(&id).map(|held| held.remote)
    }

    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError> {
        self.sweep();
        let cannot = |reason: &str| ConnectError::Address { remote, reason: reason.to_owned() };
        if remote.port() == 0 || remote.ip().is_unspecified() || remote.ip().is_multicast() {
            return Err(cannot("no single host and port"));
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            return Err(ConnectError::TooMany { max: MAX_CONNECTIONS });
        }
        let mut path =
            self.endpoint.connect(now, expected).map_err(|refusal| cannot(&refusal.to_string()))?;
        path.lifecycle_mut().set_purpose(purpose);
        let id = self.hold(Held { path, remote, incoming: false, stage: Stage::Setup });
        self.calls.push_back((id, remote));
        Ok(id)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        self.stream(id).map(|path| path as &mut dyn Path)
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        if self.events.is_empty() {
            self.settle();
        }
        self.events.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(|held| held.path.next_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        for held in self.connections.values_mut() {
            if held.path.next_timeout().is_some_and(|due| due <= now) {
                held.path.handle_timeout(now);
            }
        }
        self.sweep();
    }
}

/// Connections open at a time, those in set-up included: twice the stations that a centre takes,
/// because each may call anew before its old connection is given up. More calls are refused, and
/// counted.
const MAX_CONNECTIONS: usize = 512;

/// Events kept for the owner beyond those of its connections. Refusals beyond are counted only.
const MAX_EVENTS: usize = 1_024;
