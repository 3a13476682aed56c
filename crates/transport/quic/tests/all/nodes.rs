//! Two engines with several addresses each, joined by a line from each address to its counterpart,
//! under one virtual clock; and a bare endpoint beside the caller, for what no session manager
//! does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::{Bytes, BytesMut};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint, SessionManager};
use skyhaul_sessions::{
    PathTarget, ReceivedDatagram, SessionId, SessionManagerEvent, SocketId, Transmit,
};
use skyhaul_transport::{
    Block, DownReason, Event, FlowId, Opening, PathId, PathOptions, ProtocolVersions, SessionConfig,
};
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The end that calls.
pub const CALLER: usize = 0;
/// The end that is called.
pub const CALLED: usize = 1;
/// Addresses of each end.
pub const SOCKETS: usize = 3;
/// Rounds at one instant: some follow from each other.
const STILL_MAX: u32 = 100;

/// Where an end is reached over a line.
pub fn address(node: usize, socket: usize) -> SocketAddr {
    SocketAddr::from((
        [192, 0, u8::try_from(socket).unwrap(), 1 + u8::try_from(node).unwrap()],
        4433,
    ))
}

/// Where the bare endpoint is reached.
pub fn bare_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 9, 9], 4433))
}

pub fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

/// An end and what it saw.
pub struct Node {
    pub manager: SessionManager,
    pub session: Option<SessionId>,
    /// Sessions that began here.
    pub connected: usize,
    pub disconnected: Vec<DownReason>,
    pub refused: Vec<String>,
    pub up: BTreeSet<PathId>,
    pub stalled: BTreeSet<PathId>,
    pub back: BTreeSet<PathId>,
    pub resized: BTreeSet<PathId>,
    pub down: BTreeSet<PathId>,
    pub received: Vec<Bytes>,
    pub custody: u64,
}

pub struct World {
    pub now: Instant,
    pub nodes: [Node; 2],
    pub bare: QuicEndpoint,
    /// Lines that let nothing through.
    pub cut: BTreeSet<usize>,
    /// Lines on which larger UDP payloads vanish.
    pub largest: BTreeMap<usize, usize>,
    /// UDP payload that each end sent.
    pub sent: [u64; 2],
    flying: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Bytes)>,
    order: u64,
    one_way: Duration,
    /// Datagrams lost, in thousandths.
    loss: u64,
    /// Xorshift64 (Marsaglia 2003).
    random: u64,
    /// Rounds in which time did not go on.
    still: u32,
}

#[allow(
    clippy::disallowed_methods,
    reason = "the standard library has no other way to make a clock reading"
)]
fn epoch() -> std::time::Instant {
    static EPOCH: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}

fn endpoint(key: u8, seed: u8, listen: bool, versions: ProtocolVersions) -> QuicEndpoint {
    let mut config =
        EndpointConfig::new(identity(key), PathConfig::over(Rate::from_mbps(50)), epoch());
    config.listen = listen;
    config.trusted = BTreeSet::from([identity(1).fingerprint(), identity(3).fingerprint()]);
    config.rng_seed = Some([seed; 32]);
    config.versions = versions;
    QuicEndpoint::new(config).unwrap()
}

/// The end with a key. Its random numbers begin with `seed`.
fn node(key: u8, seed: u8, versions: ProtocolVersions) -> Node {
    let first = endpoint(key, seed, key == 2, versions);
    let mut manager = SessionManager::new(first, SessionConfig::default());
    for socket in 1..SOCKETS {
        let seed = seed + u8::try_from(socket).unwrap();
        manager.add_endpoint(endpoint(key, seed, key == 2, versions));
    }
    Node {
        manager,
        session: None,
        connected: 0,
        disconnected: Vec::new(),
        refused: Vec::new(),
        up: BTreeSet::new(),
        stalled: BTreeSet::new(),
        back: BTreeSet::new(),
        resized: BTreeSet::new(),
        down: BTreeSet::new(),
        received: Vec::new(),
        custody: 0,
    }
}

impl World {
    /// A session over the first addresses. `bare` is the key of the bare endpoint: 1 is the
    /// caller's, 3 another that the called end trusts.
    pub fn connected(bare: u8) -> Self {
        Self::over(bare, Duration::from_millis(20), 0)
    }

    /// The same over lines of this delay that lose so many thousandths.
    pub fn over(bare: u8, one_way: Duration, loss: u64) -> Self {
        let ours = ProtocolVersions::OURS;
        let mut world =
            Self { bare: endpoint(bare, 77, false, ours), one_way, loss, ..Self::apart([ours; 2]) };
        world.call();
        world
    }

    /// A session of ends that speak these versions.
    pub fn speaking(versions: [ProtocolVersions; 2]) -> Self {
        let mut world = Self::apart(versions);
        world.call();
        world
    }

    /// Two ends that have not met.
    fn apart(versions: [ProtocolVersions; 2]) -> Self {
        Self {
            now: Instant::ZERO,
            nodes: [node(1, 10, versions[CALLER]), node(2, 20, versions[CALLED])],
            bare: endpoint(1, 77, false, ProtocolVersions::OURS),
            cut: BTreeSet::new(),
            largest: BTreeMap::new(),
            sent: [0; 2],
            flying: BTreeMap::new(),
            order: 0,
            one_way: Duration::from_millis(20),
            loss: 0,
            random: 0x5379_6861_756c,
            still: 0,
        }
    }

    /// An end is stopped, and another program with its key takes its place; the caller calls.
    pub fn replace(&mut self, index: usize, versions: ProtocolVersions) {
        let key = u8::try_from(index).unwrap() + 1;
        let new = node(key, key * 10 + 100, versions);
        let old = std::mem::replace(&mut self.nodes[index], new);
        self.nodes[index].received = old.received;
        self.nodes.iter_mut().for_each(|node| node.session = None);
        self.nodes.iter_mut().for_each(|node| node.up.clear());
        self.call();
    }

    fn call(&mut self) {
        let called = identity(2).fingerprint();
        self.nodes[CALLER].manager.connect(self.now, address(CALLED, 0), called).unwrap();
        let up = self.run(120, |world| world.nodes.iter().all(|node| node.up.contains(&PathId(0))));
        assert!(up, "no session");
    }

    /// The caller joins over one more line.
    pub fn join(&mut self, socket: usize) -> PathId {
        let id = self.nodes[CALLER].session.unwrap();
        let remote = address(CALLED, socket);
        let to = PathTarget { socket: SocketId(socket), remote };
        self.nodes[CALLER].manager.join(self.now, id, to, PathOptions::default()).unwrap()
    }

    pub fn send(&mut self, count: usize) {
        let id = self.nodes[CALLER].session.unwrap();
        let session = self.nodes[CALLER].manager.session(id).unwrap();
        for _ in 0..count {
            let place = session.sender().next_seq(FlowId(0)).0;
            let block = Block::reliable(FlowId(0), Bytes::from(vec![place as u8; 20_000]));
            session.send(self.now, block).unwrap();
        }
    }

    /// Runs until `done`, at most so many seconds; whether it was `done`.
    pub fn run(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let limit = self.now + Duration::from_secs(seconds);
        loop {
            self.serve();
            if done(self) {
                return true;
            }
            let timeouts = self.nodes.iter_mut().filter_map(|node| node.manager.next_timeout());
            let bare = self.bare.next_timeout();
            let arrivals = self.flying.keys().next().map(|(at, _)| *at);
            let next = timeouts.chain(bare).chain(arrivals).min().unwrap_or(limit);
            if next >= limit {
                self.now = limit;
                return done(self);
            }
            assert!(next > self.now || self.still < STILL_MAX, "time stands still at {}", self.now);
            self.still = if next > self.now { 0 } else { self.still + 1 };
            self.now = next.max(self.now);
            self.deliver();
            for node in &mut self.nodes {
                node.manager.handle_timeout(self.now);
            }
            if self.bare.next_timeout().is_some_and(|due| due <= self.now) {
                self.bare.handle_timeout(self.now);
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let (from, to, payload) = entry.remove();
            let payload = BytesMut::from(&payload[..]);
            let received = ReceivedDatagram { remote: from, local_ip: None, ecn: None, payload };
            if to == bare_address() {
                self.bare.handle_datagram(self.now, received);
                continue;
            }
            for (index, node) in self.nodes.iter_mut().enumerate() {
                if let Some(socket) = (0..SOCKETS).find(|socket| address(index, *socket) == to) {
                    node.manager.handle_datagram(self.now, SocketId(socket), received.clone());
                }
            }
        }
    }

    fn serve(&mut self) {
        let mut out = Vec::new();
        for index in 0..2 {
            let node = &mut self.nodes[index];
            node.manager.flush(self.now);
            while let Some(event) = node.manager.poll_event() {
                node.event(event);
            }
            node.manager.flush(self.now);
            while let Some((socket, transmit)) =
                self.nodes[index].manager.poll_transmit(self.now, &mut out)
            {
                self.sent[index] += transmit.size as u64;
                self.fly(address(index, socket.0), &transmit, &out, Some(socket.0));
            }
        }
        while let Some(transmit) = self.bare.poll_transmit(self.now, &mut out) {
            self.fly(bare_address(), &transmit, &out, None);
        }
    }

    fn fly(&mut self, from: SocketAddr, transmit: &Transmit, bytes: &[u8], line: Option<usize>) {
        if line.is_some_and(|line| self.cut.contains(&line)) {
            return;
        }
        for datagram in bytes.chunks(transmit.segment_size.unwrap_or(bytes.len())) {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let most = line.and_then(|line| self.largest.get(&line)).copied().unwrap_or(usize::MAX);
            if self.random % 1000 < self.loss || datagram.len() > most {
                continue;
            }
            self.order += 1;
            let at = (self.now + self.one_way, self.order);
            self.flying.insert(at, (from, transmit.to, Bytes::copy_from_slice(datagram)));
        }
    }
}

impl Node {
    fn event(&mut self, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                self.connected += 1;
                self.session.get_or_insert(id);
                let opening = Opening { name: "a node".to_owned(), ..Opening::default() };
                self.manager.session(id).unwrap().open(opening);
            }
            SessionManagerEvent::Disconnected { id, reason } if Some(id) == self.session => {
                self.disconnected.push(reason);
            }
            SessionManagerEvent::PathRefused { reason, .. } => self.refused.push(reason),
            SessionManagerEvent::Session { id, event } if Some(id) == self.session => {
                self.session_event(id, event);
            }
            SessionManagerEvent::Session { .. }
            | SessionManagerEvent::Disconnected { .. }
            | SessionManagerEvent::Refused { .. } => {}
        }
    }

    fn session_event(&mut self, id: SessionId, event: Event) {
        match event {
            Event::Block(received) => {
                let session = self.manager.session(id).unwrap();
                session.release(received.bytes.len());
                session.control_mut().receipt(received.id.flow, received.id.seq.next());
                self.received.push(received.bytes);
            }
            Event::Custody { next, .. } => self.custody = self.custody.max(next.0),
            Event::PathUp(path) => drop(self.up.insert(path)),
            Event::PathStalled(path) => drop(self.stalled.insert(path)),
            Event::PathDown(path, _) => drop(self.down.insert(path)),
            Event::PathResized(path) => drop(self.resized.insert(path)),
            Event::PathBack(path) => drop(self.back.insert(path)),
            Event::Application { .. } => {}
            Event::Greeted { .. } | Event::Settled { .. } | Event::Closed(_) => {}
        }
    }
}
