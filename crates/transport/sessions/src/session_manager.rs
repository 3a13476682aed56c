//! The endpoints of a node, and for each session the connections that are its paths.
//!
//! One session manager serves one node: one endpoint for each socket, or address in the lab. It is
//! driven like everything sans-IO: pass in what arrived and the time, then take datagrams and
//! events until there are none.
//!
//! A session begins with one connection. Further ones join it: with keying material of the new
//! connection (RFC 8446 7.5) over a secret of the first, each end proves that it is the node at the
//! other end of the session.

mod endpoint_set;
mod event;
mod going_on;
mod joining;
mod role;
mod table;

use crate::{
    ConnectError, ConnectionId, ConnectionPurpose, Datagrams, Endpoint, EndpointEvent,
    ReceivedDatagram, Transmit,
};
use core::net::SocketAddr;
use endpoint_set::{ConnectionKey, EndpointSet};
pub use event::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use joining::Joining;
use role::{Role, Roles, refused};
use skyhaul_identity::Fingerprint;
use skyhaul_transport::{
    DownReason, Estimate, PathEvent, PathId, PathOptions, Session, SessionConfig, take_in,
};
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use table::{Agreed, HeldSession, PeerKeyPair, SessionTable};

/// Endpoints and the sessions over their connections.
pub struct SessionManager<C> {
    endpoints: EndpointSet<C>,
    session_config: SessionConfig,
    sessions: SessionTable,
    /// What each connection is for.
    roles: Roles,
    events: VecDeque<SessionManagerEvent>,
    /// When sessions were last served: what was due then and is still there waits for its path.
    flushed: Instant,
}

/// A session that waits for room on a path is served this often, in case the path does not report
/// its room.
const WAITING: Duration = Duration::from_millis(20);

/// The far end of a session changes its key: further paths to it expect `shown`, and it may call
/// with `other` too.
pub fn follow_key<C>(
    manager: &mut SessionManager<C>,
    id: SessionId,
    shown: Fingerprint,
    other: Option<Fingerprint>,
) {
    if let Some(held) = manager.sessions.get_mut(id) {
        held.peer = PeerKeyPair { shown, other };
    }
}

impl<C: Endpoint> SessionManager<C> {
    /// A session manager over `endpoint` whose sessions are set up as `session_config` says.
    pub fn new(endpoint: C, session_config: SessionConfig) -> Self {
        Self {
            endpoints: EndpointSet::new(endpoint),
            session_config,
            sessions: SessionTable::default(),
            roles: Roles::default(),
            events: VecDeque::new(),
            flushed: Instant::ZERO,
        }
    }

    /// Adds an endpoint for one more socket.
    pub fn add_endpoint(&mut self, endpoint: C) -> SocketId {
        self.endpoints.add(endpoint)
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
        let endpoint = self.endpoints.get_mut(socket)?;
        let connection = endpoint.call(now, remote, expected, ConnectionPurpose::NewSession)?;
        let id = self.sessions.new_id();
        self.roles.set(ConnectionKey { socket, connection }, Role::Opening(id));
        Ok(id)
    }

    /// Connects to the far end of a session for one more path.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn join(
        &mut self,
        now: Instant,
        id: SessionId,
        target: PathTarget,
        options: PathOptions,
    ) -> Result<PathId, ConnectError> {
        let PathTarget { socket, remote } = target;
        let held = self.sessions.get_mut(id).ok_or(ConnectError::NoSession)?;
        let endpoint = self.endpoints.get_mut(socket)?;
        let too_many = |_| ConnectError::TooMany { max: usize::from(u8::MAX) };
        let path = u8::try_from(held.next_path).map(PathId).map_err(too_many)?;
        let connection =
            endpoint.call(now, remote, held.peer.shown, ConnectionPurpose::JoinSession)?;
        held.next_path += 1;
        let joining = Joining::connecting(id, path, options, remote);
        self.roles.set(ConnectionKey { socket, connection }, Role::Joining(joining));
        Ok(path)
    }

    /// Closes one path of a session, telling the far end why.
    pub fn leave(&mut self, now: Instant, id: SessionId, path: PathId, reason: &str) {
        let key = self.sessions.get(id).and_then(|held| held.paths.get(&path)).copied();
        if let Some(connection) = key.and_then(|key| self.endpoints.connection(key)) {
            connection.close(now, reason);
        }
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
        self.sessions.get_mut(id).map(|held| &mut held.session)
    }

    /// The connected sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, held)| (id, &held.session))
    }

    /// The measurements of a session's first path.
    pub fn estimate(&mut self, id: SessionId) -> Option<Estimate> {
        let key = *self.sessions.get(id)?.paths.first_key_value()?.1;
        self.endpoints.connection(key).map(|path| path.estimate())
    }

    /// The connections that are a session's paths: the endpoint of each, and the connection there.
    pub fn paths(
        &self,
        id: SessionId,
    ) -> impl Iterator<Item = (PathId, SocketId, ConnectionId)> + '_ {
        let paths = self.sessions.get(id).into_iter().flat_map(|held| held.paths.iter());
        paths.map(|(path, key)| (*path, key.socket, key.connection))
    }

    /// Closes a session's connections, telling the far end why.
    pub fn close(&mut self, now: Instant, id: SessionId, reason: &str) {
        let mut keys: Vec<ConnectionKey> = self.roles.opened_for(id).collect();
        keys.extend(self.sessions.get(id).into_iter().flat_map(|held| held.paths.values()));
        for key in keys {
            if let Some(path) = self.endpoints.connection(key) {
                path.close(now, reason);
            }
        }
    }

    /// Does what is due on the connections; sessions are served by [`SessionManager::flush`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoints.handle_timeout(now);
    }

    /// Moves what can move between sessions and their paths. Call it after datagrams, time-outs and
    /// changes to sessions, then take events and transmits.
    pub fn flush(&mut self, now: Instant) {
        self.flushed = now;
        self.take_endpoint_events(now);
        self.advance_joins(now);
        let mut moved = false;
        for (id, held) in self.sessions.iter_mut() {
            moved |= held.serve(&mut self.endpoints, now);
            while let Some(event) = held.session.poll() {
                self.events.push_back(SessionManagerEvent::Session { id, event });
            }
        }
        if moved {
            self.sessions.fill_shared(&mut self.endpoints, now);
        }
        self.take_endpoint_events(now);
    }

    /// When [`SessionManager::handle_timeout`] and [`SessionManager::flush`] are due.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let flushed = self.flushed;
        let due = |session: &Session| {
            let due = session.next_timeout().map(|due| match due <= flushed {
                true => flushed + WAITING,
                false => due,
            });
            let line = session.sender().sharing().rate_due(flushed);
            [due, line].into_iter().flatten().min()
        };
        let sessions = self.sessions.iter().filter_map(|(_, held)| due(&held.session)).min();
        [self.endpoints.next_timeout(), sessions].into_iter().flatten().min()
    }

    /// Fills the room that the datagrams which have left made: no event announces it. Whether there
    /// is more to send now.
    pub fn refill(&mut self, now: Instant) -> bool {
        let (mut any, mut moved) = (false, false);
        for (_, held) in self.sessions.iter_mut() {
            if held.session.has_symbol() {
                any |= held.refill(&mut self.endpoints, now);
            } else {
                held.session.sender_mut().sharing_mut().rest();
            }
            moved |= held.session.sender_mut().sharing_mut().gives_way();
        }
        if any || moved {
            any |= self.sessions.fill_shared(&mut self.endpoints, now);
        }
        any
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SessionManagerEvent> {
        self.events.pop_front()
    }

    fn take_endpoint_events(&mut self, now: Instant) {
        for socket in self.endpoints.sockets() {
            while let Some(event) = self.endpoints.poll_event(socket) {
                let key = |connection| ConnectionKey { socket, connection };
                match event {
                    EndpointEvent::Ready { id, peer, keying, incoming, purpose, version } => {
                        let agreed = Agreed { peer, keying, version };
                        match purpose {
                            ConnectionPurpose::JoinSession => {
                                self.begin_join(now, key(id), agreed);
                            }
                            ConnectionPurpose::NewSession => {
                                let id = self.begin_session(key(id), agreed);
                                self.events.push_back(SessionManagerEvent::Connected {
                                    id,
                                    fingerprint: peer,
                                    incoming,
                                });
                            }
                        }
                    }
                    EndpointEvent::Refused { id, remote, fingerprint, reason } => {
                        let role = id.and_then(|id| self.roles.take(key(id)));
                        self.events.extend(refused(role, remote, fingerprint, reason));
                    }
                    EndpointEvent::Closed { id, reason } => self.closed(now, key(id), reason),
                }
            }
        }
    }

    /// The first connection of a session is up.
    fn begin_session(&mut self, key: ConnectionKey, agreed: Agreed) -> SessionId {
        let id = self.roles.opening(key).unwrap_or_else(|| self.sessions.new_id());
        let held = HeldSession::new(self.session_config.clone(), key, agreed);
        self.sessions.insert(id, held);
        self.roles.set(key, Role::Member(id, PathId(0)));
        id
    }

    /// A connection for one more path is up.
    fn begin_join(&mut self, now: Instant, key: ConnectionKey, agreed: Agreed) {
        let accepting = || Joining::accepting(agreed.peer);
        let joining = self.roles.take_joining(key).unwrap_or_else(accepting);
        let progress = joining.begin(now, agreed, self.endpoints.connection(key), &self.sessions);
        self.events.extend(self.roles.keep(key, progress, &mut self.sessions));
    }

    /// Brings connections that join forward.
    fn advance_joins(&mut self, now: Instant) {
        for key in self.roles.joining() {
            if let Some(joining) = self.roles.take_joining(key)
                && let Some(connection) = self.endpoints.connection(key)
            {
                let progress = joining.advance(now, connection, &mut self.sessions);
                self.events.extend(self.roles.keep(key, progress, &mut self.sessions));
            }
        }
    }

    /// Takes in what the connection still received. The session ends with its last connection.
    fn closed(&mut self, now: Instant, key: ConnectionKey, reason: DownReason) {
        match self.roles.take(key) {
            Some(Role::Member(id, path)) => {
                let Some(held) = self.sessions.get_mut(id) else { return };
                if let Some(connection) = self.endpoints.connection(key) {
                    take_in(&mut held.session, path, connection, now);
                }
                held.session.handle(now, path, PathEvent::Down(reason.clone()));
                held.paths.remove(&path);
                if reason == DownReason::GoesOnElsewhere {
                    going_on::end_others(held, &mut self.endpoints, &mut self.roles, now);
                }
                while let Some(event) = held.session.poll() {
                    self.events.push_back(SessionManagerEvent::Session { id, event });
                }
                if held.paths.is_empty() {
                    self.sessions.remove(id);
                    self.events.push_back(SessionManagerEvent::Disconnected { id, reason });
                }
            }
            Some(Role::Joining(joining)) => {
                self.events.extend(joining.refused(reason.to_string()));
            }
            Some(Role::Opening(_)) | None => {}
        }
    }
}

impl<C: Datagrams> SessionManager<C> {
    /// A datagram arrived at the socket of an endpoint.
    pub fn handle_datagram(&mut self, now: Instant, socket: SocketId, received: ReceivedDatagram) {
        self.endpoints.handle_datagram(now, socket, received);
    }

    /// The next datagram, or batch of datagrams of one size, into `out`, which is emptied first;
    /// and the endpoint whose socket it goes from.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<(SocketId, Transmit)> {
        let found = self.endpoints.poll_transmit(now, out);
        if found.is_some() || !self.refill(now) {
            return found;
        }
        self.endpoints.poll_transmit(now, out)
    }
}
