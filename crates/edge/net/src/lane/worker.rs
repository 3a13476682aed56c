//! A lane's thread: it serves the endpoint, and exchanges messages with the session's thread.

use super::member::Member;
use super::message::{FromLane, ToLane};
use super::queue::{Gone, Inlet, Outlet};
use crate::endpoint::UdpEndpoint;
use crate::rest::{self, Gathering};
use crate::turn::{Arrived, FAREWELL_MAX, Left};
use crate::{Clock, Waker};
use skyhaul_identity::Refusal;
use skyhaul_sessions::{ConnectionId, Endpoint as _, EndpointEvent};
use skyhaul_transport::Path as _;
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A lane's thread.
pub(super) struct Worker {
    pub endpoint: UdpEndpoint,
    pub clock: Clock,
    /// Wakes this thread.
    pub waker: Waker,
    pub gathering: Gathering,
    /// Wakes the session's.
    pub session: Waker,
    pub inlet: Inlet<ToLane>,
    pub outlet: Outlet<FromLane>,
    pub connections: LaneConnections,
    /// Shared with the session's side.
    pub send_errors: Arc<AtomicU64>,
}

/// The endpoint's connections, by its own ids and by those of the session's side.
#[derive(Default)]
pub(super) struct LaneConnections {
    members: BTreeMap<ConnectionId, Member>,
    by_name: BTreeMap<ConnectionId, ConnectionId>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Stop,
    /// There is more to do at once.
    More,
    /// Nothing is left to do; so much arrived.
    Done(Arrived),
}

/// Rounds of feeding and sending before receiving has its turn.
const ROUNDS: usize = 4;

impl Worker {
    /// Runs until the session's side stops it, or is gone.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            match self.turn()? {
                Turn::Stop => break,
                Turn::More => {}
                Turn::Done(arrived) => self.rest(arrived)?,
            }
        }
        self.farewell();
        Ok(())
    }

    fn turn(&mut self) -> io::Result<Turn> {
        if self.outlet.retry() == Err(Gone) || self.take_messages()? == Turn::Stop {
            return Ok(Turn::Stop);
        }
        // While the session's thread is behind, datagrams wait in the socket.
        let is_open = !self.outlet.is_blocked();
        let arrived = if is_open { self.endpoint.receive(&self.clock)? } else { Arrived::Nothing };
        self.gathering.took(arrived);
        let now = self.clock.now();
        if self.endpoint.quic().next_timeout().is_some_and(|due| due <= now) {
            self.endpoint.quic_mut().handle_timeout(now);
        }
        let more_to_send = self.send(now);
        if self.report(now) == Err(Gone) {
            return Ok(Turn::Stop);
        }
        Ok(if arrived == Arrived::More || more_to_send { Turn::More } else { Turn::Done(arrived) })
    }

    fn take_messages(&mut self) -> io::Result<Turn> {
        loop {
            match self.inlet.take() {
                Ok(Some(ToLane::Stop)) | Err(Gone) => return Ok(Turn::Stop),
                #[cfg(test)]
                Ok(Some(ToLane::Do(action))) => action()?,
                Ok(Some(message)) => self.take(message),
                Ok(None) => return Ok(Turn::More),
            }
        }
    }

    fn take(&mut self, message: ToLane) {
        let Self { connections, endpoint, .. } = self;
        match message {
            ToLane::Call { id, remote, expected, purpose, gauge } => {
                let now = self.clock.now();
                match endpoint.quic_mut().call(now, remote, expected, purpose) {
                    Ok(inner) => connections.add(inner, Member::new(id, gauge)),
                    Err(error) => {
                        let reason = Refusal::Failed(error.to_string());
                        let refused = EndpointEvent::Refused {
                            id: Some(id),
                            remote,
                            fingerprint: None,
                            reason,
                        };
                        // If the session's side is gone, the next turn ends the thread.
                        let _ = self.outlet.give(FromLane::Event(refused));
                    }
                }
            }
            ToLane::Symbols(id, symbols) => {
                if let Some((_, member)) = connections.named(id) {
                    member.symbols(symbols);
                }
            }
            ToLane::Control(id, bytes) => {
                if let Some((_, member)) = connections.named(id) {
                    member.control(bytes);
                }
            }
            ToLane::Close(id, reason) => {
                let now = self.clock.now();
                let inner = connections.named(id).map(|(inner, _)| inner);
                if let Some(path) = inner.and_then(|inner| endpoint.quic_mut().path(inner)) {
                    path.close(now, &reason);
                }
            }
            ToLane::Trust(keys) => endpoint.quic_mut().set_trusted(keys),
            ToLane::Stop => {}
            #[cfg(test)]
            ToLane::Do(_) => {}
        }
    }

    /// Fills the connections' room and sends. Returns whether there may be more.
    fn send(&mut self, now: Instant) -> bool {
        for _ in 0..ROUNDS {
            let mut fed = false;
            for (inner, member) in &mut self.connections.members {
                if let Some(path) = self.endpoint.quic_mut().path(*inner) {
                    fed |= member.feed(now, path);
                }
            }
            let left = self.endpoint.transmit(now);
            self.send_errors.store(self.endpoint.send_errors(), Ordering::Relaxed);
            match left {
                Left::Part => return true,
                Left::All if fed => {}
                Left::Nothing | Left::All => return false,
            }
        }
        true
    }

    /// Hands events and news to the session's side, and wakes it if it waits for credit.
    fn report(&mut self, now: Instant) -> Result<(), Gone> {
        while !self.outlet.is_blocked()
            && let Some(event) = self.endpoint.quic_mut().poll_event()
        {
            self.pass_on(now, event)?;
        }
        let mut is_awaited = false;
        for (inner, member) in &mut self.connections.members {
            let Some(path) = self.endpoint.quic_mut().path(*inner) else { continue };
            while !self.outlet.is_blocked() {
                let news = member.news(now, path);
                if news.is_empty() {
                    break;
                }
                self.outlet.give(FromLane::News(member.id, news))?;
            }
            is_awaited |= member.tell(now, path);
        }
        if is_awaited {
            self.session.wake();
        }
        Ok(())
    }

    fn pass_on(&mut self, now: Instant, event: EndpointEvent) -> Result<(), Gone> {
        let event = match event {
            EndpointEvent::Ready { id: inner, peer, keying, incoming, purpose, version } => {
                let id = match self.connections.members.get(&inner) {
                    Some(member) => member.id,
                    None => {
                        let (id, gauge) = (called(inner), Default::default());
                        self.connections.add(inner, Member::new(id, Arc::clone(&gauge)));
                        self.outlet.give(FromLane::Called(id, gauge))?;
                        id
                    }
                };
                EndpointEvent::Ready { id, peer, keying, incoming, purpose, version }
            }
            EndpointEvent::Refused { id, remote, fingerprint, reason } => {
                let member = id.and_then(|inner| self.connections.remove(inner));
                let id = member.map(|member| member.id);
                EndpointEvent::Refused { id, remote, fingerprint, reason }
            }
            EndpointEvent::Closed { id: inner, reason } => {
                let Some(mut member) = self.connections.remove(inner) else { return Ok(()) };
                if let Some(path) = self.endpoint.quic_mut().path(inner) {
                    // The last of it: no more than the connection held is kept until the queue
                    // takes it.
                    loop {
                        let news = member.news(now, path);
                        if news.is_empty() {
                            break;
                        }
                        self.outlet.give(FromLane::News(member.id, news))?;
                    }
                }
                EndpointEvent::Closed { id: member.id, reason }
            }
        };
        self.outlet.give(FromLane::Event(event))
    }

    fn rest(&mut self, arrived: Arrived) -> io::Result<()> {
        let due = self.endpoint.quic().next_timeout();
        let now = self.clock.now();
        if arrived == Arrived::Little && self.gathering.rest(&self.waker, &self.clock, now, due)? {
            return Ok(());
        }
        let fd = (!self.outlet.is_blocked()).then(|| self.endpoint.poll_fd());
        rest::wait(&self.waker, &self.clock, due, fd)
    }

    /// Closes the connections, and sends the closing datagrams and their copies.
    fn farewell(&mut self) {
        let now = self.clock.now();
        for inner in self.connections.members.keys() {
            if let Some(path) = self.endpoint.quic_mut().path(*inner) {
                path.close(now, "the node is stopping");
            }
        }
        let ends = now + FAREWELL_MAX;
        loop {
            let now = self.clock.now();
            self.endpoint.quic_mut().handle_timeout(now);
            let left = self.endpoint.transmit(now);
            if now >= ends || (left != Left::Part && !self.endpoint.is_closing()) {
                return;
            }
            if left != Left::Part {
                let due = self.endpoint.quic().next_timeout().map_or(ends, |due| due.min(ends));
                if rest::wait(&self.waker, &self.clock, Some(due), None).is_err() {
                    return;
                }
            }
        }
    }
}

impl LaneConnections {
    fn add(&mut self, inner: ConnectionId, member: Member) {
        self.by_name.insert(member.id, inner);
        self.members.insert(inner, member);
    }

    fn named(&mut self, id: ConnectionId) -> Option<(ConnectionId, &mut Member)> {
        let inner = *self.by_name.get(&id)?;
        self.members.get_mut(&inner).map(|member| (inner, member))
    }

    fn remove(&mut self, inner: ConnectionId) -> Option<Member> {
        let member = self.members.remove(&inner)?;
        self.by_name.remove(&member.id);
        Some(member)
    }
}

/// The session's id of a connection that a far node made: odd. Those of connections made here are
/// even.
const fn called(inner: ConnectionId) -> ConnectionId {
    ConnectionId(inner.0 * 2 + 1)
}

/// The session's id of the `count`th connection made here.
pub(super) const fn calling(count: u64) -> ConnectionId {
    ConnectionId(count * 2)
}
