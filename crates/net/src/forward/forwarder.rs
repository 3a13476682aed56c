//! The service: what happens on sessions and sockets, and what comes of it.

use super::connection::{Connection, Phase};
use super::nodes::Calls;
use super::peer::{BLOCK_MOST, Peer};
use super::poller::{Poller, READY_MAX, Ready};
use super::resolver::Resolver;
use super::{Counters, Notice, Setup, socket};
use crate::{Engine, Service, Waker};
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_forward::{Event as Told, Local, Refusal, Role, StreamId};
use skyhaul_transport::{Event, Opening, Received};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Forwards applications' connections; see [`super`].
///
/// Bounded: [`skyhaul_forward::STREAMS_MAX`] connections that each end of a session opened, and the bytes of [`Setup::budget`].
pub struct Forwarder {
    pub(super) setup: Setup,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    /// Started with the first name to look up.
    pub(super) resolver: Option<Resolver>,
    pub(super) listeners: Vec<Listener>,
    pub(super) calls: Calls,
    pub(super) peers: BTreeMap<SessionId, Peer>,
    pub(super) connections: BTreeMap<u64, Connection>,
    pub(super) streams: BTreeMap<(SessionId, StreamId), u64>,
    next_token: u64,
    next_sweep: Instant,
    /// The system had no more descriptors: accepting waits for the next sweep.
    pub(super) exhausted: bool,
    pub(super) buffer: Vec<u8>,
    pub(super) counters: Counters,
    notify: Box<dyn FnMut(&Notice)>,
}

/// Where applications come in.
#[derive(Debug)]
pub(super) struct Listener {
    pub socket: OwnedFd,
    /// Connections may wait to be accepted.
    pub pending: bool,
}

/// Why a forwarder did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system refused what every forwarder needs.
    #[error("the system has no room for another poller ({0}): close other programs")]
    System(io::Error),
    /// A port or socket file cannot be listened at.
    #[error("{local} cannot be listened at ({source}): stop the program that uses it, or give another one")]
    Listen {
        /// Where.
        local: Local,
        /// Why.
        source: io::Error,
    },
}

/// Tokens below are listeners'.
const FIRST_CONNECTION: u64 = 1 << 16;
/// How often time-outs of connections are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// Rounds of taking what is new before the line has its turn.
const ROUNDS: usize = 4;

impl Forwarder {
    /// Listens where `setup` says. `notify` is told what an operator wants to know; `waker` is the driver's.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(setup: Setup, waker: Waker, notify: Box<dyn FnMut(&Notice)>) -> Result<Self, StartError> {
        let poller = Poller::new().map_err(StartError::System)?;
        let mut listeners = Vec::new();
        for (token, listen) in (0..).zip(&setup.listens) {
            let failed = |source| StartError::Listen { local: listen.local.clone(), source };
            let socket = socket::listen_at(&listen.local).map_err(failed)?;
            poller.watch(&socket, token).map_err(failed)?;
            listeners.push(Listener { socket, pending: false });
        }
        Ok(Self {
            calls: Calls::new(setup.nodes.len()),
            setup,
            poller,
            waker,
            resolver: None,
            listeners,
            peers: BTreeMap::new(),
            connections: BTreeMap::new(),
            streams: BTreeMap::new(),
            next_token: FIRST_CONNECTION,
            next_sweep: Instant::ZERO,
            exhausted: false,
            buffer: vec![0; BLOCK_MOST as usize],
            counters: Counters::default(),
            notify,
        })
    }

    /// The sockets listened at, in the order of [`Setup::listens`]: of port 0, the one that was given.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_ports(&self) -> io::Result<Vec<Option<u16>>> {
        let port = |listener: &Listener| {
            let address = rustix::net::getsockname(&listener.socket)?;
            Ok(core::net::SocketAddr::try_from(address).ok().map(|address| address.port()))
        };
        self.listeners.iter().map(port).collect()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let waiting = self.connections.values().map(|connection| connection.waiting() as u64).sum();
        Counters { connections: self.connections.len() as u64, bytes_waiting: waiting, ..self.counters }
    }

    pub(super) fn notice(&mut self, notice: &Notice) {
        (self.notify)(notice);
    }

    /// Keeps a connection, and gives its token.
    pub(super) fn keep(&mut self, connection: Connection) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.streams.insert((connection.session, connection.stream), token);
        self.connections.insert(token, connection);
        token
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, token: u64) -> Option<Connection> {
        let connection = self.connections.remove(&token)?;
        self.streams.remove(&(connection.session, connection.stream));
        Some(connection)
    }

    /// Ends a connection at once, at both ends.
    pub(super) fn reset(&mut self, token: u64) {
        let Some(connection) = self.remove(token) else { return };
        if let Some(peer) = self.peers.get_mut(&connection.session) {
            peer.mux.reset(connection.stream);
        }
        self.counters.reset += 1;
        connection.abort();
    }

    /// Writes what waits for a connection, and closes it where both directions are over.
    pub(super) fn write(&mut self, now: Instant, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let (written, stands) = connection.write(now);
        self.counters.bytes_received += written as u64;
        if let Some(peer) = self.peers.get_mut(&connection.session)
            && written > 0
        {
            peer.mux.taken(now, peer.rtt, connection.stream, written);
        }
        if !stands {
            self.reset(token);
        } else if connection.is_done() {
            self.counters.finished += 1;
            drop(self.remove(token));
        }
    }

    /// What the sockets have new; whether there may be more.
    fn take_ready(&mut self, now: Instant) -> bool {
        for _ in 0..ROUNDS {
            // A poller that fails has no sockets to tell of; those of the line fail with it.
            let ready = self.poller.take().unwrap_or_default();
            let is_all = ready.len() < READY_MAX;
            for ready in ready {
                self.ready(now, ready);
            }
            if is_all {
                return false;
            }
        }
        true
    }

    fn ready(&mut self, now: Instant, ready: Ready) {
        if let Some(listener) =
            usize::try_from(ready.token).ok().and_then(|token| self.listeners.get_mut(token))
        {
            listener.pending = true;
            return;
        }
        let Some(connection) = self.connections.get_mut(&ready.token) else { return };
        if connection.phase == Phase::Connecting {
            if ready.writable {
                self.dialled(now, ready.token);
            }
            return;
        }
        if ready.broken
            && let Some(socket) = &connection.socket
            && socket::error(socket).is_some()
        {
            return self.reset(ready.token);
        }
        if ready.writable {
            connection.set_writable();
        }
        if ready.readable {
            connection.readable = true;
            self.queue(ready.token);
        }
        self.write(now, ready.token);
    }

    /// Puts a connection that has something to send into its lane.
    pub(super) fn queue(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let is_wanted = connection.readable && !connection.queued && !connection.read_ended;
        if let Some(peer) = self.peers.get_mut(&connection.session).filter(|_| is_wanted) {
            connection.queued = true;
            peer.lanes.entry(connection.lane).or_default().push_back(token);
        }
    }

    /// Accepts what applications ask for, where the far node is there. Where it does not answer they are reset: that is what they
    /// would see of a host that is not there.
    fn accept_all(&mut self, now: Instant) {
        for index in 0..self.listeners.len() {
            let node = self.setup.listens[index].node;
            let session =
                self.calls.session(node).filter(|id| self.peers.get(id).is_some_and(|peer| peer.open));
            if session.is_none() && !self.calls.is_down(node) {
                continue;
            }
            while self.listeners[index].pending && !self.exhausted {
                match socket::accept(&self.listeners[index].socket) {
                    Ok(Some(socket)) => match session {
                        Some(session) => self.accepted(now, index, session, socket),
                        None => socket::abort(socket),
                    },
                    Ok(None) => self.listeners[index].pending = false,
                    Err(_) => self.exhausted = true,
                }
            }
        }
    }

    fn accepted(&mut self, now: Instant, index: usize, session: SessionId, socket: OwnedFd) {
        let Some(peer) = self.peers.get_mut(&session) else { return socket::abort(socket) };
        let listen = &self.setup.listens[index];
        let Ok(stream) = peer.mux.open(now, listen.target.clone(), &listen.carriage) else {
            self.counters.refused += 1;
            return socket::abort(socket);
        };
        self.counters.accepted += 1;
        let mut connection = Connection::new(now, (session, stream), listen.target.clone(), Phase::Asking);
        connection.lane = peer.mux.lane(stream).unwrap_or_default();
        connection.idle = listen.idle;
        connection.socket = Some(socket);
        let token = self.keep(connection);
        let watched = self.connections.get(&token).and_then(|connection| connection.socket.as_ref());
        if watched.is_none_or(|socket| self.poller.watch(socket, token).is_err()) {
            self.reset(token);
        }
    }

    /// Resets what has been still for too long.
    fn sweep(&mut self, now: Instant) {
        self.exhausted = false;
        let overdue = |connection: &Connection| connection.is_overdue(now, super::dial::CONNECT_MAX);
        let late: Vec<u64> =
            self.connections.iter().filter(|(_, held)| overdue(held)).map(|(token, _)| *token).collect();
        for token in late {
            match self.connections.get(&token).map(|connection| connection.phase) {
                Some(Phase::Connecting) => {
                    self.refuse(token, Refusal::TimedOut, "no answer");
                }
                _ => self.reset(token),
            }
        }
    }

    fn block(&mut self, now: Instant, engine: &mut Engine, id: SessionId, received: &Received) {
        let Some(session) = engine.session(id) else { return };
        // Windows of streams bound what is kept from here on; the session's window is for what is on the way.
        session.release(received.bytes.len());
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if let Err(error) = peer.mux.receive(now, received.id.flow, &received.bytes) {
            return session.refuse(&error.to_string());
        }
        while let Some(event) = self.peers.get_mut(&id).and_then(|peer| peer.mux.poll_event()) {
            self.told(now, id, event);
        }
    }

    fn told(&mut self, now: Instant, session: SessionId, event: Told) {
        let token = |stream| self.streams.get(&(session, stream)).copied();
        match event {
            Told::Opened { id, target } => self.dial(now, (session, id), target),
            Told::Accepted(id) => {
                if let Some(connection) = token(id).and_then(|token| self.connections.get_mut(&token)) {
                    connection.phase = Phase::Open;
                }
            }
            Told::Refused { id, reason, sentence } => {
                let Some(connection) = token(id).and_then(|token| self.remove(token)) else { return };
                self.counters.refused += 1;
                let target = connection.target.clone();
                connection.abort();
                self.notice(&Notice::Refused { target, reason, sentence });
            }
            Told::Data(id, bytes) => {
                let Some(token) = token(id) else { return };
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.push(bytes);
                }
                self.write(now, token);
            }
            Told::Finished(id) => {
                let Some(token) = token(id) else { return };
                self.connections.get_mut(&token).into_iter().for_each(Connection::finish);
                self.write(now, token);
            }
            Told::Reset(id) => {
                if let Some(connection) = token(id).and_then(|token| self.remove(token)) {
                    self.counters.reset += 1;
                    connection.abort();
                }
            }
            Told::Credit(id) => token(id).into_iter().for_each(|token| self.queue(token)),
        }
    }

    /// A session is gone, and all its connections with it.
    pub(super) fn left(&mut self, id: SessionId) -> Option<Peer> {
        let of_it = self.streams.iter().filter(|((session, _), _)| *session == id);
        let tokens: Vec<u64> = of_it.map(|(_, token)| *token).collect();
        for token in tokens {
            if let Some(connection) = self.remove(token) {
                self.counters.reset += 1;
                connection.abort();
            }
        }
        self.peers.remove(&id)
    }
}

impl Service for Forwarder {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, incoming, .. } => {
                let Some(session) = engine.session(id) else { return };
                session.open(Opening { name: self.setup.name.clone(), ..Opening::default() });
                let role = if incoming { Role::Called } else { Role::Calling };
                let peer = Peer::new(role, session, self.setup.budget, self.calls.node_of(id));
                self.peers.insert(id, peer);
            }
            EngineEvent::Session { id, event: Event::Greeted { name, .. } } => {
                self.greeted(now, engine, id, name);
            }
            EngineEvent::Session { id, event: Event::Block(received) } => {
                self.block(now, engine, id, &received);
            }
            EngineEvent::Session { .. } | EngineEvent::PathRefused { .. } => {}
            EngineEvent::Disconnected { id, reason } => self.disconnected(now, id, reason.to_string()),
            EngineEvent::Refused { id: Some(id), reason, .. } => {
                self.disconnected(now, id, reason.to_string());
            }
            EngineEvent::Refused { id: None, remote, reason, .. } => {
                self.notice(&Notice::TurnedAway { remote, reason: reason.to_string() });
            }
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        let has_more = self.take_ready(now);
        self.take_resolved(now);
        self.call(now, engine);
        self.accept_all(now);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
        let again = self.pump(now, engine);
        let at_once = has_more.then_some(now);
        [Some(self.next_sweep), self.calls.next_call(), again, at_once].into_iter().flatten().min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.fd())
    }
}
