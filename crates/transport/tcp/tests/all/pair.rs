//! Two ends of a path joined by two byte pipes, under one virtual clock.
//!
//! A pipe is what TCP over a line is to its user: it takes bytes until its buffer is full, carries
//! them at its rate, cuts them anywhere, and now and then stops for a while to repair a loss, after
//! which all comes at once.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use skyhaul_identity::Identity;
use skyhaul_tcp::{TcpPath, TlsEndpoint, TlsEndpointConfig, TlsPathConfig};
use skyhaul_transport::{DownReason, Path, PathEvent, ProtocolVersions, Token};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::VecDeque;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// Everything of a test world, with defaults.
#[derive(Debug, Clone)]
pub struct Options {
    pub rate: Rate,
    pub one_way: Duration,
    /// What a pipe takes before the line has carried it.
    pub buffer: usize,
    /// Longest piece that arrives at once.
    pub piece: usize,
    /// One piece in so many is repaired for one and a half round trips; 0: none is.
    pub stall_one_in: u64,
    pub seed: u64,
    pub versions: [ProtocolVersions; 2],
    /// The client expects this key's owner instead of the server.
    pub expected: Option<u8>,
    /// The server trusts this key's owner instead of the client.
    pub trusted: Option<u8>,
    pub path: TlsPathConfig,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(93),
            one_way: Duration::from_millis(80),
            buffer: 256 * 1024,
            piece: 9_000,
            stall_one_in: 0,
            seed: 1,
            versions: [ProtocolVersions::OURS; 2],
            expected: None,
            trusted: None,
            path: TlsPathConfig::default(),
        }
    }
}

/// One direction.
pub struct Pipe {
    pub rate: Rate,
    one_way: Duration,
    buffer: usize,
    piece: usize,
    stall_one_in: u64,
    rng: ChaCha8Rng,
    free_at: Instant,
    arrives: Instant,
    flying: VecDeque<(Instant, Bytes)>,
    ends: Option<Instant>,
    pub carried: u64,
    /// The byte with this number is damaged.
    pub damage: Option<u64>,
    /// Nothing enters any more.
    pub cut: bool,
}

impl Pipe {
    fn new(options: &Options, direction: u64) -> Self {
        Self {
            rate: options.rate,
            one_way: options.one_way,
            buffer: options.buffer,
            piece: options.piece,
            stall_one_in: options.stall_one_in,
            rng: ChaCha8Rng::seed_from_u64(options.seed * 2 + direction),
            free_at: Instant::ZERO,
            arrives: Instant::ZERO,
            flying: VecDeque::new(),
            ends: None,
            carried: 0,
            damage: None,
            cut: false,
        }
    }

    fn backlog(&self, now: Instant) -> usize {
        (self.rate * self.free_at.since(now)).as_usize()
    }

    /// Takes what the buffer has room for.
    fn write(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.buffer.saturating_sub(self.backlog(now)));
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let cut = 1 + (self.rng.next_u64() as usize % self.piece).min(rest.len() - 1);
            let (piece, behind) = rest.split_at(cut);
            rest = behind;
            self.free_at = self.free_at.max(now) + self.rate.time_for(ByteCount::of(cut));
            let stalls =
                self.stall_one_in > 0 && self.rng.next_u64().is_multiple_of(self.stall_one_in);
            let late = if stalls { self.one_way * 3 } else { Duration::ZERO };
            self.arrives = self.arrives.max(self.free_at + self.one_way + late);
            let mut piece = piece.to_vec();
            if let Some(at) = self.damage.and_then(|at| at.checked_sub(self.carried))
                && let Some(byte) = piece.get_mut(at as usize)
            {
                *byte ^= 0x10;
            }
            self.carried += cut as u64;
            if !self.cut {
                self.flying.push_back((self.arrives, piece.into()));
            }
        }
        taken
    }

    /// When a writer that was refused may try again: when an eighth of the buffer is free.
    fn writable_at(&self, now: Instant) -> Instant {
        let excess = self.backlog(now).saturating_sub(self.buffer - self.buffer / 8);
        now + self.rate.time_for(ByteCount::of(excess)) + Duration::from_nanos(1)
    }
}

/// What one end has seen.
#[derive(Default)]
pub struct Seen {
    pub events: Vec<(Instant, PathEvent)>,
    pub up: Option<Instant>,
    pub down: Option<(Instant, DownReason)>,
    pub acked: Vec<u64>,
    pub lost: Vec<u64>,
    /// Datagrams that came, in bytes and number, and how late the last one was that carried its
    /// time.
    pub datagrams: u64,
    pub datagram_bytes: u64,
    pub latencies: Vec<Duration>,
    pub control: Vec<u8>,
}

/// What an end does whenever its path has room.
pub enum App {
    Silent,
    /// Sends datagrams of `size` bytes that begin with their number and the time, at most so many;
    /// counts the handed over ones in `next`.
    Numbers {
        next: u64,
        count: u64,
        size: usize,
    },
}

/// Two ends and the pipes between them.
pub struct World {
    pub now: Instant,
    pub paths: [TcpPath; 2],
    pub pipes: [Pipe; 2],
    pub seen: [Seen; 2],
    pub apps: [App; 2],
    /// An end that does not poll its path.
    pub asleep: [bool; 2],
    fins: [bool; 2],
}

pub fn identity(node: u8) -> Identity {
    Identity::from_seed(&[node + 1; 32]).unwrap()
}

/// A node's endpoint, as the options say.
pub fn endpoint(options: &Options, node: usize) -> TlsEndpoint {
    let mut config = TlsEndpointConfig::new(identity(u8::try_from(node).unwrap()));
    config.path = options.path;
    config.versions = options.versions[node];
    config.trusted.insert(identity(options.trusted.unwrap_or(0)).fingerprint());
    TlsEndpoint::new(config)
}

impl World {
    pub fn new(options: &Options) -> Self {
        let now = Instant::ZERO;
        let expected = identity(options.expected.unwrap_or(1)).fingerprint();
        let client = endpoint(options, CLIENT).connect(now, expected).unwrap();
        let Ok(server) = endpoint(options, SERVER).accept(now) else { panic!("not busy") };
        Self {
            now,
            paths: [client, server],
            pipes: [Pipe::new(options, 0), Pipe::new(options, 1)],
            seen: Default::default(),
            apps: [App::Silent, App::Silent],
            asleep: [false; 2],
            fins: [false; 2],
        }
    }

    /// A world whose path is up at both ends.
    pub fn connected(options: &Options) -> Self {
        let mut world = Self::new(options);
        let deadline = Instant::ZERO + Duration::from_secs(15);
        assert!(world.run_until(deadline, |world| world.seen.iter().all(|seen| seen.up.is_some())));
        world
    }

    pub fn run(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| false);
    }

    /// Runs until `done`, or until `deadline`; says whether it was done.
    pub fn run_until(&mut self, deadline: Instant, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let next = self.next_event().max(self.now + Duration::from_nanos(1));
            if next > deadline {
                self.now = deadline;
                return false;
            }
            self.now = next;
        }
    }

    fn next_event(&self) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        for end in [CLIENT, SERVER] {
            if self.paths[end].wants_read() {
                let pipe = &self.pipes[1 - end];
                next = pipe.flying.front().map_or(next, |(at, _)| next.min(*at));
                next = pipe.ends.filter(|_| pipe.flying.is_empty()).map_or(next, |at| next.min(at));
            }
            next = self.paths[end].next_timeout().map_or(next, |at| next.min(at));
            if self.blocked(end) {
                next = next.min(self.pipes[end].writable_at(self.now));
            }
        }
        next
    }

    fn blocked(&self, end: usize) -> bool {
        self.pipes[end].backlog(self.now) + self.pipes[end].buffer / 8 >= self.pipes[end].buffer
    }

    fn settle(&mut self) {
        for end in [CLIENT, SERVER] {
            if self.paths[end].next_timeout().is_some_and(|at| at <= self.now) {
                self.paths[end].handle_timeout(self.now);
            }
            self.deliver(end);
            self.poll(end);
            self.send(end);
            self.write(end);
        }
    }

    fn deliver(&mut self, end: usize) {
        let (path, pipe) = (&mut self.paths[end], &mut self.pipes[1 - end]);
        while path.wants_read()
            && let Some((at, piece)) = pipe.flying.front_mut()
            && *at <= self.now
        {
            let taken = path.receive(self.now, piece);
            assert!(taken <= piece.len());
            let _ = piece.split_to(taken);
            if piece.is_empty() {
                pipe.flying.pop_front();
            }
        }
        if pipe.flying.is_empty() && pipe.ends.take_if(|at| *at <= self.now).is_some() {
            path.end_of_stream(self.now);
        }
    }

    fn poll(&mut self, end: usize) {
        if self.asleep[end] {
            return;
        }
        let (path, seen) = (&mut self.paths[end], &mut self.seen[end]);
        while let Some(event) = path.poll(self.now) {
            assert!(seen.down.is_none(), "{event:?} after the end");
            match &event {
                PathEvent::Up { .. } => seen.up = Some(self.now),
                PathEvent::Datagram(datagram) => {
                    seen.datagrams += 1;
                    seen.datagram_bytes += datagram.len() as u64;
                    if let Some(sent) = datagram.get(8..16) {
                        let sent = u64::from_be_bytes(sent.try_into().unwrap());
                        seen.latencies.push(self.now.since(Instant::from_nanos(sent)));
                    }
                }
                PathEvent::Control(bytes) => seen.control.extend_from_slice(bytes),
                PathEvent::Acked(token) => seen.acked.push(token.0),
                PathEvent::Lost(token) => seen.lost.push(token.0),
                PathEvent::Down(reason) => seen.down = Some((self.now, reason.clone())),
            }
            if seen.events.len() < 10_000 {
                seen.events.push((self.now, event));
            }
        }
    }

    fn send(&mut self, end: usize) {
        let App::Numbers { next, count, size } = &mut self.apps[end] else { return };
        while *next < *count && self.paths[end].room(self.now) > 0 {
            let mut datagram = vec![*next as u8; *size];
            let mut head = next.to_be_bytes().to_vec();
            head.extend_from_slice(&self.now.as_nanos().to_be_bytes());
            let length = head.len().min(*size);
            datagram[..length].copy_from_slice(&head[..length]);
            self.paths[end].send(self.now, Some(Token(*next)), datagram.into());
            *next += 1;
        }
    }

    fn write(&mut self, end: usize) {
        if !self.fins[end] {
            loop {
                let bytes = self.paths[end].poll_transmit(self.now);
                let taken = self.pipes[end].write(self.now, bytes);
                if taken == 0 {
                    break;
                }
                self.paths[end].written(taken);
                self.send(end);
            }
        }
        if self.paths[end].is_written_out() && !self.fins[end] && !self.pipes[end].cut {
            self.fins[end] = true;
            let pipe = &mut self.pipes[end];
            pipe.ends = Some(pipe.arrives.max(self.now + pipe.one_way));
        }
    }

    pub fn down(&self, end: usize) -> &DownReason {
        &self.seen[end].down.as_ref().unwrap_or_else(|| panic!("end {end} is not down")).1
    }
}
