//! Two nodes in one process, their lanes on threads and both sessions on the test's.

use super::message::ToLane;
use super::*;
use crate::{Socket, UdpEndpoint, rest};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::{PathTarget, SessionId, SessionManager, SessionManagerEvent, SocketId};
use skyhaul_transport::{
    Block, CloseReason, Event, FlowId, Opening, Outcome, PathOptions, SessionConfig,
};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeMap;

/// One end, and what it has seen.
struct Node {
    manager: SessionManager<ThreadedEndpoint>,
    addresses: Vec<SocketAddr>,
    key: Fingerprint,
    sessions: Vec<SessionId>,
    /// By session, in order.
    received: BTreeMap<SessionId, Vec<bytes::Bytes>>,
    settled: u64,
    up: usize,
    /// What ended, and why.
    ends: Vec<String>,
}

/// Both ends. The second is called.
struct World {
    clock: Clock,
    waker: Waker,
    ends: [Node; 2],
}

/// Longer than any step takes on a busy machine: only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

impl Node {
    fn new(seed: u8, lanes: usize, (clock, waker): (Clock, &Waker), window: ByteCount) -> Self {
        let session = SessionConfig {
            receive_window: window,
            send_buffer: window,
            ..SessionConfig::default()
        };
        let endpoints = (0..lanes).map(|_| {
            let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let path = PathConfig::over(Rate::from_mbps(2_000));
            let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
            config.listen = true;
            config.trusted = [identity(1).fingerprint()].into();
            let endpoint = UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket);
            ThreadedEndpoint::start(endpoint, clock, waker, "lane").unwrap()
        });
        let mut endpoints: Vec<_> = endpoints.collect();
        let addresses = endpoints.iter().map(|endpoint| endpoint.local_addr().unwrap()).collect();
        let mut manager = SessionManager::new(endpoints.remove(0), session);
        for endpoint in endpoints {
            manager.add_endpoint(endpoint);
        }
        let key = identity(seed).fingerprint();
        let (sessions, received, settled, up, ends) = Default::default();
        Self { manager, addresses, key, sessions, received, settled, up, ends }
    }

    fn turn(&mut self, now: Instant) {
        self.manager.flush(now);
        while let Some(event) = self.manager.poll_event() {
            self.event(event);
        }
        self.manager.flush(now);
        self.manager.refill(now);
        self.manager.endpoints_mut().for_each(ThreadedEndpoint::hand_over);
    }

    fn event(&mut self, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                self.sessions.push(id);
                self.manager.session(id).unwrap().open(Opening::default());
            }
            SessionManagerEvent::Session { id, event: Event::Block(block) } => {
                // It may have ended after this block came.
                if let Some(session) = self.manager.session(id) {
                    session.release(block.bytes.len());
                }
                self.received.entry(id).or_default().push(block.bytes);
            }
            SessionManagerEvent::Session { event: Event::Settled { outcome, .. }, .. } => {
                self.settled += u64::from(outcome == Outcome::Delivered);
            }
            SessionManagerEvent::Session { event: Event::PathUp(_), .. } => self.up += 1,
            SessionManagerEvent::Session { event: Event::PathDown(_, reason), .. } => {
                self.ends.push(reason.to_string());
            }
            SessionManagerEvent::Session {
                event: Event::Closed(CloseReason::Path(reason)),
                ..
            } => {
                self.ends.push(reason.to_string());
            }
            SessionManagerEvent::Session { .. } => {}
            SessionManagerEvent::Refused { reason, .. } => self.ends.push(reason.to_string()),
            SessionManagerEvent::PathRefused { reason, .. } => self.ends.push(reason),
            SessionManagerEvent::Disconnected { id, .. } => {
                self.sessions.retain(|other| *other != id);
            }
        }
    }

    fn stats(&mut self, id: SessionId) -> skyhaul_transport::Stats {
        self.manager.session(id).unwrap().stats()
    }
}

impl World {
    fn new(lanes: [usize; 2], window: ByteCount) -> Self {
        let (clock, waker) = (Clock::start(), Waker::new().unwrap());
        let node = |seed, lanes| Node::new(seed, lanes, (clock, &waker), window);
        let ends = [node(1, lanes[0]), node(2, lanes[1])];
        Self { clock, waker, ends }
    }

    /// Both have their turn, then the thread waits for news.
    fn turn(&mut self) {
        let now = self.clock.now();
        self.ends.iter_mut().for_each(|node| node.turn(now));
        self.rest(now);
    }

    fn rest(&mut self, now: Instant) {
        let due = self.ends.iter_mut().filter_map(|node| node.manager.next_timeout()).min();
        let due = due.map_or(now + WAIT, |due| due.min(now + WAIT));
        rest::wait(&self.waker, &self.clock, Some(due), None).unwrap();
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut [Node; 2]) -> bool) {
        let until = self.clock.now() + PATIENCE;
        while !done(&mut self.ends) {
            assert!(
                self.clock.now() < until,
                "never: {what}; {:?} {:?}",
                self.ends[0].ends,
                self.ends[1].ends
            );
            self.turn();
        }
    }

    /// A session over as many lanes as the first end has.
    fn connect(&mut self) -> SessionId {
        let now = self.clock.now();
        let remotes = self.ends[1].addresses.clone();
        let (key, lanes) = (self.ends[1].key, self.ends[0].addresses.len());
        let id = self.ends[0].manager.connect(now, remotes[0], key).unwrap();
        self.until("a session", |ends| {
            ends[0].manager.session(id).is_some_and(|session| session.is_open())
        });
        for lane in 1..lanes {
            let (socket, remote) = (SocketId(lane), remotes[lane % remotes.len()]);
            let way = PathTarget { socket, remote };
            self.ends[0].manager.join(now, id, way, PathOptions::default()).unwrap();
        }
        self.until("all lanes", |ends| ends.iter().all(|node| node.up >= lanes));
        id
    }

    /// Hands over `count` blocks of `size` bytes while there is room, and runs both ends until
    /// `count` have arrived in their order; `meanwhile` sees how many are handed over.
    fn transfer(
        &mut self,
        id: SessionId,
        (count, size): (u64, usize),
        mut meanwhile: impl FnMut(u64, &mut [Node; 2]),
    ) {
        let mut handed = 0;
        let clock = self.clock;
        self.until("all blocks", |ends| {
            let now = clock.now();
            while handed < count
                && ends[0].manager.session(id).unwrap().room() > ByteCount::of(2 * size)
            {
                let block = Block::reliable(FlowId(0), contents(handed, size));
                ends[0].manager.session(id).unwrap().send(now, block).unwrap();
                handed += 1;
                meanwhile(handed, ends);
            }
            ends[0].settled == count
        });
        let received = self.ends[1].received.values().next().unwrap();
        assert_eq!(received.len() as u64, count);
        for (number, bytes) in (0..).zip(received) {
            assert!(*bytes == contents(number, size), "block {number} is another");
        }
    }
}

/// Between two looks where nobody wakes the thread.
const WAIT: Duration = Duration::from_millis(20);

/// What block `number` holds: a generator's stream (xorshift), another for each.
fn contents(number: u64, size: usize) -> bytes::Bytes {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = (0..size.div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(size).collect()
}

#[test]
fn one_session_over_several_lanes_gives_every_byte_and_uses_them_all() {
    for lanes in 2..=4 {
        let mut world = World::new([lanes, lanes], ByteCount::mib(16));
        let id = world.connect();
        world.transfer(id, (120, 200_000), |_, _| {});
        let session = world.ends[0].manager.session(id).unwrap();
        let sent: Vec<u64> =
            session.paths().iter().map(|(_, path)| path.stats.symbols_sent).collect();
        assert!(sent.len() == lanes && sent.iter().all(|sent| *sent > 100), "{sent:?}");
        let rtt = session.paths().iter().map(|(_, path)| path.estimate.rtt).max().unwrap();
        assert!(rtt > Duration::ZERO, "estimates pass over");
    }
}

#[test]
fn lanes_of_the_far_end_may_be_fewer() {
    let mut world = World::new([3, 1], ByteCount::mib(4));
    let id = world.connect();
    world.transfer(id, (50, 100_000), |_, _| {});
}

/// What the lane does when so many blocks were handed over; then the rest arrives over the others.
fn survives(action: fn() -> io::Result<()>, reason: &str) {
    let mut world = World::new([3, 3], ByteCount::mib(4));
    let id = world.connect();
    world.transfer(id, (200, 100_000), |handed, ends| {
        if handed == 60 {
            ends[0]
                .manager
                .endpoints_mut()
                .next()
                .unwrap()
                .outlet
                .give(ToLane::Do(Box::new(action)))
                .unwrap();
        }
    });
    world.until("the lane's end", |ends| !ends[0].ends.is_empty());
    assert_eq!(world.ends[0].ends, [reason]);
    let left = world.ends[0].manager.session(id).unwrap().paths().iter().count();
    assert_eq!(left, 2, "the other lanes stay");
    let now = world.clock.now();
    let (remote, key) = (world.ends[1].addresses[1], world.ends[1].key);
    world.ends[0].manager.connect_from(now, SocketId(0), remote, key).unwrap();
    world.until("a refusal", |ends| ends[0].ends.len() > 1);
    assert!(world.ends[0].ends[1].contains(reason), "{:?}", world.ends[0].ends);
}

#[test]
fn a_lane_whose_thread_panics_takes_its_connections_with_it_and_no_bytes() {
    survives(|| panic!("as the test wants it"), "the lane's thread failed: as the test wants it");
}

#[test]
fn a_lane_whose_socket_fails_takes_its_connections_with_it_and_no_bytes() {
    let cut = || Err(io::Error::other("the cable is cut"));
    survives(cut, "the lane's socket failed: the cable is cut");
}

#[test]
fn the_last_lane_ends_the_session_with_its_reason() {
    let mut world = World::new([1, 1], ByteCount::mib(4));
    world.connect();
    let fail = || Err(io::Error::other("the cable is cut"));
    world.ends[0]
        .manager
        .endpoints_mut()
        .next()
        .unwrap()
        .outlet
        .give(ToLane::Do(Box::new(fail)))
        .unwrap();
    world.until("the end", |ends| ends[0].sessions.is_empty());
    assert_eq!(world.ends[0].ends, ["the lane's socket failed: the cable is cut"]);
}

#[test]
fn a_busy_node_that_stops_closes_its_connections_over_every_lane() {
    let mut world = World::new([2, 2], ByteCount::mib(4));
    let id = world.connect();
    let now = world.clock.now();
    for number in 0..30 {
        let block = Block::reliable(FlowId(0), contents(number, 100_000));
        world.ends[0].manager.session(id).unwrap().send(now, block).unwrap();
    }
    world.ends[0].turn(now);
    world.ends[0].manager.endpoints_mut().for_each(ThreadedEndpoint::stop);
    world.until("both farewells", |ends| ends[1].ends.len() == 2);
    assert_eq!(world.ends[1].ends, ["closed by the far end: the node is stopping"; 2]);
    assert!(world.ends[1].sessions.is_empty());
}

#[test]
fn a_session_that_closes_tells_the_far_end_its_reason() {
    let mut world = World::new([2, 2], ByteCount::mib(4));
    let id = world.connect();
    let now = world.clock.now();
    world.ends[0].manager.close(now, id, "the contact is over");
    world.until("the ends", |ends| ends[1].ends.len() == 2 && ends[0].sessions.is_empty());
    assert_eq!(world.ends[1].ends, ["closed by the far end: the contact is over"; 2]);
    assert_eq!(world.ends[0].ends, ["closed by this end"; 2]);
}

#[test]
fn a_session_that_is_not_served_holds_its_lanes_back_and_loses_nothing() {
    let mut world = World::new([2, 2], ByteCount::mib(48));
    let id = world.connect();
    let now = world.clock.now();
    let (count, size) = (200, 200_000);
    for number in 0..count {
        let block = Block::reliable(FlowId(0), contents(number, size));
        world.ends[0].manager.session(id).unwrap().send(now, block).unwrap();
    }
    // The far end's session has no turn: 40 MB are offered, four times what queues and sockets
    // hold.
    for _ in 0..400 {
        let now = world.clock.now();
        world.ends[0].turn(now);
        world.rest(now);
    }
    assert_eq!(world.ends[0].settled, 0);
    world.until("all blocks", |ends| ends[0].settled == count);
    let received = world.ends[1].received.values().next().unwrap();
    assert!((0..).zip(received).all(|(number, bytes)| *bytes == contents(number, size)));
    assert_eq!(received.len() as u64, count);
    assert!(world.ends[0].stats(id).sent.buffer == 0);
}

#[test]
fn many_short_sessions_come_and_go() {
    let mut world = World::new([2, 2], ByteCount::mib(1));
    for round in 0..60u64 {
        let now = world.clock.now();
        let (remotes, key) = (world.ends[1].addresses.clone(), world.ends[1].key);
        let from = |lane: u64| SocketId(usize::try_from(lane % 2).unwrap());
        let manager = &mut world.ends[0].manager;
        let ids = [0, 1].map(|lane| {
            let remote = remotes[from(lane + round / 2).0];
            manager.connect_from(now, from(lane), remote, key).unwrap()
        });
        world.until("two sessions", |ends| {
            ids.iter()
                .all(|id| ends[0].manager.session(*id).is_some_and(|session| session.is_open()))
        });
        for id in ids {
            let block = Block::reliable(FlowId(0), contents(round, 5_000));
            world.ends[0].manager.session(id).unwrap().send(now, block).unwrap();
        }
        world.until("both blocks", |ends| ends[0].settled == 2 * (round + 1));
        let now = world.clock.now();
        for id in ids {
            world.ends[0].manager.close(now, id, "done");
        }
        world.until("both ends", |ends| ends.iter().all(|node| node.sessions.is_empty()));
    }
    let received: Vec<usize> = world.ends[1].received.values().map(Vec::len).collect();
    assert_eq!(received, [1; 120]);
    // Nothing is kept of connections that are over.
    world.turn();
    let mut kept = world.ends[0].manager.endpoints().map(|endpoint| endpoint.connections.len());
    assert!(kept.all(|kept| kept == 0));
}

#[test]
fn a_call_that_cannot_be_made_and_a_stranger_are_refused() {
    let mut world = World::new([1, 1], ByteCount::mib(1));
    let now = world.clock.now();
    let key = world.ends[1].key;
    world.ends[0].manager.connect(now, "127.0.0.1:0".parse().unwrap(), key).unwrap();
    world.until("a refusal", |ends| !ends[0].ends.is_empty());
    assert!(world.ends[0].ends[0].contains("cannot connect to"), "{:?}", world.ends[0].ends);
    world.ends[1]
        .manager
        .endpoints_mut()
        .next()
        .unwrap()
        .set_trusted([identity(9).fingerprint()].into());
    let remote = world.ends[1].addresses[0];
    world.ends[0].manager.connect(now, remote, key).unwrap();
    world.until("both refusals", |ends| ends[0].ends.len() == 2 && !ends[1].ends.is_empty());
    assert!(world.ends[0].ends[1].contains("does not trust our key"), "{:?}", world.ends[0].ends);
    assert!(world.ends[1].ends[0].contains("not trusted"), "{:?}", world.ends[1].ends);
}
