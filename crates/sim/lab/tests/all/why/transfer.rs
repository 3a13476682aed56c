//! A transfer of the production session manager over the links and hosts of a case, and what its
//! ends tell of it.

use super::case::Case;
use super::cross::Cross;
use super::machine::{Machine, Node};
use skyhaul_lab::{Application, Network, NodeId, Peer, PeerConfig};
use skyhaul_probe::why::{
    BusyThreads, DiskBacklog, Lack, LoadedLine, Owes, ReceiverLoad, SilenceDetector, Transfer,
    Waited,
};
use skyhaul_quic::{Identity, PathConfig, SessionManager};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{Block, Event, Opening, Session, SessionConfig, Waits, cost};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// One end's program.
struct Program {
    id: Option<SessionId>,
    role: Role,
}

enum Role {
    Source(Source),
    Sink(Sink),
}

/// Hands over blocks, as fast as they go or at a rate.
struct Source {
    to: SocketAddr,
    key: skyhaul_quic::Fingerprint,
    has_called: bool,
    rate: Option<Rate>,
    began: Option<Instant>,
    handed: u64,
    block: bytes::Bytes,
}

/// Takes blocks, and gives their memory back once they are on its disk.
struct Sink {
    disk: Option<Rate>,
    /// What is being written, and when it will be written.
    writing: VecDeque<(Instant, usize)>,
    disk_busy: Duration,
    disk_free: Instant,
    received: u64,
}

/// Runs a transfer of a case.
pub fn ran(case: &Case, seed: u64) -> Transfer {
    let mut world = World::new(case, seed);
    let settle = Instant::ZERO + SETTLE;
    world.run_until(settle);
    let before = world.reading();
    let (mut round_trips, mut shortest) = (Vec::new(), f64::INFINITY);
    let mut listener = SilenceDetector::new(settle, world.trace());
    let mut course = vec![before.received];
    while world.network.now() < settle + SPAN {
        world.run_until(world.network.now() + SAMPLE);
        let owes = if world.is_idle() { Owes::Nothing } else { Owes::Answer };
        listener.look(world.network.now(), world.trace(), owes);
        course.push(world.reading().received);
        if let Some((rtt, least)) = world.round_trip() {
            round_trips.push(rtt);
            shortest = shortest.min(least);
        }
    }
    let after = world.reading();
    let span = SPAN.as_secs_f64();
    let share = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / span;
    let waits = after.waits.since(&before.waits);
    let part = |wait: Duration| wait.as_secs_f64() / waits.total().as_secs_f64().max(1e-9);
    let (sent, lost) = (after.sent - before.sent, after.lost - before.lost);
    let mean = round_trips.iter().sum::<f64>() / round_trips.len().max(1) as f64;
    let lack = |side: usize| Lack {
        // A thread that is stopped is ready to run all the while.
        ready: share(after.throttled[side], before.throttled[side]),
        throttled: share(after.throttled[side], before.throttled[side]),
        stolen: 0.0,
    };
    let half = course.len() / 2;
    let late = (course[course.len() - 1] - course[half]) * 8 * 1_000
        / (SAMPLE.as_millis() * (course.len() - 1 - half) as u64);
    let backlog =
        case.disk.map(|rate| DiskBacklog { bytes: after.unwritten, disk_bps: rate.as_bps() });
    Transfer {
        steady_bps: Some(late),
        silence: Some(listener.silence()),
        goodput_bps: (after.received - before.received) * 8 * 1_000 / SPAN.as_millis(),
        waited: Waited {
            application: part(waits.application),
            window: part(waits.window),
            buffer: part(waits.buffer),
            classes: part(waits.classes),
            path: part(waits.path),
        },
        controller: case.controller.name().to_owned(),
        declared_bps: case.controller.declared_rate().map(Rate::as_bps),
        line: LoadedLine {
            round_trip_ms: Some(mean).filter(|mean| *mean > 0.0),
            shortest_round_trip_ms: Some(shortest).filter(|shortest| shortest.is_finite()),
            loss: lost as f64 / sent.max(1) as f64,
            payload: Some(u64::from(PathConfig::default().udp_payload)),
            ..LoadedLine::default()
        },
        threads: BusyThreads {
            sender_share: Some(share(after.busy[0], before.busy[0])),
            receiver_share: Some(share(after.busy[1], before.busy[1])),
            sender_lack: Some(lack(0)),
            receiver_lack: Some(lack(1)),
        },
        receiver: ReceiverLoad {
            disk_share: Some(share(after.disk, before.disk)),
            backlog,
            socket_drops: Some(after.drops - before.drops),
            datagrams: after.arrived - before.arrived,
            ..ReceiverLoad::default()
        },
        ..Transfer::default()
    }
}

/// All counters at one instant.
#[derive(Debug, Default)]
struct Reading {
    waits: Waits,
    sent: u64,
    lost: u64,
    received: u64,
    busy: [Duration; 2],
    throttled: [Duration; 2],
    unwritten: u64,
    disk: Duration,
    drops: u64,
    arrived: u64,
}

struct World {
    network: Network<Node<Peer<Program>>>,
    nodes: [NodeId; 2],
}

impl World {
    fn new(case: &Case, seed: u64) -> Self {
        let keys = [1, 2].map(|key| Identity::from_seed(&[key; 32]).unwrap());
        let at = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 4433)));
        let source = Source {
            to: at[1],
            key: keys[1].fingerprint(),
            has_called: false,
            rate: case.application,
            began: None,
            handed: 0,
            block: vec![0x5a; BLOCK].into(),
        };
        let sink = Sink {
            disk: case.disk,
            writing: VecDeque::new(),
            disk_busy: Duration::ZERO,
            disk_free: Instant::ZERO,
            received: 0,
        };
        let mut network = Network::new();
        let ends = [
            (Role::Source(source), case.sender, case.payload_max),
            (Role::Sink(sink), case.receiver, usize::MAX),
        ];
        let nodes: Vec<NodeId> = ends
            .into_iter()
            .enumerate()
            .map(|(side, (role, host, payload_max))| {
                let session = SessionConfig {
                    receive_window: case.window,
                    send_buffer: case.send_buffer,
                    ..SessionConfig::default()
                };
                let callers = if side == 1 { [keys[0].fingerprint()].into() } else { [].into() };
                let config = PeerConfig {
                    addresses: vec![at[side]],
                    identity: keys[side].clone(),
                    callers,
                    paths: vec![PathConfig {
                        controller: case.controller,
                        ..PathConfig::default()
                    }],
                    session,
                    seed: seed.wrapping_add(side as u64),
                };
                let peer = Peer::new(config, Program { id: None, role }).unwrap();
                let machine =
                    Machine::new(peer, host, payload_max, seed.wrapping_add(side as u64 + 7));
                network.add_node(Node::Machine(Box::new(machine)), &[at[side]])
            })
            .collect();
        let there = network.add_link(case.up.clone(), seed.wrapping_mul(5));
        let back = network.add_link(case.down.clone(), seed.wrapping_mul(5) + 1);
        network.route(at[0], at[1], there);
        network.route(at[1], at[0], back);
        if let Some(others) = case.others {
            let theirs = [3, 4].map(|host| SocketAddr::from(([192, 0, 2, host], 9)));
            let cross = Cross::new(others, case.up.one_way_delay, seed + 2);
            network.add_node(Node::Others(Box::new(cross), theirs), &theirs);
            network.route(theirs[0], theirs[1], there);
        }
        Self { network, nodes: [nodes[0], nodes[1]] }
    }

    fn run_until(&mut self, limit: Instant) {
        self.network.run_until(limit).unwrap();
    }

    /// What changes whenever the far end is heard.
    fn trace(&self) -> u64 {
        let session = self.session();
        let paths = session.iter().flat_map(|session| session.paths().iter());
        paths
            .map(|(_, path)| {
                path.estimate.rtt.as_nanos()
                    ^ path.estimate.rtt_variation.as_nanos().rotate_left(32)
            })
            .sum()
    }

    /// Nothing is to be sent, and nothing under way.
    fn is_idle(&self) -> bool {
        self.session().is_none_or(|session| session.stats().sent.buffer == 0)
    }

    fn session(&self) -> Option<&Session> {
        self.network
            .node(self.nodes[0])
            .machine()
            .manager
            .manager()
            .sessions()
            .next()
            .map(|(_, session)| session)
    }

    fn round_trip(&self) -> Option<(f64, f64)> {
        let (_, path) = self.session()?.paths().iter().next()?;
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        Some((millis(path.estimate.rtt), millis(path.estimate.min_rtt)))
    }

    fn reading(&self) -> Reading {
        let [near, far] = self.nodes.map(|node| self.network.node(node).machine());
        let mut reading = Reading {
            busy: [near.socket.counted.busy, far.socket.counted.busy],
            drops: far.socket.counted.socket,
            arrived: far.socket.counted.arrived,
            throttled: [near.socket.counted.throttled, far.socket.counted.throttled],
            ..Reading::default()
        };
        if let Some(session) = self.session() {
            let stats = session.stats();
            reading.waits = session.waits().so_far();
            reading.sent = stats.sent.symbols_sent + stats.sent.symbols_repeated;
            reading.lost = stats.sent.symbols_lost;
        }
        if let Role::Sink(sink) = &far.manager.application().role {
            let now = self.network.now();
            let (over, waiting) = sink.so_far(now);
            (reading.received, reading.disk, reading.unwritten) = (sink.received, over, waiting);
        }
        reading
    }
}

impl Sink {
    /// How long the disk has been busy by now, and the bytes that it has not written.
    fn so_far(&self, now: Instant) -> (Duration, u64) {
        let waiting = self.writing.iter().map(|(_, len)| *len as u64).sum();
        (self.disk_busy.saturating_sub(self.disk_free.since(now)), waiting)
    }
}

impl Application for Program {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                self.id = Some(id);
                if let Some(session) = manager.session(id) {
                    session.open(Opening::default());
                }
            }
            SessionManagerEvent::Session { id, event: Event::Block(received) } => {
                let Some(session) = manager.session(id) else { return };
                let Role::Sink(sink) = &mut self.role else { return };
                let len = received.bytes.len();
                sink.received += len as u64;
                match sink.disk {
                    None => session.release(len),
                    Some(rate) => {
                        let time = rate.time_for(ByteCount::of(len));
                        sink.disk_free = sink.disk_free.max(now) + time;
                        sink.writing.push_back((sink.disk_free, len));
                        sink.disk_busy += time;
                    }
                }
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if let Role::Source(source) = &mut self.role
            && !core::mem::replace(&mut source.has_called, true)
        {
            manager.connect(now, source.to, source.key).unwrap();
        }
        let session =
            self.id.and_then(|id| manager.session(id)).filter(|session| session.is_open())?;
        match &mut self.role {
            Role::Source(source) => source.feed(now, session),
            Role::Sink(sink) => {
                while sink.writing.front().is_some_and(|(at, _)| *at <= now) {
                    let Some((_, len)) = sink.writing.pop_front() else { break };
                    session.release(len);
                }
                sink.writing.front().map(|(at, _)| *at)
            }
        }
    }
}

impl Source {
    fn feed(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        let began = *self.began.get_or_insert(now);
        while session.room().as_u64() >= cost(self.block.len()) {
            let due = self.rate.map(|rate| began + rate.time_for(ByteCount::new(self.handed)));
            if let Some(due) = due.filter(|due| *due > now) {
                return Some(due);
            }
            session.send(now, Block::reliable(FlowId(1), self.block.clone())).unwrap();
            self.handed += self.block.len() as u64;
        }
        None
    }
}

/// Set-up and the controller's start are over.
const SETTLE: Duration = Duration::from_millis(2_500);
/// What is judged.
const SPAN: Duration = Duration::from_millis(5_000);
const SAMPLE: Duration = Duration::from_millis(100);
/// So small that a window of some hundred kilobytes holds several.
const BLOCK: usize = 8 << 10;
