//! A host of the model: a processor that takes time for each datagram, a socket that holds so much,
//! a backlog that drops.

use super::cross::Cross;
use super::draw::Draws;
use skyhaul_lab::{NetworkDatagram, NetworkNode};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a host is like. The default is as good as none.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Processor time for each datagram, sent or received.
    pub cost: Duration,
    /// What the receiving socket holds.
    pub socket: ByteCount,
    /// The process comes to its socket no more often than this.
    pub gather: Duration,
    /// The part of what arrives that is dropped before the socket.
    pub backlog_drops: f64,
    /// The process may run for no more than this part of each [`PERIOD`].
    pub quota: f64,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            cost: Duration::ZERO,
            socket: ByteCount::mib(4),
            gather: Duration::ZERO,
            backlog_drops: 0.0,
            quota: 1.0,
        }
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
    /// Time for which the process was stopped because it had used up its quota.
    pub throttled: Duration,
}

/// What stands between the network and a process.
#[derive(Debug)]
pub struct Socket {
    host: Host,
    queue: VecDeque<(Instant, Vec<u8>)>,
    queued: ByteCount,
    chance: Draws,
    /// When the process came last.
    served: Instant,
    busy_until: Instant,
    /// The period that the quota is counted in, and what it ran in that.
    period: u64,
    ran: Duration,
    pub counted: Counted,
}

impl Socket {
    pub fn new(host: Host, seed: u64) -> Self {
        Self {
            host,
            queue: VecDeque::new(),
            queued: ByteCount::ZERO,
            chance: Draws::new(seed),
            served: Instant::ZERO,
            busy_until: Instant::ZERO,
            period: 0,
            ran: Duration::ZERO,
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
        if self.queued + ByteCount::of(len) > self.host.socket {
            self.counted.socket += 1;
            return false;
        }
        true
    }

    pub fn push(&mut self, at: Instant, datagram: Vec<u8>) {
        self.queued += ByteCount::of(datagram.len());
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
        self.queued = self.queued.saturating_sub(ByteCount::of(datagram.len()));
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
        if self.host.quota < 1.0 {
            self.draw_on_quota();
        }
    }

    /// What is used up is there again in the next period, and the process stands until then.
    fn draw_on_quota(&mut self) {
        let period = self.busy_until.as_nanos() / PERIOD.as_nanos();
        if period != self.period {
            (self.period, self.ran) = (period, Duration::ZERO);
        }
        self.ran += self.host.cost;
        if self.ran.as_secs_f64() >= PERIOD.as_secs_f64() * self.host.quota {
            let again = Instant::ZERO + PERIOD * (period + 1);
            self.counted.throttled += again.since(self.busy_until);
            self.busy_until = again;
        }
    }

    pub const fn busy_until(&self) -> Instant {
        self.busy_until
    }
}

/// A session manager on such a host.
pub struct Machine<E> {
    pub manager: E,
    pub socket: Socket,
    /// Addresses of what lies in the socket, in its order.
    ends: VecDeque<NetworkDatagram>,
    /// The session manager has more to send than there was processor time for.
    has_more: bool,
    /// Longer UDP payloads vanish on the way from here.
    payload_max: usize,
}

impl<E: NetworkNode> Machine<E> {
    pub fn new(manager: E, host: Host, payload_max: usize, seed: u64) -> Self {
        Self {
            manager,
            socket: Socket::new(host, seed),
            ends: VecDeque::new(),
            has_more: false,
            payload_max,
        }
    }

    fn serve(&mut self, now: Instant) {
        while let Some((_, payload)) = self.socket.take(now) {
            let Some(datagram) = self.ends.pop_front() else { return };
            self.manager
                .handle_datagram(now, NetworkDatagram { payload: payload.into(), ..datagram });
        }
    }
}

impl<E: NetworkNode> NetworkNode for Machine<E> {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        if self.socket.admits(datagram.payload.len()) {
            self.socket.push(now, datagram.payload.to_vec());
            self.ends.push_back(NetworkDatagram { payload: bytes::Bytes::new(), ..datagram });
            self.serve(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram> {
        loop {
            if !self.socket.is_free(now) {
                self.has_more = true;
                return None;
            }
            self.has_more = false;
            let datagram = self.manager.poll_transmit(now)?;
            self.socket.spend(now);
            if datagram.payload.len() <= self.payload_max {
                return Some(datagram);
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let busy = self.socket.busy_until();
        let manager = self.manager.next_timeout().map(|at| at.max(busy));
        let more = self.has_more.then_some(busy);
        [manager, more, self.socket.due()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.serve(now);
        if self.manager.next_timeout().is_some_and(|at| at <= now) {
            self.manager.handle_timeout(now);
        }
    }
}

/// Of a quota, as the kernel has it.
pub const PERIOD: Duration = Duration::from_millis(100);

/// What stands at an address: a machine, or the others that use its line.
pub enum Node<E> {
    Machine(Box<Machine<E>>),
    Others(Box<Cross>, [SocketAddr; 2]),
}

impl<E> Node<E> {
    /// The machine.
    pub fn machine(&self) -> &Machine<E> {
        match self {
            Self::Machine(machine) => machine,
            Self::Others(..) => panic!("others are no machine of ours"),
        }
    }
}

impl<E: NetworkNode> NetworkNode for Node<E> {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        match self {
            Self::Machine(machine) => machine.handle_datagram(now, datagram),
            Self::Others(cross, _) => cross.arrived(now, numbers(&datagram.payload)),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram> {
        match self {
            Self::Machine(machine) => machine.poll_transmit(now),
            Self::Others(cross, [from, to]) => {
                let packet = cross.poll(now)?;
                let payload = encoded(packet, cross.packet());
                Some(NetworkDatagram::new(*from, *to, payload))
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Machine(machine) => machine.next_timeout(),
            Self::Others(cross, _) => Some(cross.due()),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Self::Machine(machine) = self {
            machine.handle_timeout(now);
        }
    }
}

/// A packet of others, in a datagram.
pub fn encoded((flow, number): (usize, u64), packet: ByteCount) -> Vec<u8> {
    let mut bytes =
        [MARK.to_be_bytes(), (flow as u64).to_be_bytes(), number.to_be_bytes()].concat();
    bytes.resize(packet.as_usize().saturating_sub(28).max(24), 0);
    bytes
}

/// Whether a datagram is one of others'.
pub fn is_others(payload: &[u8]) -> bool {
    payload.starts_with(&MARK.to_be_bytes())
}

/// Flow and number of a packet of others.
pub fn numbers(payload: &[u8]) -> (usize, u64) {
    let at = |place: usize| u64::from_be_bytes(payload[place..place + 8].try_into().unwrap());
    (at(8) as usize, at(16))
}

/// No datagram of ours begins so.
const MARK: u64 = 0xfeed_0f07_4e25_fe1d;

/// A process works on this long before it looks at its socket again.
const SLICE: Duration = Duration::from_micros(500);
