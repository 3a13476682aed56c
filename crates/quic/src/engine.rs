//! Sessions over QUIC paths: the endpoint, and for each connection the session that it carries.
//!
//! One engine serves one UDP socket, or one address in the lab. It is driven like everything sans-IO: hand it what
//! arrived and the time, then take datagrams and events until there are none.

use crate::{ConnectError, ConnectionId, Endpoint, EndpointEvent, Fingerprint, Received, Refusal, Transmit};
use core::net::SocketAddr;
use skyhaul_transport::{DownReason, Estimate, Event, Path as _, Session, SessionConfig, drive};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// An endpoint and the sessions over its connections.
pub struct Engine {
    endpoint: Endpoint,
    session_config: SessionConfig,
    sessions: BTreeMap<ConnectionId, Session>,
    events: VecDeque<EngineEvent>,
    /// When sessions were last served: what was due then and is still there waits for its path.
    flushed: Instant,
}

/// What the owner of an engine learns.
#[derive(Debug)]
pub enum EngineEvent {
    /// A trusted node is connected; open its session with [`Session::open`].
    Connected {
        /// The connection.
        id: ConnectionId,
        /// Whose key it proved to have.
        fingerprint: Fingerprint,
        /// Whether it came to us.
        incoming: bool,
    },
    /// Someone was turned away, or did not get in, before any session began.
    Refused {
        /// The connection, where there was one.
        id: Option<ConnectionId>,
        /// Its address.
        remote: SocketAddr,
        /// Its key, where it got as far as showing one.
        fingerprint: Option<Fingerprint>,
        /// A sentence for the log.
        reason: Refusal,
    },
    /// Something happened in a session.
    Session {
        /// The connection it runs over.
        id: ConnectionId,
        /// What.
        event: Event,
    },
    /// The connection ended; its session is gone.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// Why.
        reason: DownReason,
    },
}

/// A session that waits for its path's room is looked at this often, should the path not say when it has some.
const WAITING: Duration = Duration::from_millis(20);

impl Engine {
    /// An engine over `endpoint` whose sessions are set up as `session_config` says.
    pub fn new(endpoint: Endpoint, session_config: SessionConfig) -> Self {
        let (sessions, events) = Default::default();
        Self { endpoint, session_config, sessions, events, flushed: Instant::ZERO }
    }

    /// Begins a connection to the node at `remote` that has the key `expected`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<ConnectionId, ConnectError> {
        self.endpoint.connect(now, remote, expected)
    }

    /// The endpoint, for its counters and trusted keys.
    pub const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// A connected session. What is done to it takes effect at the next [`Engine::flush`].
    pub fn session(&mut self, id: ConnectionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// The connected sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (ConnectionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// The measurements of a session's path.
    pub fn estimate(&mut self, id: ConnectionId) -> Option<Estimate> {
        self.endpoint.path(id).map(|path| path.estimate())
    }

    /// Closes a connection, telling the far end why.
    pub fn close(&mut self, now: Instant, id: ConnectionId, reason: &str) {
        if let Some(path) = self.endpoint.path(id) {
            path.close(now, reason);
        }
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, received: Received) {
        self.endpoint.handle_datagram(now, received);
    }

    /// Does what is due on the connections; sessions are served by [`Engine::flush`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.next_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    /// Moves what can move between sessions and their paths. Call it after datagrams, time-outs and changes to
    /// sessions, then take events and transmits.
    pub fn flush(&mut self, now: Instant) {
        self.flushed = now;
        self.take_endpoint_events();
        for (id, session) in &mut self.sessions {
            let Some(path) = self.endpoint.path(*id) else { continue };
            drive(session, path, now);
            while let Some(event) = session.poll() {
                self.events.push_back(EngineEvent::Session { id: *id, event });
            }
        }
        self.take_endpoint_events();
    }

    /// When [`Engine::handle_timeout`] and [`Engine::flush`] are due.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let sessions = self.sessions.values().filter_map(Session::next_timeout).min();
        let waiting = self.flushed + WAITING;
        let sessions = sessions.map(|due| if due <= self.flushed { waiting } else { due });
        [self.endpoint.next_timeout(), sessions].into_iter().flatten().min()
    }

    /// The next datagram, or batch of datagrams of one size, into `out`, which is emptied first.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, out);
        if transmit.is_some() || !self.refill(now) {
            return transmit;
        }
        self.endpoint.poll_transmit(now, out)
    }

    /// Uses the room that short datagrams left: it shows when they are out, and nothing would come to tell of it.
    fn refill(&mut self, now: Instant) -> bool {
        let mut any = false;
        for (id, session) in &mut self.sessions {
            let path = self.endpoint.path(*id).filter(|_| session.has_symbol());
            if let Some(path) = path
                && path.room(now) > 0
            {
                drive(session, path, now);
                any = true;
            }
        }
        any
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<EngineEvent> {
        self.events.pop_front()
    }

    fn take_endpoint_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                EndpointEvent::Ready { id, peer, incoming } => {
                    self.sessions.insert(id, Session::new(self.session_config));
                    self.events.push_back(EngineEvent::Connected { id, fingerprint: peer, incoming });
                }
                EndpointEvent::Refused { id, remote, fingerprint, reason } => {
                    self.events.push_back(EngineEvent::Refused { id, remote, fingerprint, reason });
                }
                EndpointEvent::Closed { id, reason } => self.disconnected(id, reason),
            }
        }
    }

    /// The session gives what the path still brought, then goes.
    fn disconnected(&mut self, id: ConnectionId, reason: DownReason) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        if let Some(path) = self.endpoint.path(id) {
            drive(&mut session, path, self.flushed);
        }
        while let Some(event) = session.poll() {
            self.events.push_back(EngineEvent::Session { id, event });
        }
        self.events.push_back(EngineEvent::Disconnected { id, reason });
    }
}
