//! Datagrams: each client of a port here, and each target that it names, is an association: a
//! stream of its own, with a socket of its own at the other end. Nothing waits for room: what
//! cannot leave in time is dropped and counted.

use crate::FarTarget;
use crate::context::{ForwardContext, Located};
use crate::listeners::{FromClient, Leads, Listeners};
use crate::refusal::RequestRefusal;
use crate::sessions::Reach;
use crate::socket::{self, Moved};
use crate::streams::{OnStream, StreamKey, StreamTable};
use bytes::Bytes;
use rustix::io::Errno;
use skyhaul_forward::{DATAGRAM_DEADLINE, Lane, Target, socks};
use skyhaul_net::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_transport::cost;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// All associations.
#[derive(Debug, Default)]
pub(super) struct Associations {
    all: StreamTable<Association>,
    clients: BTreeMap<Client, u64>,
    /// Associations whose target may have sent something.
    readable_targets: BTreeSet<u64>,
}

/// One client's datagrams to one target.
#[derive(Debug)]
struct Association {
    stream: StreamKey,
    target: Target,
    lane: Lane,
    deadline: Duration,
    end: End,
    /// When a datagram was last sent or received.
    active: Instant,
    idle: Duration,
}

/// This end of an association.
#[derive(Debug)]
enum End {
    /// A client, which has its answers from this socket.
    Client(Client, Arc<OwnedFd>),
    /// The far node has refused it at that time: for a while, what the client sends is dropped.
    Refused(Client, Instant),
    /// The target's name is looked up; these wait.
    LookingUp(VecDeque<Bytes>),
    /// The target.
    Target(OwnedFd),
}

/// A client: the sender of datagrams to a listener. By SOCKS, it is another client for each target
/// that its datagrams name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Client {
    listener: u64,
    address: SocketAddr,
    named: Option<Target>,
}

/// How long a client may be idle where the setup does not say: as NAT keeps a flow (RFC 4787 4.3
/// asks for 2 min at least where the ports are few and shared; here they are not).
const IDLE: Duration = Duration::from_secs(60);
/// Clients at a time; one more replaces the one that was idle for longest.
const CLIENTS_MAX: usize = 4_096;
/// Datagrams that wait for a name look-up.
const WAITING_MAX: usize = 16;
/// Datagrams taken from one socket before the others have their turn.
const TURN: usize = 64;
/// For so long after a refusal the far node is not asked again.
const REFUSED: Duration = Duration::from_secs(5);

impl Associations {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn contains(&self, token: u64) -> bool {
        self.all.contains(token)
    }

    pub fn token(&self, stream: StreamKey) -> Option<u64> {
        self.all.token(stream)
    }

    /// A target's socket is ready.
    pub fn ready(&mut self, token: u64) {
        self.readable_targets.insert(token);
    }

    /// Takes datagrams from all sockets. Returns whether there may be more.
    pub fn take(
        &mut self,
        context: &mut ForwardContext,
        manager: &mut SessionManager,
        listeners: &mut Listeners,
    ) -> bool {
        // One buffer serves all sockets; it is lent for the time.
        let mut buffer = core::mem::take(&mut context.buffer);
        let mut more = false;
        for listener in listeners.with_datagrams(&context.sessions) {
            let mut count = 0;
            while count < TURN
                && let Some(came) = listeners.receive(listener, &mut buffer)
            {
                count += 1;
                self.accept(context, manager, &came, &buffer[..came.len]);
            }
            more |= count == TURN;
        }
        for token in core::mem::take(&mut self.readable_targets) {
            let mut count = 0;
            while count < TURN
                && let Some(len) = self.receive(token, &mut buffer)
            {
                count += 1;
                self.carry(context, manager, token, &buffer[..len]);
            }
            if count == TURN {
                self.readable_targets.insert(token);
                more = true;
            }
        }
        context.buffer = buffer;
        more
    }

    fn accept(
        &mut self,
        context: &mut ForwardContext,
        manager: &mut SessionManager,
        came: &FromClient,
        bytes: &[u8],
    ) {
        let (target, named, bytes) = match &came.entry.leads {
            Leads::Arrival(FarTarget::For(target)) => (Some(target.clone()), None, bytes),
            Leads::Wrapped { client } => {
                let is_own = came.address.ip().to_canonical() == *client;
                match socks::unwrap(bytes).filter(|_| is_own) {
                    Some((target, bytes)) => (Some(target.clone()), Some(target), bytes),
                    None => (None, None, bytes),
                }
            }
            Leads::Arrival(_) => (None, None, bytes),
        };
        let client = Client { listener: came.listener, address: came.address, named };
        match target.and_then(|target| self.of_client(context, client, target, came)) {
            Some(token) => self.carry(context, manager, token, bytes),
            None => context.counters.datagrams.dropped += 1,
        }
    }

    /// The association of a client, which is opened if there is none; `None` where the far node is
    /// not connected or has refused.
    fn of_client(
        &mut self,
        context: &mut ForwardContext,
        client: Client,
        target: Target,
        came: &FromClient,
    ) -> Option<u64> {
        if let Some(token) = self.clients.get(&client) {
            let known = self.all.get(*token)?;
            return matches!(known.end, End::Client(..)).then_some(*token);
        }
        let entry = &came.entry;
        let Reach::Open(session) = context.sessions.reach(entry.owner) else { return None };
        if self.clients.len() >= CLIENTS_MAX {
            self.end_longest_idle(context);
        }
        let peer = context.sessions.get_mut(session)?;
        let stream = peer.mux.open(context.now, target.clone(), &entry.carriage).ok()?;
        let association = Association {
            stream: StreamKey { session, stream },
            target,
            lane: peer.mux.lane(stream).unwrap_or_default(),
            deadline: entry.carriage.deadline.unwrap_or(DATAGRAM_DEADLINE),
            end: End::Client(client.clone(), Arc::clone(&came.socket)),
            active: context.now,
            idle: entry.idle.unwrap_or(IDLE),
        };
        context.counters.accepted += 1;
        let token = context.poller.token();
        self.all.insert(token, association);
        self.clients.insert(client, token);
        Some(token)
    }

    /// The next datagram of a target: its length.
    fn receive(&self, token: u64, buffer: &mut [u8]) -> Option<usize> {
        match &self.all.get(token)?.end {
            End::Target(socket) => socket::receive(socket, buffer),
            End::Client(..) | End::Refused(..) | End::LookingUp(_) => None,
        }
    }

    /// Hands a datagram to the session, or drops it where more waits than leaves in time.
    fn carry(
        &mut self,
        context: &mut ForwardContext,
        manager: &mut SessionManager,
        token: u64,
        bytes: &[u8],
    ) {
        if self.has_carried(context, manager, token, bytes) {
            context.counters.datagrams.sent += 1;
            context.counters.bytes_sent += bytes.len() as u64;
        } else {
            context.counters.datagrams.dropped += 1;
        }
    }

    fn has_carried(
        &mut self,
        context: &mut ForwardContext,
        manager: &mut SessionManager,
        token: u64,
        bytes: &[u8],
    ) -> bool {
        let Some(association) = self.all.get_mut(token) else { return false };
        association.active = context.now;
        let StreamKey { session: id, stream } = association.stream;
        let (Some(peer), Some(session)) = (context.sessions.get_mut(id), manager.session(id))
        else {
            return false;
        };
        let (lane, in_time) = (association.lane, peer.in_time(association.deadline));
        let has_room = peer.flush(context.now, session)
            && session.sender().waiting(lane.class, lane.priority).as_u64() <= in_time
            && peer.room(session) >= 2 * cost(bytes.len());
        let is_taken = has_room && peer.mux.datagram(stream, bytes);
        if is_taken {
            peer.flush(context.now, session);
        }
        is_taken
    }

    /// A far node asks for datagrams to a target.
    pub fn dial(&mut self, context: &mut ForwardContext, stream: StreamKey, target: Target) {
        let Some(peer) = context.sessions.get(stream.session) else { return };
        let association = Association {
            stream,
            target: target.clone(),
            lane: peer.mux.lane(stream.stream).unwrap_or_default(),
            deadline: peer.mux.deadline(stream.stream).unwrap_or(DATAGRAM_DEADLINE),
            end: End::LookingUp(VecDeque::new()),
            active: context.now,
            idle: IDLE,
        };
        let token = context.poller.token();
        self.all.insert(token, association);
        match context.locate(stream.session, token, &target) {
            Located::At(address) => self.connect(context, token, &[address]),
            Located::LookingUp => {}
            Located::Refused(refusal) => self.refuse(context, token, refusal),
        }
    }

    /// A name look-up has ended.
    pub fn located(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        addresses: Result<Vec<SocketAddr>, RequestRefusal>,
    ) {
        match addresses {
            Ok(addresses) => self.connect(context, token, &addresses),
            Err(refusal) => self.refuse(context, token, refusal),
        }
    }

    /// Connects a socket to the first of the target's addresses that is allowed and has a route.
    fn connect(&mut self, context: &mut ForwardContext, token: u64, addresses: &[SocketAddr]) {
        let Some(association) = self.all.get_mut(token) else { return };
        let StreamKey { session, stream } = association.stream;
        let allowed = context.allowed(session, &association.target, addresses);
        if allowed.is_empty() {
            return self.refuse(context, token, RequestRefusal::not_allowed());
        }
        let mut last = Errno::ADDRNOTAVAIL;
        for address in allowed {
            let opened =
                socket::connect_udp(&address).and_then(|socket| context.watched(socket, token));
            let socket = match opened {
                Ok(socket) => socket,
                Err(errno) => {
                    last = errno;
                    continue;
                }
            };
            let before = core::mem::replace(&mut association.end, End::Target(socket));
            if let Some(peer) = context.sessions.get_mut(session) {
                peer.mux.accept(context.now, stream);
            }
            context.counters.connected += 1;
            if let End::LookingUp(waiting) = before {
                waiting.into_iter().for_each(|bytes| self.received(context, token, bytes));
            }
            return;
        }
        self.refuse(context, token, RequestRefusal::of_connect(last));
    }

    /// Tells the far node that no datagrams go there.
    fn refuse(&mut self, context: &mut ForwardContext, token: u64, refusal: RequestRefusal) {
        let Some(association) = self.remove(context, token) else { return };
        let StreamKey { session, stream } = association.stream;
        if let Some(peer) = context.sessions.get_mut(session) {
            peer.mux.refuse(stream, refusal.reason, &refusal.sentence);
        }
        context.refused(association.target, refusal);
    }

    /// The far node takes no datagrams for that target.
    pub fn refused(&mut self, context: &mut ForwardContext, token: u64, refusal: RequestRefusal) {
        let Some(association) = self.all.get_mut(token) else { return };
        let (stream, target) = (association.stream, association.target.clone());
        if let End::Client(client, _) = &association.end {
            association.end = End::Refused(client.clone(), context.now);
        }
        self.all.detach(stream);
        context.refused(target, refusal);
    }

    /// A datagram came from the far node.
    pub fn received(&mut self, context: &mut ForwardContext, token: u64, bytes: Bytes) {
        let Some(association) = self.all.get_mut(token) else {
            context.counters.datagrams.dropped += 1;
            return;
        };
        association.active = context.now;
        let len = bytes.len() as u64;
        let sent = match &mut association.end {
            End::LookingUp(waiting) if waiting.len() < WAITING_MAX => {
                return waiting.push_back(bytes);
            }
            End::Target(socket) => socket::write(socket, &bytes),
            End::Client(client, socket) if client.named.is_some() => {
                socket::send_to(socket, &socks::wrap(&association.target, &bytes), &client.address)
            }
            End::Client(client, socket) => socket::send_to(socket, &bytes, &client.address),
            End::LookingUp(_) | End::Refused(..) => Moved::Blocked,
        };
        match sent {
            Moved::Some(_) => {
                context.counters.datagrams.received += 1;
                context.counters.bytes_received += len;
            }
            // That nobody listens at a target does not end the association: somebody may the next
            // time.
            Moved::Blocked | Moved::End | Moved::Broken => context.counters.datagrams.dropped += 1,
        }
    }

    /// The far node has ended an association.
    pub fn ended_by_peer(&mut self, context: &mut ForwardContext, token: u64) {
        if self.remove(context, token).is_some() {
            context.counters.finished += 1;
        }
    }

    /// A session has ended.
    pub fn end_session(&mut self, context: &mut ForwardContext, session: SessionId) {
        for token in self.all.tokens_where(|held| held.stream.session == session) {
            // One that was refused has no stream any more: it stays until its time is over.
            if self.all.get(token).is_some_and(|held| !matches!(held.end, End::Refused(..))) {
                self.ended_by_peer(context, token);
            }
        }
    }

    /// The class tree of a session has changed.
    pub fn change_lanes(&mut self, context: &ForwardContext, session: SessionId) {
        let Some(peer) = context.sessions.get(session) else { return };
        for association in self.all.of_session(session) {
            association.lane = peer.mux.lane(association.stream.stream).unwrap_or_default();
        }
    }

    fn remove(&mut self, context: &mut ForwardContext, token: u64) -> Option<Association> {
        let association = self.all.remove(token)?;
        match &association.end {
            End::Client(client, _) | End::Refused(client, _) => drop(self.clients.remove(client)),
            End::LookingUp(waiting) => context.counters.datagrams.dropped += waiting.len() as u64,
            End::Target(_) => {}
        }
        Some(association)
    }

    /// Ends an association at both ends.
    fn end(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(association) = self.remove(context, token) else { return };
        if matches!(association.end, End::Refused(..)) {
            return;
        }
        context.counters.finished += 1;
        let StreamKey { session, stream } = association.stream;
        if let Some(peer) = context.sessions.get_mut(session) {
            peer.mux.reset(stream);
        }
    }

    /// A listener is closed.
    pub fn end_clients_of(&mut self, context: &mut ForwardContext, listener: u64) {
        let of_it = self.clients.iter().filter(|(client, _)| client.listener == listener);
        let tokens: Vec<u64> = of_it.map(|(_, token)| *token).collect();
        tokens.into_iter().for_each(|token| self.end(context, token));
    }

    fn end_longest_idle(&mut self, context: &mut ForwardContext) {
        let active = |token: &&u64| self.all.get(**token).map(|association| association.active);
        if let Some(token) = self.clients.values().min_by_key(active).copied() {
            self.end(context, token);
        }
    }

    /// Ends associations of clients that were idle for too long. The end that opened an
    /// association ends it.
    pub fn sweep(&mut self, context: &mut ForwardContext) {
        let is_over = |association: &Association| match &association.end {
            End::Client(..) => context.now.since(association.active) >= association.idle,
            End::Refused(_, at) => context.now.since(*at) >= REFUSED,
            End::LookingUp(_) | End::Target(_) => false,
        };
        for token in self.all.tokens_where(is_over) {
            self.end(context, token);
        }
    }
}

impl OnStream for Association {
    fn stream(&self) -> StreamKey {
        self.stream
    }
}
