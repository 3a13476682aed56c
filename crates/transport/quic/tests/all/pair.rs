//! Two endpoints joined by two lossy lines, under one virtual clock.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::{Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::{ConnectionId, EndpointEvent, ReceivedDatagram};
use skyhaul_transport::{Path, PathEvent, ProtocolVersions, Token};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// One direction of the line.
#[derive(Debug, Clone, Copy)]
pub struct LinkOptions {
    pub rate: Rate,
    pub one_way: Duration,
    pub loss: Probability,
    pub queue: Duration,
}

/// Everything of a test world, with defaults.
#[derive(Debug, Clone)]
pub struct Options {
    pub link: LinkOptions,
    pub declared: Rate,
    /// What the server declares, where it is something else.
    pub answering: Option<Rate>,
    pub seed: u64,
    pub versions: [ProtocolVersions; 2],
    pub setup_copies: u8,
    /// The client expects this key's owner instead of the server.
    pub expected: Option<u8>,
    /// The server trusts this key's owner instead of the client.
    pub trusted: Option<u8>,
    pub outages: Vec<(Instant, Instant)>,
    pub max_segments: usize,
    pub receive_buffer: ByteCount,
}

impl Default for Options {
    fn default() -> Self {
        let rate = Rate::from_mbps(93);
        Self {
            link: LinkOptions {
                rate,
                one_way: Duration::from_millis(80),
                loss: Probability::ZERO,
                queue: Duration::from_millis(160),
            },
            declared: rate,
            answering: None,
            seed: 1,
            versions: [ProtocolVersions::OURS; 2],
            setup_copies: 3,
            expected: None,
            trusted: None,
            outages: Vec::new(),
            max_segments: 1,
            receive_buffer: ByteCount::mib(16),
        }
    }
}

impl Options {
    pub fn lossy(percent: u64, round_trip_ms: u64) -> Self {
        let mut options = Self::default();
        options.link.loss = Probability::of(percent, 100);
        options.link.one_way = Duration::from_millis(round_trip_ms / 2);
        options
    }
}

struct Link {
    options: LinkOptions,
    outages: Vec<(Instant, Instant)>,
    rng: ChaCha8Rng,
    free_at: Instant,
    flying: VecDeque<(Instant, Bytes)>,
    /// IP packets and their bytes that entered the line.
    carried: u64,
    delays: Vec<Duration>,
    /// So many of the next datagrams are lost.
    doomed: u32,
}

impl Link {
    fn send(&mut self, now: Instant, payload: &[u8]) {
        let start = now.max(self.free_at);
        let waits = start.since(now);
        if waits > self.options.queue {
            return;
        }
        let size = ByteCount::of(payload.len() + 28);
        self.delays.push(waits);
        self.carried += size.as_u64();
        self.free_at = start + self.options.rate.time_for(size);
        let lost = self.rng.next_u64() % 1_000_000_000 < u64::from(self.options.loss.as_ppb());
        if let Some(doomed) = self.doomed.checked_sub(1) {
            self.doomed = doomed;
            return;
        }
        let out = self.outages.iter().any(|(from, to)| (*from..*to).contains(&self.free_at));
        if !lost && !out {
            self.flying
                .push_back((self.free_at + self.options.one_way, Bytes::copy_from_slice(payload)));
        }
    }
}

/// What a node has seen.
#[derive(Default)]
pub struct Seen {
    pub events: Vec<(Instant, EndpointEvent)>,
    pub path_events: Vec<(Instant, PathEvent)>,
    pub ready: Option<ConnectionId>,
    pub payload: usize,
    /// Datagrams received, for long runs that keep no events.
    pub datagrams: u64,
    pub datagram_bytes: u64,
    pub acked: u64,
    pub lost: u64,
}

/// What a node's application does whenever its path has room.
pub enum App {
    Silent,
    /// Sends numbered full datagrams, at most so many, until a time; `keep` keeps each event.
    Numbers {
        next: u64,
        count: u64,
        until: Instant,
    },
}

/// Two nodes and the line between them.
pub struct World {
    pub now: Instant,
    /// The client's call.
    pub call: ConnectionId,
    pub nodes: [QuicEndpoint; 2],
    pub seen: [Seen; 2],
    pub apps: [App; 2],
    pub keep_events: bool,
    /// Where each node is seen by the other; a translator of addresses may change it.
    pub addresses: [SocketAddr; 2],
    links: [Link; 2],
}

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + u8::try_from(node).unwrap()], 4433))
}

pub fn identity(node: u8) -> Identity {
    Identity::from_seed(&[node + 1; 32]).unwrap()
}

/// One fixed reading for all worlds: only differences matter.
#[allow(
    clippy::disallowed_methods,
    reason = "the standard library has no other way to make a clock reading"
)]
fn epoch() -> std::time::Instant {
    static EPOCH: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}

/// An endpoint as the options say.
pub fn endpoint(options: &Options, node: usize) -> QuicEndpoint {
    let mut endpoint = QuicEndpoint::new(config(options, node)).unwrap();
    endpoint.batch(options.max_segments);
    endpoint
}

/// A node's configuration as the options say.
pub fn config(options: &Options, node: usize) -> EndpointConfig {
    let answering = options.answering.filter(|_| node == SERVER);
    let mut path = PathConfig::over(answering.unwrap_or(options.declared));
    path.setup_copies = options.setup_copies;
    path.receive_buffer = options.receive_buffer;
    let own = u8::try_from(node).unwrap();
    let mut config = EndpointConfig::new(identity(own), path, epoch());
    let trusted = options.trusted.unwrap_or(u8::try_from(CLIENT).unwrap());
    config.trusted = BTreeSet::from([identity(trusted).fingerprint()]);
    config.listen = node == SERVER;
    config.rng_seed = Some([own; 32]);
    config.versions = options.versions[node];
    config
}

impl World {
    /// Nodes with the client's call under way.
    pub fn new(options: &Options) -> Self {
        let link = |direction: u64| Link {
            options: options.link,
            outages: options.outages.clone(),
            rng: ChaCha8Rng::seed_from_u64(options.seed * 2 + direction),
            free_at: Instant::ZERO,
            flying: VecDeque::new(),
            carried: 0,
            delays: Vec::new(),
            doomed: 0,
        };
        let mut world = Self {
            now: Instant::ZERO,
            call: ConnectionId(0),
            nodes: [endpoint(options, CLIENT), endpoint(options, SERVER)],
            seen: [Seen::default(), Seen::default()],
            apps: [App::Silent, App::Silent],
            keep_events: true,
            addresses: [address(CLIENT), address(SERVER)],
            links: [link(0), link(1)],
        };
        let expected =
            identity(options.expected.unwrap_or(u8::try_from(SERVER).unwrap())).fingerprint();
        world.call = world.nodes[CLIENT].connect(Instant::ZERO, address(SERVER), expected).unwrap();
        world
    }

    /// The server dies and starts anew with the same key and no memory.
    pub fn restart_server(&mut self, options: &Options) {
        self.nodes[SERVER] = endpoint(options, SERVER);
        self.seen[SERVER] = Seen::default();
    }

    /// Hands a node any bytes as a datagram.
    pub fn inject(&mut self, node: usize, remote: SocketAddr, bytes: &[u8]) {
        let received =
            ReceivedDatagram { remote, local_ip: None, ecn: None, payload: BytesMut::from(bytes) };
        self.nodes[node].handle_datagram(self.now, received);
    }

    /// Runs until `done` or until `limit`; true where it was done.
    pub fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            for node in [CLIENT, SERVER] {
                self.serve(node);
            }
            if done(self) {
                return true;
            }
            let timeouts = self.nodes.iter().filter_map(QuicEndpoint::next_timeout);
            let arrivals =
                self.links.iter().filter_map(|link| link.flying.front().map(|(at, _)| *at));
            let next = timeouts.chain(arrivals).min().unwrap_or(Instant::FAR_FUTURE).max(self.now);
            if next > limit {
                self.now = limit;
                return false;
            }
            self.now = next;
            for (link, to) in [(0, SERVER), (1, CLIENT)] {
                self.deliver(link, to);
            }
            for node in &mut self.nodes {
                if node.next_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
        }
    }

    pub fn run(&mut self, span: Duration) {
        let limit = self.now + span;
        self.run_until(limit, |_| false);
    }

    /// Both paths up, or panics.
    pub fn connected(options: &Options) -> Self {
        let mut world = Self::new(options);
        let limit = Instant::ZERO + Duration::from_secs(60);
        assert!(world.run_until(limit, Self::both_ready), "not connected, seed {}", options.seed);
        world
    }

    pub fn both_ready(&self) -> bool {
        self.seen.iter().all(|seen| seen.ready.is_some())
    }

    pub fn path(&mut self, node: usize) -> &mut skyhaul_quic::QuicPath {
        let id = self.seen[node].ready.expect("connected");
        self.nodes[node].path(id).expect("open")
    }

    /// IP bytes that entered the line from `node`, and the queueing delays, since the last call.
    pub fn take_line(&mut self, node: usize) -> (ByteCount, Vec<Duration>) {
        let link = &mut self.links[node];
        (ByteCount::new(core::mem::take(&mut link.carried)), core::mem::take(&mut link.delays))
    }

    /// Loses the next `count` datagrams of `node`.
    pub fn lose_next(&mut self, node: usize, count: u32) {
        self.links[node].doomed = count;
    }

    fn deliver(&mut self, link: usize, to: usize) {
        while self.links[link].flying.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, payload) = self.links[link].flying.pop_front().expect("just seen");
            let payload = BytesMut::from(&payload[..]);
            let received = ReceivedDatagram {
                remote: self.addresses[1 - to],
                local_ip: None,
                ecn: None,
                payload,
            };
            self.nodes[to].handle_datagram(self.now, received);
        }
    }

    fn serve(&mut self, node: usize) {
        let endpoint = &mut self.nodes[node];
        let seen = &mut self.seen[node];
        while let Some(event) = endpoint.poll_event() {
            if let EndpointEvent::Ready { id, .. } = event {
                seen.ready = Some(id);
            }
            seen.events.push((self.now, event));
        }
        if let Some(path) = seen.ready.and_then(|id| endpoint.path(id)) {
            while let Some(event) = path.poll(self.now) {
                match &event {
                    PathEvent::Up { payload } => seen.payload = *payload,
                    PathEvent::Datagram(bytes) => {
                        seen.datagrams += 1;
                        seen.datagram_bytes += bytes.len() as u64;
                    }
                    PathEvent::Acked(_) => seen.acked += 1,
                    PathEvent::Lost(_) => seen.lost += 1,
                    PathEvent::Control(_) | PathEvent::Down(_) => {}
                }
                if self.keep_events {
                    seen.path_events.push((self.now, event));
                }
            }
            if let App::Numbers { next, count, until } = &mut self.apps[node] {
                while *next < *count && self.now < *until && path.room(self.now) > 0 {
                    path.send(self.now, Some(Token(*next)), numbered(*next, seen.payload));
                    *next += 1;
                }
            }
        }
        let mut out = Vec::new();
        while let Some(transmit) = endpoint.poll_transmit(self.now, &mut out) {
            if transmit.to != self.addresses[1 - node] {
                continue;
            }
            for datagram in out.chunks(transmit.segment_size.unwrap_or(out.len())) {
                self.links[node].send(self.now, datagram);
            }
        }
    }

    /// The numbers of the datagrams a node received.
    pub fn numbers(&self, node: usize) -> Vec<u64> {
        let events = self.seen[node].path_events.iter();
        let datagrams = events.filter_map(|(_, event)| match event {
            PathEvent::Datagram(bytes) => Some(bytes),
            _ => None,
        });
        datagrams.map(|bytes| u64::from_be_bytes(bytes[..8].try_into().unwrap())).collect()
    }

    /// How often each token was acknowledged and lost, as a node's path says.
    pub fn fates(&self, node: usize) -> BTreeMap<u64, (u32, u32)> {
        let mut fates = BTreeMap::new();
        for (_, event) in &self.seen[node].path_events {
            match event {
                PathEvent::Acked(Token(token)) => fates.entry(*token).or_insert((0, 0)).0 += 1,
                PathEvent::Lost(Token(token)) => fates.entry(*token).or_insert((0, 0)).1 += 1,
                _ => {}
            }
        }
        fates
    }
}

pub fn numbered(number: u64, length: usize) -> Bytes {
    let mut bytes = vec![0x55; length.max(8)];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}
