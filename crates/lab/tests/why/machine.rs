//! A host of the model: a processor that takes time for each datagram, a socket that holds so much, a backlog that drops.

use crate::draw::Draws;
use skyhaul_lab::{Datagram, Endpoint};
use skyhaul_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// What a host is like. The default is as good as none.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Processor time for each datagram, sent or received.
    pub cost: Duration,
    /// What the receiving socket holds.
    pub socket: Bytes,
    /// The process comes to its socket no more often than this.
    pub gather: Duration,
    /// The part of what arrives that is dropped before the socket.
    pub backlog_drops: f64,
}

impl Default for Host {
    fn default() -> Self {
        Self { cost: Duration::ZERO, socket: Bytes::mib(4), gather: Duration::ZERO, backlog_drops: 0.0 }
    }
}

/// What a host counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// Dropped before the socket.
    pub backlog: u64,
    /// Dropped by the socket.
    pub socket: u64,
    /// Datagrams that came to the host.
    pub arrived: u64,
    /// Processor time.
    pub busy: Duration,
}

/// What stands between the network and a process.
#[derive(Debug)]
pub struct Socket {
    host: Host,
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued: Bytes,
    chance: Draws,
    /// When the process came last.
    served: Instant,
    busy_until: Instant,
    pub counted: Counted,
}

impl Socket {
    pub fn new(host: Host, seed: u64) -> Self {
        Self {
            host,
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            chance: Draws::new(seed),
            served: Instant::ZERO,
            busy_until: Instant::ZERO,
            counted: Counted::default(),
        }
    }

    /// A datagram arrives at the host; whether it is now in the socket.
    pub fn admits(&mut self, len: usize) -> bool {
        self.counted.arrived += 1;
        if self.chance.part() < self.host.backlog_drops {
            self.counted.backlog += 1;
            return false;
        }
        if self.queued + Bytes::of(len) > self.host.socket {
            self.counted.socket += 1;
            return false;
        }
        true
    }

    pub fn push(&mut self, at: Instant, datagram: Vec<u8>) {
        self.queued += Bytes::of(datagram.len());
        self.queue.push_back((at, datagram));
    }

    /// The next datagram that the process takes, where it comes to it at `now`.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, Vec<u8>)> {
        let is_here = now >= self.served + self.host.gather || self.served == now;
        if self.queue.is_empty() || !self.is_free(now) || !is_here {
            return None;
        }
        self.served = now;
        let (at, datagram) = self.queue.pop_front()?;
        self.queued = self.queued.saturating_sub(Bytes::of(datagram.len()));
        self.spend(now);
        Some((at, datagram))
    }

    /// When the process takes something; `None` while there is nothing.
    pub fn due(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then(|| self.busy_until.max(self.served + self.host.gather))
    }

    /// Work is done in slices: the processor is free while less than one is owed.
    pub fn is_free(&self, now: Instant) -> bool {
        self.busy_until < now + SLICE
    }

    pub fn spend(&mut self, now: Instant) {
        self.busy_until = self.busy_until.max(now) + self.host.cost;
        self.counted.busy += self.host.cost;
    }

    pub const fn busy_until(&self) -> Instant {
        self.busy_until
    }
}

/// An engine on such a host.
pub struct Machine<E> {
    pub engine: E,
    pub socket: Socket,
    /// Addresses of what lies in the socket, in its order.
    ends: VecDeque<Datagram>,
    /// The engine has more to send than there was processor time for.
    has_more: bool,
    /// Longer UDP payloads vanish on the way from here.
    payload_max: usize,
}

impl<E: Endpoint> Machine<E> {
    pub fn new(engine: E, host: Host, payload_max: usize, seed: u64) -> Self {
        Self { engine, socket: Socket::new(host, seed), ends: VecDeque::new(), has_more: false, payload_max }
    }

    fn serve(&mut self, now: Instant) {
        while let Some((_, payload)) = self.socket.take(now) {
            let Some(datagram) = self.ends.pop_front() else { return };
            self.engine.handle_datagram(now, Datagram { payload: payload.into(), ..datagram });
        }
    }
}

impl<E: Endpoint> Endpoint for Machine<E> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        if self.socket.admits(datagram.payload.len()) {
            self.socket.push(now, datagram.payload.to_vec());
            self.ends.push_back(Datagram { payload: bytes::Bytes::new(), ..datagram });
            self.serve(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        loop {
            if !self.socket.is_free(now) {
                self.has_more = true;
                return None;
            }
            self.has_more = false;
            let datagram = self.engine.poll_transmit(now)?;
            self.socket.spend(now);
            if datagram.payload.len() <= self.payload_max {
                return Some(datagram);
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let busy = self.socket.busy_until();
        let engine = self.engine.next_timeout().map(|at| at.max(busy));
        let more = self.has_more.then_some(busy);
        [engine, more, self.socket.due()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.serve(now);
        if self.engine.next_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
        }
    }
}

/// A process works on this long before it looks at its socket again.
const SLICE: Duration = Duration::from_micros(500);
