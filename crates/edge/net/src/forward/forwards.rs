//! What happens on sessions and applications' sockets, and what comes of it.

use super::connection::{Connection, Phase};
use super::datagrams::{Association, Client};
use super::listeners::{Entry, Leads, Listener, ListenerOwner, Reach};
use super::peer::{BLOCK_MOST, ForwardSession, Peer};
use super::poller::{Poller, READY_MAX, Ready};
use super::proxy::Greeting;
use super::remote::Wish;
use super::resolver::Resolver;
use super::{Counters, ForwardNotice, Forwarding, ListenAddress, StartError, socket};
use crate::{SessionManager, Waker};
use skyhaul_forward::socks::{Reply, UNKNOWN, reply};
use skyhaul_forward::{ConnectRefusal, Event as Told, Local, StreamId};
use skyhaul_sessions::SessionId;
use skyhaul_transport::{BlockId, ClassTree, Received, Session};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::BorrowedFd;

/// Forwards applications' connections over sessions that somebody else begins, greets on and ends:
/// that one tells what happens on them, and calls [`Forwards::work`] then and whenever
/// [`Forwards::fd`] is readable.
///
/// Bounded: [`skyhaul_forward::STREAMS_MAX`] connections that each end of a session opened, and the
/// bytes of [`Forwarding::budget`].
pub struct Forwards {
    pub(super) setup: Forwarding,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    /// Started with the first name to look up.
    pub(super) resolver: Option<Resolver>,
    /// Those of the setup, in its order.
    own: Vec<u64>,
    pub(super) listeners: BTreeMap<u64, Listener>,
    /// How it stands with each of [`Forwarding::nodes`].
    pub(super) reaches: Vec<Reach>,
    /// In the order of [`Forwarding::remotes`].
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
    /// The system had no more descriptors: accepting waits for the next sweep.
    pub(super) exhausted: bool,
    pub(super) buffer: Vec<u8>,
    pub(super) counters: Counters,
    notify: Notify,
}

/// Who is told what an operator wants to know.
pub type Notify = Box<dyn FnMut(&ForwardNotice) + Send>;

/// How often time-outs of connections are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// Rounds of taking what is new before the line has its turn.
const ROUNDS: usize = 4;

impl Forwards {
    /// Listens where `setup` says. `notify` is told what an operator wants to know; `waker` wakes
    /// who calls [`Forwards::work`].
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(setup: Forwarding, waker: Waker, notify: Notify) -> Result<Self, StartError> {
        let poller = Poller::new().map_err(StartError::System)?;
        let mut this = Self {
            reaches: vec![Reach::Called; setup.nodes.len()],
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
            exhausted: false,
            buffer: vec![0; BLOCK_MOST as usize],
            counters: Counters::default(),
            notify,
        };
        for listen in this.setup.listens.clone() {
            let (carriage, idle) = (listen.carriage, listen.idle);
            let entry = Entry {
                whose: ListenerOwner::Node(listen.node),
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

    /// Where it listens, in the order of [`Forwarding::listens`]: of port 0, with the one that was
    /// given. With what the setup says of it, and the node's name.
    pub fn locals(&self) -> impl Iterator<Item = (&Local, &ListenAddress, &str)> {
        let listeners = self.own.iter().filter_map(|token| self.listeners.get(token));
        listeners.zip(&self.setup.listens).map(|(listener, listen)| {
            let node = self.setup.nodes.get(listen.node).map_or("", String::as_str);
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

    pub(super) fn notice(&mut self, notice: &ForwardNotice) {
        (self.notify)(notice);
    }

    /// A name for the next socket.
    pub(super) const fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// A session has begun, and carries forwards from when it is told that it is open.
    pub fn begun(&mut self, id: SessionId, session: &Session, member: ForwardSession) {
        let peer = Peer::new(member, session, self.setup.budget);
        self.peers.insert(id, peer);
    }

    /// Both ends of a session know each other.
    pub fn opened(&mut self, id: SessionId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.open = true;
        let Some(node) = peer.node else { return };
        if let Some(reach) = self.reaches.get_mut(node) {
            *reach = Reach::Open(id);
        }
        self.wish_all(id, node);
    }

    /// A node was called in vain, or is gone: connections to it are reset until it is there.
    pub fn unreached(&mut self, node: usize) {
        if let Some(reach) = self.reaches.get_mut(node) {
            *reach = Reach::Down;
        }
    }

    /// The line of a session is shared otherwise from now on.
    pub fn shared(&mut self, id: SessionId, classes: &ClassTree) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.mux.share(classes);
        let waiting: VecDeque<u64> =
            core::mem::take(&mut peer.lanes).into_values().flatten().collect();
        let of_it = self.streams.iter().filter(|((session, _), _)| *session == id);
        for ((_, stream), token) in of_it {
            let lane = peer.mux.lane(*stream).unwrap_or_default();
            if let Some(connection) = self.connections.get_mut(token) {
                connection.lane = lane;
            } else if let Some(association) = self.associations.get_mut(token) {
                association.lane = lane;
            }
        }
        for token in waiting {
            if let Some(connection) = self.connections.get(&token) {
                peer.lanes.entry(connection.lane).or_default().push_back(token);
            }
        }
    }

    /// A session has told what became of a block of these flows.
    pub fn settled(&mut self, id: SessionId, block: BlockId) {
        self.peers.get_mut(&id).into_iter().for_each(|peer| peer.settled(block));
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
        if self.is_still() {
            return false;
        }
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
        let overdue =
            |connection: &Connection| connection.is_overdue(now, super::dial::CONNECT_MAX);
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, held)| overdue(held))
            .map(|(token, _)| *token)
            .collect();
        for token in late {
            match self.connections.get(&token).map(|connection| connection.phase) {
                Some(Phase::Connecting) => {
                    self.refuse(token, ConnectRefusal::TimedOut, "no answer");
                }
                _ => self.reset(token),
            }
        }
        self.sweep_greetings(now);
        self.sweep_associations(now);
    }

    /// A block of these flows came.
    pub fn block(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        received: &Received,
    ) {
        let Some(session) = manager.session(id) else { return };
        // Windows of streams bound what is kept from here on; the session's window is for what is
        // on the way.
        session.release(received.bytes.len());
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(flow) = peer.range.inner(received.id.flow) else {
            return session.refuse("a block of a flow that carries no forward");
        };
        if let Err(error) = peer.mux.receive(now, flow, &received.bytes) {
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
            Told::Accepted(id) => {
                token(id).into_iter().for_each(|token| self.connected_there(token));
            }
            Told::Refused { id, reason, sentence } => {
                token(id)
                    .into_iter()
                    .for_each(|token| self.refused_there(now, token, reason, sentence.clone()));
            }
            Told::Datagram(id, bytes) => {
                token(id)
                    .into_iter()
                    .for_each(|token| self.datagram_came(now, token, bytes.clone()));
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
    fn refused_there(
        &mut self,
        now: Instant,
        token: u64,
        reason: ConnectRefusal,
        sentence: String,
    ) {
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
        self.notice(&ForwardNotice::Refused { target, reason, sentence });
    }

    /// A session is gone, and all its connections with it. Whether it was open.
    pub fn left(&mut self, id: SessionId) -> bool {
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
        self.reaches
            .iter_mut()
            .filter(|reach| **reach == Reach::Open(id))
            .for_each(|reach| *reach = Reach::Down);
        let Some(peer) = self.peers.remove(&id) else { return false };
        self.counters.add(&peer.stats);
        peer.open
    }

    /// Takes what sockets have new, and hands over what the line has room for. When it wants to be
    /// called again by itself.
    pub fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Instant {
        let has_more = self.take_ready(now);
        self.take_resolved(now);
        self.wish_again(now);
        self.accept_all(now);
        let has_more = self.take_datagrams(now, manager) || has_more;
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
        let again = self.pump(now, manager);
        let at_once = has_more.then_some(now);
        [again, at_once].into_iter().flatten().fold(self.next_sweep, Instant::min)
    }

    /// Readable when sockets have something new.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.poller.fd()
    }

    /// Whether there is no socket that could have something new.
    pub fn is_still(&self) -> bool {
        self.listeners.is_empty() && self.connections.is_empty() && self.associations.is_empty()
    }
}
