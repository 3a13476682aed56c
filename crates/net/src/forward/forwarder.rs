//! The service: what happens on sessions and sockets, and what comes of it.

use super::connection::{Connection, Phase};
use super::datagrams::{Association, Client};
use super::listeners::{Entry, Leads, Listener, Whose};
use super::nodes::Calls;
use super::peer::{BLOCK_MOST, Peer};
use super::poller::{Poller, READY_MAX, Ready};
use super::proxy::Greeting;
use super::remote::Wish;
use super::resolver::Resolver;
use super::{Counters, Listen, Notice, Setup, socket};
use crate::{Engine, Service, Waker};
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_forward::socks::{Reply, UNKNOWN, reply};
use skyhaul_forward::{Event as Told, Local, Refusal, Role, StreamId};
use skyhaul_transport::{Event, Opening, PolicyConfig, Received};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;

/// Forwards applications' connections; see [`super`].
///
/// Bounded: [`skyhaul_forward::STREAMS_MAX`] connections that each end of a session opened, and the bytes of [`Setup::budget`].
pub struct Forwarder {
    pub(super) setup: Setup,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    /// Started with the first name to look up.
    pub(super) resolver: Option<Resolver>,
    /// Those of the setup, in its order.
    own: Vec<u64>,
    pub(super) listeners: BTreeMap<u64, Listener>,
    pub(super) calls: Calls,
    /// In the order of [`Setup::remotes`].
    pub(super) wishes: Vec<Wish>,
    pub(super) peers: BTreeMap<SessionId, Peer>,
    pub(super) greetings: BTreeMap<u64, Greeting>,
    pub(super) connections: BTreeMap<u64, Connection>,
    pub(super) associations: BTreeMap<u64, Association>,
    pub(super) clients: BTreeMap<Client, u64>,
    /// Associations whose target may have sent something.
    pub(super) readable_targets: BTreeSet<u64>,
    /// Of connections and associations.
    pub(super) streams: BTreeMap<(SessionId, StreamId), u64>,
    next_token: u64,
    next_sweep: Instant,
    /// When statistics are told next, and what they were the last time.
    next_stats: Option<Instant>,
    told_stats: Counters,
    /// The system had no more descriptors: accepting waits for the next sweep.
    pub(super) exhausted: bool,
    pub(super) buffer: Vec<u8>,
    pub(super) counters: Counters,
    notify: Box<dyn FnMut(&Notice)>,
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
        let mut this = Self {
            calls: Calls::new(setup.nodes.len()),
            wishes: vec![Wish::default(); setup.remotes.len()],
            setup,
            poller,
            waker,
            resolver: None,
            own: Vec::new(),
            listeners: BTreeMap::new(),
            peers: BTreeMap::new(),
            greetings: BTreeMap::new(),
            connections: BTreeMap::new(),
            associations: BTreeMap::new(),
            clients: BTreeMap::new(),
            readable_targets: BTreeSet::new(),
            streams: BTreeMap::new(),
            next_token: 0,
            next_sweep: Instant::ZERO,
            next_stats: None,
            told_stats: Counters::default(),
            exhausted: false,
            buffer: vec![0; BLOCK_MOST as usize],
            counters: Counters::default(),
            notify,
        };
        for listen in this.setup.listens.clone() {
            let (carriage, idle) = (listen.carriage, listen.idle);
            let entry = Entry {
                whose: Whose::Node(listen.node),
                leads: Leads::Arrival(listen.arrival),
                carriage,
                idle,
            };
            let token = this
                .listen(&listen.local, entry)
                .map_err(|source| StartError::Listen { local: listen.local, source })?;
            this.own.push(token);
        }
        Ok(this)
    }

    /// Where it listens, in the order of [`Setup::listens`]: of port 0, with the one that was given. With what the setup says of
    /// it, and the node's name.
    pub fn locals(&self) -> impl Iterator<Item = (&Local, &Listen, &str)> {
        let listeners = self.own.iter().filter_map(|token| self.listeners.get(token));
        listeners.zip(&self.setup.listens).map(|(listener, listen)| {
            let node = self.setup.nodes.get(listen.node).map_or("", |node| node.name.as_str());
            (&listener.local, listen, node)
        })
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let waiting = self.connections.values().map(|connection| connection.waiting() as u64).sum();
        let connections = (self.connections.len() + self.associations.len()) as u64;
        let mut counters = Counters { connections, bytes_waiting: waiting, ..self.counters };
        self.peers.values().for_each(|peer| counters.add(&peer.stats));
        counters
    }

    pub(super) fn notice(&mut self, notice: &Notice) {
        (self.notify)(notice);
    }

    /// A name for the next socket.
    pub(super) const fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// Tells what was carried since the time before.
    fn tell_stats(&mut self, now: Instant) {
        let Some(interval) = self.setup.stats else { return };
        let due = *self.next_stats.get_or_insert(now + interval);
        if now < due {
            return;
        }
        self.next_stats = Some(now + interval);
        let counters = self.counters();
        let before = core::mem::replace(&mut self.told_stats, counters);
        let interval = interval + now.since(due);
        self.notice(&Notice::Stats { interval, counters: Box::new(counters), before: Box::new(before) });
    }

    /// Keeps a connection under its token.
    pub(super) fn keep_as(&mut self, token: u64, connection: Connection) {
        self.streams.insert((connection.session, connection.stream), token);
        self.connections.insert(token, connection);
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
        if let Some(listener) = self.listeners.get_mut(&ready.token) {
            listener.pending = true;
            return;
        }
        if self.greetings.contains_key(&ready.token) {
            return self.hear(now, ready.token);
        }
        if self.associations.contains_key(&ready.token) {
            self.readable_targets.insert(ready.token);
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
        self.sweep_greetings(now);
        self.sweep_associations(now);
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
            Told::Opened { id, target } if target.is_for_datagrams() => {
                self.dial_datagrams(now, (session, id), target);
            }
            Told::Opened { id, target } => self.dial(now, (session, id), target),
            Told::Accepted(id) => token(id).into_iter().for_each(|token| self.connected_there(token)),
            Told::Refused { id, reason, sentence } => {
                token(id)
                    .into_iter()
                    .for_each(|token| self.refused_there(now, token, reason, sentence.clone()));
            }
            Told::Datagram(id, bytes) => {
                token(id).into_iter().for_each(|token| self.datagram_came(now, token, bytes.clone()));
            }
            Told::ListenAsked { number, listen } => self.listen_asked(session, number, listen),
            Told::Listening { number, at } => self.heard(session, number, at),
            Told::NotListening { number, reason, sentence } => {
                self.not_heard(now, (session, number), (reason, sentence));
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
                let Some(token) = token(id) else { return };
                if let Some(connection) = self.remove(token) {
                    self.counters.reset += 1;
                    connection.abort();
                } else if self.forget(token).is_some() {
                    self.counters.finished += 1;
                }
            }
            Told::Credit(id) => token(id).into_iter().for_each(|token| self.queue(token)),
        }
    }

    /// The far end has connected.
    fn connected_there(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.phase = Phase::Open;
        if core::mem::take(&mut connection.expects_answer)
            && let Some(socket) = &connection.socket
            && !socket::say(socket, &reply(Reply::Succeeded, UNKNOWN))
        {
            self.reset(token);
        }
    }

    /// The far end has not.
    fn refused_there(&mut self, now: Instant, token: u64, reason: Refusal, sentence: String) {
        let Some(mut connection) = self.remove(token) else {
            return self.datagrams_refused(now, token, reason, sentence);
        };
        self.counters.refused += 1;
        let target = connection.target.clone();
        match connection.socket.take() {
            Some(socket) if connection.expects_answer => {
                socket::farewell(socket, &reply(reason.into(), UNKNOWN));
            }
            socket => socket.into_iter().for_each(socket::abort),
        }
        self.notice(&Notice::Refused { target, reason, sentence });
    }

    /// A session is gone, and all its connections with it.
    pub(super) fn left(&mut self, id: SessionId) -> Option<Peer> {
        let of_it = self.streams.iter().filter(|((session, _), _)| *session == id);
        let tokens: Vec<u64> = of_it.map(|(_, token)| *token).collect();
        for token in tokens {
            if let Some(connection) = self.remove(token) {
                self.counters.reset += 1;
                connection.abort();
            } else if self.forget(token).is_some() {
                self.counters.finished += 1;
            }
        }
        self.close_listeners_of(id);
        let peer = self.peers.remove(&id)?;
        self.counters.add(&peer.stats);
        Some(peer)
    }
}

impl Service for Forwarder {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, incoming, .. } => {
                let Some(session) = engine.session(id) else { return };
                session.open(Opening { name: self.setup.name.clone(), ..Opening::default() });
                session.share(self.setup.classes.clone(), PolicyConfig::default());
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
        self.wish_again(now);
        self.accept_all(now);
        let has_more = self.take_datagrams(now, engine) || has_more;
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
        let again = self.pump(now, engine);
        self.tell_stats(now);
        let at_once = has_more.then_some(now);
        [Some(self.next_sweep), self.next_stats, self.calls.next_call(), again, at_once]
            .into_iter()
            .flatten()
            .min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.fd())
    }
}
