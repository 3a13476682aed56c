//! Datagrams: each client of a port here, and each target of it, is a stream of its own, with a
//! socket of its own at the other end. Nothing waits for room: what cannot leave in time is dropped
//! and counted.

use super::forwards::Forwards;
use super::listeners::{Entry, Leads, Reach};
use super::socket::{self, Moved};
use super::{FarTarget, ForwardNotice};
use crate::SessionManager;
use bytes::Bytes;
use rustix::io::Errno;
use skyhaul_forward::{ConnectRefusal, DATAGRAM_DEADLINE, StreamId, Target, socks};
use skyhaul_sessions::SessionId;
use skyhaul_transport::{ClassId, cost};
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// One client's datagrams to one target.
#[derive(Debug)]
pub(super) struct Association {
    pub session: SessionId,
    stream: StreamId,
    target: Target,
    pub lane: (ClassId, u8),
    deadline: Duration,
    end: End,
    /// When something last came or went.
    active: Instant,
    idle: Duration,
}

/// What is at this end of it.
#[derive(Debug)]
enum End {
    /// A client of a socket here.
    Client(Client),
    /// The far node has refused it at that time: what the client sends is dropped for a while.
    Refused(Client, Instant),
    /// The target's name is looked up; these wait.
    Resolving(VecDeque<Bytes>),
    /// The target.
    Target(OwnedFd),
}

/// Who sends to a socket here. One whose datagrams name their targets is another for each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Client {
    listener: u64,
    address: SocketAddr,
    named: Option<Target>,
}

/// Where no other time is given: as NAT keeps a flow (RFC 4787 4.3 asks for 2 min at least where
/// the ports are few and shared; here they are not).
const IDLE: Duration = Duration::from_secs(60);
/// Clients at a time; one more takes the place of the one that was still for longest.
const CLIENTS_MAX: usize = 4_096;
/// Datagrams that wait while a name is looked up.
const WAITING_MAX: usize = 16;
/// Datagrams taken from one socket before the others have their turn.
const TURN: usize = 64;
/// For so long after a refusal the far node is not asked again.
const REFUSED: Duration = Duration::from_secs(5);

impl Forwards {
    /// Takes what came to sockets for datagrams; whether there may be more.
    pub(super) fn take_datagrams(&mut self, now: Instant, manager: &mut SessionManager) -> bool {
        // What comes before the first call is answered waits in its socket.
        let waiting = self.listeners.iter().filter(|(_, held)| {
            held.pending && held.is_for_datagrams() && self.reach(held.entry.whose) != Reach::Called
        });
        let listeners: Vec<u64> = waiting.map(|(token, _)| *token).collect();
        let targets = core::mem::take(&mut self.readable_targets);
        // One buffer serves all; it is lent for the time.
        let mut buffer = core::mem::take(&mut self.buffer);
        let mut more = false;
        for token in listeners {
            let is_all = self.take_from_clients(now, manager, token, &mut buffer);
            if let Some(listener) = self.listeners.get_mut(&token).filter(|_| is_all) {
                listener.pending = false;
            }
            more |= !is_all;
        }
        for token in targets {
            if !self.take_from_target(now, manager, token, &mut buffer) {
                self.readable_targets.insert(token);
                more = true;
            }
        }
        self.buffer = buffer;
        more
    }

    fn take_from_clients(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        token: u64,
        buffer: &mut [u8],
    ) -> bool {
        for _ in 0..TURN {
            let Some(listener) = self.listeners.get(&token) else { return true };
            let Some((len, address)) = socket::receive_from(&listener.socket, buffer) else {
                return true;
            };
            let entry = listener.entry.clone();
            let (target, bytes) = match (&entry.leads, &buffer[..len]) {
                (Leads::Arrival(FarTarget::For(target)), bytes) => {
                    (Some((target.clone(), None)), bytes)
                }
                (Leads::Wrapped { client }, wrapped) => {
                    let own = address.ip().to_canonical() == *client;
                    let named = socks::unwrap(wrapped).filter(|_| own);
                    let bytes = named.as_ref().map_or(&[][..], |(_, bytes)| bytes);
                    (named.map(|(target, _)| (target.clone(), Some(target))), bytes)
                }
                (Leads::Arrival(_), bytes) => (None, bytes),
            };
            let Some((target, named)) = target else {
                self.counters.datagrams.dropped += 1;
                continue;
            };
            let client = Client { listener: token, address, named };
            match self.association(now, client, (target, &entry)) {
                Some(association) => self.carry(now, manager, association, bytes),
                None => self.counters.datagrams.dropped += 1,
            }
        }
        false
    }

    /// The association of a client, made where there is none; `None` where the far node is not
    /// there, or has refused.
    fn association(
        &mut self,
        now: Instant,
        client: Client,
        (target, entry): (Target, &Entry),
    ) -> Option<u64> {
        if let Some(token) = self.clients.get(&client) {
            let known = self.associations.get(token)?;
            return matches!(known.end, End::Client(_)).then_some(*token);
        }
        let Reach::Open(session) = self.reach(entry.whose) else { return None };
        if self.clients.len() >= CLIENTS_MAX {
            self.forget_stillest();
        }
        let peer = self.peers.get_mut(&session)?;
        let stream = peer.mux.open(now, target.clone(), &entry.carriage).ok()?;
        let association = Association {
            session,
            stream,
            target,
            lane: peer.mux.lane(stream).unwrap_or_default(),
            deadline: entry.carriage.deadline.unwrap_or(DATAGRAM_DEADLINE),
            end: End::Client(client.clone()),
            active: now,
            idle: entry.idle.unwrap_or(IDLE),
        };
        self.counters.accepted += 1;
        let token = self.keep_association(association);
        self.clients.insert(client, token);
        Some(token)
    }

    fn keep_association(&mut self, association: Association) -> u64 {
        let token = self.token();
        self.streams.insert((association.session, association.stream), token);
        self.associations.insert(token, association);
        token
    }

    fn take_from_target(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        token: u64,
        buffer: &mut [u8],
    ) -> bool {
        for _ in 0..TURN {
            let Some(Association { end: End::Target(socket), .. }) = self.associations.get(&token)
            else {
                return true;
            };
            match socket::receive(socket, buffer) {
                Some(len) => self.carry(now, manager, token, &buffer[..len]),
                None => return true,
            }
        }
        false
    }

    /// Hands a datagram over to the session, or drops it where more waits than leaves in time.
    fn carry(&mut self, now: Instant, manager: &mut SessionManager, token: u64, bytes: &[u8]) {
        let Some(association) = self.associations.get_mut(&token) else { return };
        association.active = now;
        let (lane, stream, deadline) = (association.lane, association.stream, association.deadline);
        let (peer, session) =
            (self.peers.get_mut(&association.session), manager.session(association.session));
        let (Some(peer), Some(session)) = (peer, session) else { return };
        let has_room = peer.flush(now, session)
            && session.waiting(lane.0, lane.1).as_u64() <= peer.in_time(deadline)
            && peer.room(session) >= 2 * cost(bytes.len());
        if has_room {
            peer.mux.datagram(stream, bytes);
            peer.flush(now, session);
            self.counters.datagrams.sent += 1;
            self.counters.bytes_sent += bytes.len() as u64;
        } else {
            self.counters.datagrams.dropped += 1;
        }
    }

    /// A far node asks for datagrams to a target.
    pub(super) fn dial_datagrams(
        &mut self,
        now: Instant,
        (session, stream): (SessionId, StreamId),
        target: Target,
    ) {
        let lane =
            self.peers.get(&session).and_then(|peer| peer.mux.lane(stream)).unwrap_or_default();
        let deadline = self.peers.get(&session).and_then(|peer| peer.mux.deadline(stream));
        let (end, deadline) =
            (End::Resolving(VecDeque::new()), deadline.unwrap_or(DATAGRAM_DEADLINE));
        let (ip, port) = (target.ip(), target.port().unwrap_or_default());
        let association = Association {
            session,
            stream,
            target: target.clone(),
            lane,
            deadline,
            end,
            active: now,
            idle: IDLE,
        };
        let token = self.keep_association(association);
        match (ip, target.host()) {
            (Some(ip), _) => self.resolved_datagrams(now, token, &[SocketAddr::new(ip, port)]),
            (None, Some(host)) if self.may_look_up(session, &target) => {
                if !self.look_up(token, host, port) {
                    self.refuse_datagrams(
                        token,
                        ConnectRefusal::Busy,
                        "too many name look-ups in progress",
                    );
                }
            }
            _ => self.refuse_datagrams(token, ConnectRefusal::NotAllowed, super::dial::NOT_ALLOWED),
        }
    }

    /// The target's addresses: the first that is allowed and can be sent to is used.
    pub(super) fn resolved_datagrams(
        &mut self,
        now: Instant,
        token: u64,
        addresses: &[SocketAddr],
    ) {
        let Some(association) = self.associations.get(&token) else { return };
        let (session, target) = (association.session, association.target.clone());
        let allowed =
            addresses.iter().filter(|address| self.permits(session, &target, Some(address.ip())));
        let allowed: Vec<SocketAddr> = allowed.copied().collect();
        if allowed.is_empty() {
            return self.refuse_datagrams(
                token,
                ConnectRefusal::NotAllowed,
                super::dial::NOT_ALLOWED,
            );
        }
        let mut last = Errno::ADDRNOTAVAIL;
        for address in allowed {
            let opened =
                socket::connect_udp(&address).and_then(|socket| self.watched(socket, token));
            match opened {
                Ok(socket) => return self.opened_datagrams(now, token, socket),
                Err(errno) => last = errno,
            }
        }
        self.refuse_datagrams(token, super::dial::reason_of(last), &super::dial::sentence_of(last));
    }

    fn opened_datagrams(&mut self, now: Instant, token: u64, socket: OwnedFd) {
        let Some(association) = self.associations.get_mut(&token) else { return };
        let before = core::mem::replace(&mut association.end, End::Target(socket));
        if let Some(peer) = self.peers.get_mut(&association.session) {
            peer.mux.accept(now, association.stream);
        }
        self.counters.connected += 1;
        if let End::Resolving(waiting) = before {
            waiting.into_iter().for_each(|bytes| self.datagram_came(now, token, bytes));
        }
    }

    /// Tells the far node that no datagrams go there.
    pub(super) fn refuse_datagrams(&mut self, token: u64, reason: ConnectRefusal, sentence: &str) {
        let Some(association) = self.forget(token) else { return };
        if let Some(peer) = self.peers.get_mut(&association.session) {
            peer.mux.refuse(association.stream, reason, sentence);
        }
        self.counters.refused += 1;
        let target = association.target;
        self.notice(&ForwardNotice::Refused { target, reason, sentence: sentence.to_owned() });
    }

    /// The far node takes no datagrams for that target.
    pub(super) fn datagrams_refused(
        &mut self,
        now: Instant,
        token: u64,
        reason: ConnectRefusal,
        sentence: String,
    ) {
        let Some(association) = self.associations.get_mut(&token) else { return };
        self.streams.remove(&(association.session, association.stream));
        if let End::Client(client) = &association.end {
            association.end = End::Refused(client.clone(), now);
        }
        self.counters.refused += 1;
        let target = association.target.clone();
        self.notice(&ForwardNotice::Refused { target, reason, sentence });
    }

    /// A datagram came over the line.
    pub(super) fn datagram_came(&mut self, now: Instant, token: u64, bytes: Bytes) {
        let Some(association) = self.associations.get_mut(&token) else { return };
        association.active = now;
        let len = bytes.len() as u64;
        let sent = match &mut association.end {
            End::Resolving(waiting) if waiting.len() < WAITING_MAX => {
                return waiting.push_back(bytes);
            }
            End::Target(socket) => socket::write(socket, &bytes),
            End::Client(client) => match self.listeners.get(&client.listener) {
                Some(listener) if client.named.is_some() => socket::send_to(
                    &listener.socket,
                    &socks::wrap(&association.target, &bytes),
                    &client.address,
                ),
                Some(listener) => socket::send_to(&listener.socket, &bytes, &client.address),
                None => Moved::Broken,
            },
            End::Resolving(_) | End::Refused(..) => Moved::Blocked,
        };
        match sent {
            Moved::Some(_) => {
                self.counters.datagrams.received += 1;
                self.counters.bytes_received += len;
            }
            // That nobody listens at a target now is no end: somebody may the next time.
            Moved::Blocked | Moved::End | Moved::Broken => self.counters.datagrams.dropped += 1,
        }
    }

    /// Takes an association out.
    pub(super) fn forget(&mut self, token: u64) -> Option<Association> {
        let association = self.associations.remove(&token)?;
        if let End::Client(client) | End::Refused(client, _) = &association.end {
            self.clients.remove(client);
        }
        self.streams.remove(&(association.session, association.stream));
        Some(association)
    }

    /// Ends an association at both ends.
    fn end_association(&mut self, token: u64) {
        let Some(association) = self.forget(token) else { return };
        if matches!(association.end, End::Refused(..)) {
            return;
        }
        self.counters.finished += 1;
        if let Some(peer) = self.peers.get_mut(&association.session) {
            peer.mux.reset(association.stream);
        }
    }

    /// The clients of a socket that is closed.
    pub(super) fn forget_clients(&mut self, listener: u64) {
        let of_it = self.clients.iter().filter(|(client, _)| client.listener == listener);
        let tokens: Vec<u64> = of_it.map(|(_, token)| *token).collect();
        tokens.into_iter().for_each(|token| self.end_association(token));
    }

    fn forget_stillest(&mut self) {
        let age = |token: &&u64| self.associations.get(token).map(|association| association.active);
        if let Some(token) = self.clients.values().min_by_key(age).copied() {
            self.end_association(token);
        }
    }

    /// Ends what was still for too long, at the end that opened it.
    pub(super) fn sweep_associations(&mut self, now: Instant) {
        let is_over = |association: &Association| match &association.end {
            End::Client(_) => now.since(association.active) >= association.idle,
            End::Refused(_, at) => now.since(*at) >= REFUSED,
            End::Resolving(_) | End::Target(_) => false,
        };
        let over = self.associations.iter().filter(|(_, held)| is_over(held));
        let over: Vec<u64> = over.map(|(token, _)| *token).collect();
        over.into_iter().for_each(|token| self.end_association(token));
    }
}
