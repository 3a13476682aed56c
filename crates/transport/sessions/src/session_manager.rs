//! The endpoints of a node, and for each session the connections that are its paths.
//!
//! One session manager serves one node: one endpoint for each socket, or address in the lab. It is
//! driven like everything sans-IO: hand it what arrived and the time, then take datagrams and
//! events until there are none.
//!
//! A session begins with one connection. Further ones join it: each end proves with keying material
//! of the new connection (RFC 8446 7.5) over a secret of the first that it is the same two nodes'
//! session which they mean.

mod joining;

use crate::{
    ConnectError, ConnectionId, Datagrams, Endpoint, EndpointEvent, ReceivedDatagram, Transmit,
};
use core::net::SocketAddr;
use joining::Joining;
use skyhaul_identity::{Fingerprint, Keying, Refusal};
use skyhaul_transport::{
    DownReason, Estimate, Event, Path, PathEvent, PathId, PathOptions, Session, SessionConfig,
    give_out, take_in,
};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Endpoints and the sessions over their connections.
pub struct SessionManager<C> {
    endpoints: Vec<C>,
    session_config: SessionConfig,
    sessions: BTreeMap<SessionId, Held>,
    /// What each connection is for. Bounded by the endpoints' connections.
    roles: BTreeMap<Key, Role>,
    next_session: u64,
    events: VecDeque<SessionManagerEvent>,
    /// When sessions were last served: what was due then and is still there waits for its path.
    flushed: Instant,
    /// The endpoint polled for datagrams last: the next one has its turn first.
    turn: usize,
}

/// A session of one session manager; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl core::fmt::Display for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A session manager's endpoint, and the socket or address that it stands for, in the order in
/// which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SocketId(pub usize);

/// A connection of one of the endpoints.
type Key = (SocketId, ConnectionId);

struct Held {
    session: Session,
    paths: BTreeMap<PathId, Key>,
    keying: Keying,
    peer: Fingerprint,
    /// Numbers of paths are not used again.
    next_path: u16,
}

/// What a connection is for.
enum Role {
    /// Called for a session that begins when it is up.
    Calling(SessionId),
    /// A path of a session.
    Member(SessionId, PathId),
    /// Called, or was called, for one more path of a session.
    Joining(Joining),
}

/// What the owner of a session manager learns.
#[derive(Debug)]
pub enum SessionManagerEvent {
    /// A trusted node is connected; open its session with [`Session::open`].
    Connected {
        /// The session.
        id: SessionId,
        /// Whose key it proved to have.
        fingerprint: Fingerprint,
        /// Whether it came to us.
        incoming: bool,
    },
    /// Someone was turned away, or did not get in, before any session began.
    Refused {
        /// The session that was to be, where we called.
        id: Option<SessionId>,
        /// Its address.
        remote: SocketAddr,
        /// Its key, where it got as far as showing one.
        fingerprint: Option<Fingerprint>,
        /// A sentence for the log.
        reason: Refusal,
    },
    /// A path that was called for did not come up; the session goes on without it.
    PathRefused {
        /// The session.
        id: SessionId,
        /// The path that was to be.
        path: PathId,
        /// The address called.
        remote: SocketAddr,
        /// A sentence for the log.
        reason: String,
    },
    /// Something happened in a session.
    Session {
        /// The session.
        id: SessionId,
        /// What.
        event: Event,
    },
    /// The last connection ended; the session is gone.
    Disconnected {
        /// The session.
        id: SessionId,
        /// Why.
        reason: DownReason,
    },
}

/// A session that waits for its path's room is looked at this often, should the path not say when
/// it has some.
const WAITING: Duration = Duration::from_millis(20);

impl<C: Endpoint> SessionManager<C> {
    /// A session manager over `endpoint` whose sessions are set up as `session_config` says.
    pub fn new(endpoint: C, session_config: SessionConfig) -> Self {
        Self {
            endpoints: vec![endpoint],
            session_config,
            sessions: BTreeMap::new(),
            roles: BTreeMap::new(),
            next_session: 0,
            events: VecDeque::new(),
            flushed: Instant::ZERO,
            turn: 0,
        }
    }

    /// Adds an endpoint for one more socket.
    pub fn add_carrier(&mut self, endpoint: C) -> SocketId {
        self.endpoints.push(endpoint);
        SocketId(self.endpoints.len() - 1)
    }

    /// Begins a connection over the first endpoint to the node at `remote` that has the key
    /// `expected`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<SessionId, ConnectError> {
        self.connect_from(now, SocketId(0), remote, expected)
    }

    /// The same over the endpoint `socket`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_from(
        &mut self,
        now: Instant,
        socket: SocketId,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<SessionId, ConnectError> {
        let endpoint = self.endpoints.get_mut(socket.0).ok_or(ConnectError::NoSocket)?;
        let connection = endpoint.call(now, remote, expected, false)?;
        let id = self.new_id();
        self.roles.insert((socket, connection), Role::Calling(id));
        Ok(id)
    }

    /// Calls the far end of a session for one more path.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn join(
        &mut self,
        now: Instant,
        id: SessionId,
        (socket, remote): (SocketId, SocketAddr),
        options: PathOptions,
    ) -> Result<PathId, ConnectError> {
        let held = self.sessions.get_mut(&id).ok_or(ConnectError::NoSession)?;
        let endpoint = self.endpoints.get_mut(socket.0).ok_or(ConnectError::NoSocket)?;
        let too_many = |_| ConnectError::TooMany { max: usize::from(u8::MAX) };
        let path = u8::try_from(held.next_path).map(PathId).map_err(too_many)?;
        let connection = endpoint.call(now, remote, held.peer, true)?;
        held.next_path += 1;
        self.roles.insert(
            (socket, connection),
            Role::Joining(Joining::calling(id, path, options, remote)),
        );
        Ok(path)
    }

    /// Closes one path of a session, telling the far end why.
    pub fn leave(&mut self, now: Instant, id: SessionId, path: PathId, reason: &str) {
        let key = self.sessions.get(&id).and_then(|held| held.paths.get(&path)).copied();
        if let Some(connection) = key.and_then(|key| connection(&mut self.endpoints, key)) {
            connection.close(now, reason);
        }
    }

    /// An endpoint, for what only its kind has; the first where there is no such.
    pub fn endpoint(&mut self, socket: SocketId) -> &mut C {
        let index = if socket.0 < self.endpoints.len() { socket.0 } else { 0 };
        &mut self.endpoints[index]
    }

    /// All endpoints, in the order in which they were added.
    pub fn endpoints(&self) -> impl Iterator<Item = &C> {
        self.endpoints.iter()
    }

    /// The same, to move their bytes.
    pub fn endpoints_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.endpoints.iter_mut()
    }

    /// A connected session. What is done to it takes effect at the next [`SessionManager::flush`].
    pub fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id).map(|held| &mut held.session)
    }

    /// The connected sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, held)| (*id, &held.session))
    }

    /// The measurements of a session's first path.
    pub fn estimate(&mut self, id: SessionId) -> Option<Estimate> {
        let key = *self.sessions.get(&id)?.paths.first_key_value()?.1;
        connection(&mut self.endpoints, key).map(|path| path.estimate())
    }

    /// The connections that are a session's paths: the endpoint of each, and the connection there.
    pub fn paths(
        &self,
        id: SessionId,
    ) -> impl Iterator<Item = (PathId, SocketId, ConnectionId)> + '_ {
        let paths = self.sessions.get(&id).into_iter().flat_map(|held| held.paths.iter());
        paths.map(|(path, key)| (*path, key.0, key.1))
    }

    /// Closes a session's connections, telling the far end why.
    pub fn close(&mut self, now: Instant, id: SessionId, reason: &str) {
        let calling = |role: &Role| matches!(role, Role::Calling(other) if *other == id);
        let called: Vec<Key> =
            self.roles.iter().filter(|(_, role)| calling(role)).map(|(key, _)| *key).collect();
        let paths =
            self.sessions.get(&id).map(|held| held.paths.values().copied().collect::<Vec<_>>());
        for key in called.into_iter().chain(paths.unwrap_or_default()) {
            if let Some(path) = connection(&mut self.endpoints, key) {
                path.close(now, reason);
            }
        }
    }

    /// Does what is due on the connections; sessions are served by [`SessionManager::flush`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for endpoint in &mut self.endpoints {
            if endpoint.next_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
        }
    }

    /// Moves what can move between sessions and their paths. Call it after datagrams, time-outs and
    /// changes to sessions, then take events and transmits.
    pub fn flush(&mut self, now: Instant) {
        self.flushed = now;
        self.take_carrier_events(now);
        self.advance_joins(now);
        for (id, held) in &mut self.sessions {
            serve(&mut self.endpoints, held, now);
            while let Some(event) = held.session.poll() {
                self.events.push_back(SessionManagerEvent::Session { id: *id, event });
            }
        }
        self.take_carrier_events(now);
    }

    /// When [`SessionManager::handle_timeout`] and [`SessionManager::flush`] are due.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let sessions = self.sessions.values().filter_map(|held| held.session.next_timeout()).min();
        let waiting = self.flushed + WAITING;
        let sessions = sessions.map(|due| if due <= self.flushed { waiting } else { due });
        let endpoints = self.endpoints.iter().filter_map(Endpoint::next_timeout).min();
        [endpoints, sessions].into_iter().flatten().min()
    }

    /// Uses the room that what left the endpoints has made: nothing would come to tell of it.
    /// Whether there is more to leave now.
    pub fn refill(&mut self, now: Instant) -> bool {
        let mut any = false;
        for held in self.sessions.values_mut().filter(|held| held.session.has_symbol()) {
            for id in held.session.path_order() {
                let Some(key) = held.paths.get(&id) else { continue };
                if let Some(path) = connection(&mut self.endpoints, *key) {
                    any |= give_out(&mut held.session, id, path, now);
                }
            }
        }
        any
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SessionManagerEvent> {
        self.events.pop_front()
    }

    fn new_id(&mut self) -> SessionId {
        self.next_session += 1;
        SessionId(self.next_session - 1)
    }

    fn take_carrier_events(&mut self, now: Instant) {
        for index in 0..self.endpoints.len() {
            while let Some(event) = self.endpoints[index].poll_event() {
                let socket = SocketId(index);
                match event {
                    EndpointEvent::Ready { id, peer, keying, incoming, joins } => {
                        self.ready(now, (socket, id), (peer, keying), (incoming, joins));
                    }
                    EndpointEvent::Refused { id, remote, fingerprint, reason } => {
                        self.refused(id.map(|id| (socket, id)), (remote, fingerprint, reason));
                    }
                    EndpointEvent::Closed { id, reason } => self.closed(now, (socket, id), reason),
                }
            }
        }
    }

    fn ready(
        &mut self,
        now: Instant,
        key: Key,
        (peer, keying): (Fingerprint, Keying),
        (incoming, joins): (bool, bool),
    ) {
        if joins {
            let joining = self.roles.remove(&key);
            let joining = match joining {
                Some(Role::Joining(joining)) => joining,
                _ => Joining::called(peer),
            };
            return self.begin_join(now, key, (joining, keying));
        }
        let id = match self.roles.get(&key) {
            Some(Role::Calling(id)) => *id,
            _ => self.new_id(),
        };
        let mut session = Session::new(self.session_config.clone());
        session.add_path(PathId(0), PathOptions::default());
        let paths = BTreeMap::from([(PathId(0), key)]);
        self.sessions.insert(id, Held { session, paths, keying, peer, next_path: 1 });
        self.roles.insert(key, Role::Member(id, PathId(0)));
        self.events.push_back(SessionManagerEvent::Connected { id, fingerprint: peer, incoming });
    }

    fn refused(
        &mut self,
        key: Option<Key>,
        (remote, fingerprint, reason): (SocketAddr, Option<Fingerprint>, Refusal),
    ) {
        match key.and_then(|key| self.roles.remove(&key)) {
            Some(Role::Joining(joining)) => {
                self.events.extend(joining.refused(reason.to_string()));
            }
            Some(Role::Calling(id)) => {
                self.events.push_back(SessionManagerEvent::Refused {
                    id: Some(id),
                    remote,
                    fingerprint,
                    reason,
                });
            }
            Some(Role::Member(..)) | None => {
                self.events.push_back(SessionManagerEvent::Refused {
                    id: None,
                    remote,
                    fingerprint,
                    reason,
                });
            }
        }
    }

    /// The session gives what the connection still brought; it goes with its last connection.
    fn closed(&mut self, now: Instant, key: Key, reason: DownReason) {
        match self.roles.remove(&key) {
            Some(Role::Member(id, path)) => {
                let Some(held) = self.sessions.get_mut(&id) else { return };
                if let Some(connection) = connection(&mut self.endpoints, key) {
                    take_in(&mut held.session, path, connection, now);
                }
                held.session.handle(now, path, PathEvent::Down(reason.clone()));
                held.paths.remove(&path);
                while let Some(event) = held.session.poll() {
                    self.events.push_back(SessionManagerEvent::Session { id, event });
                }
                if held.paths.is_empty() {
                    self.sessions.remove(&id);
                    self.events.push_back(SessionManagerEvent::Disconnected { id, reason });
                }
            }
            Some(Role::Joining(joining)) => {
                self.events.extend(joining.refused(reason.to_string()));
            }
            Some(Role::Calling(_)) | None => {}
        }
    }
}

impl<C: Datagrams> SessionManager<C> {
    /// A datagram arrived at the socket of an endpoint.
    pub fn handle_datagram(&mut self, now: Instant, socket: SocketId, received: ReceivedDatagram) {
        if let Some(endpoint) = self.endpoints.get_mut(socket.0) {
            endpoint.handle_datagram(now, received);
        }
    }

    /// The next datagram, or batch of datagrams of one size, into `out`, which is emptied first;
    /// and the endpoint whose socket it goes from.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<(SocketId, Transmit)> {
        if let Some(found) = self.poll_carriers(now, out) {
            return Some(found);
        }
        if !self.refill(now) {
            return None;
        }
        self.poll_carriers(now, out)
    }

    fn poll_carriers(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(SocketId, Transmit)> {
        let count = self.endpoints.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            if let Some(transmit) = self.endpoints[index].poll_transmit(now, out) {
                self.turn = index;
                return Some((SocketId(index), transmit));
            }
        }
        None
    }
}

fn connection<C: Endpoint>(endpoints: &mut [C], key: Key) -> Option<&mut dyn Path> {
    endpoints.get_mut(key.0.0)?.connection(key.1)
}

/// Everything that can move between a session and its paths.
fn serve<C: Endpoint>(endpoints: &mut [C], held: &mut Held, now: Instant) {
    let Held { session, paths, .. } = held;
    for (id, key) in paths.iter() {
        if let Some(path) = connection(endpoints, *key) {
            take_in(session, *id, path, now);
        }
    }
    session.handle_timeout(now);
    let order =
        if paths.len() == 1 { paths.keys().copied().collect() } else { session.path_order() };
    for id in order {
        let Some(key) = paths.get(&id) else { continue };
        if let Some(path) = connection(endpoints, *key) {
            give_out(session, id, path, now);
        }
    }
    if let Some(reason) = session.wants_close() {
        for key in paths.values() {
            if let Some(path) = connection(endpoints, *key) {
                path.close(now, &reason);
            }
        }
    }
}
