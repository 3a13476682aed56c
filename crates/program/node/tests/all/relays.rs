//! A station, relays and a centre in a chain, with the production code of all, a line between each
//! two neighbours, and what goes wrong.

mod node;
mod truth;

use super::custody::{Moment, millis};
use node::{Node, Process, Role};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use skyhaul_lab::{PlainLine, PlainPath};
use skyhaul_store::sim::SimDisk;
use skyhaul_transport::{CloseReason, DownReason, Event, Opening, Session, SessionConfig, drive};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};
use std::collections::BTreeMap;
use truth::Truth;

/// The name of a node, by its place in the chain.
pub fn name(place: usize) -> String {
    format!("node-{place}")
}

/// What goes wrong, at which node or on the line behind it.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Power(usize, u64),
    Kill(usize),
    Full(usize, ByteCount),
    Room(usize),
    Fault(usize, u64),
    Cut(usize, Duration),
}

const PASS: Duration = Duration::from_secs(10);
/// By when all must have arrived after that.
const SETTLED: Duration = Duration::from_secs(150);
const IDLE: Duration = Duration::from_secs(3);
const ROOMY: ByteCount = ByteCount::mib(4);
/// The sides of a line.
const NEAR: usize = 0;
const FAR: usize = 1;

pub struct Chain {
    now: Instant,
    rng: ChaCha8Rng,
    nodes: Vec<Node>,
    /// Line number n is between the nodes n and n + 1.
    lines: Vec<Line>,
    session: SessionConfig,
    truth: Truth,
    troubles: BTreeMap<Instant, Trouble>,
}

struct Line {
    line: PlainLine,
    connection: Option<(PlainPath, [Option<Session>; 2])>,
    connections: u64,
    cut_until: Instant,
    call_at: Instant,
}

/// What a run was like.
#[derive(Debug, Default)]
pub struct Passage {
    pub blocks: u64,
    pub connections: u64,
    pub settled_after: Duration,
    /// What each hop added to each block.
    pub added: Vec<Duration>,
}

impl Chain {
    /// With so many relays; lines and troubles are drawn.
    pub fn new(relays: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let lines = (0..=relays).map(|_| drawn(&mut rng)).collect();
        let window = ByteCount::kib(*[16, 64].get(rng.random_range(0..2)).unwrap());
        let troubles = troubles(&mut rng, relays + 2);
        Self::with(relays, lines, window, (rng, troubles))
    }

    /// With so many relays, good lines and no trouble; a sync takes 3 to 7 ms.
    pub fn calm(relays: usize, seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let line = PlainLine { one_way_delay: millis(80), ..PlainLine::default() };
        let parts = (rng, BTreeMap::new());
        let mut chain = Self::with(relays, vec![line; relays + 1], ByteCount::mib(1), parts);
        chain.nodes.iter_mut().for_each(|node| node.sync = 3..8);
        chain
    }

    fn with(
        relays: usize,
        lines: Vec<PlainLine>,
        window: ByteCount,
        (rng, troubles): (ChaCha8Rng, BTreeMap<Instant, Trouble>),
    ) -> Self {
        let role = |place| match place {
            0 => Role::Station,
            _ if place == relays + 1 => Role::Centre,
            _ => Role::Relay,
        };
        let nodes = (0..relays + 2).map(|place| Node::new(place, role(place), SimDisk::new(ROOMY)));
        let line = |line| Line {
            line,
            connection: None,
            connections: 0,
            cut_until: Instant::ZERO,
            call_at: Instant::ZERO,
        };
        Self {
            now: Instant::ZERO,
            rng,
            nodes: nodes.collect(),
            lines: lines.into_iter().map(line).collect(),
            session: SessionConfig {
                receive_window: window,
                send_buffer: window,
                utc_at_zero: Moment::zero(),
                ..SessionConfig::default()
            },
            truth: Truth::default(),
            troubles,
        }
    }

    /// A pass with its troubles, then calm until everything is at the centre once.
    pub fn run(mut self) -> Passage {
        let end = Instant::ZERO + PASS;
        while self.now < end {
            self.step();
        }
        self.truth.is_ending = true;
        (0..self.nodes.len()).for_each(|place| self.strike(Trouble::Room(place)));
        while let Some(why) = self.unsettled() {
            assert!(self.now < end + SETTLED, "locked up: {why}{}", self.told());
            self.step();
        }
        Passage {
            blocks: self.truth.flows.values().map(|flow| flow.blocks.len() as u64).sum(),
            connections: self.lines.iter().map(|line| line.connections).sum(),
            settled_after: self.now.since(end),
            added: self.truth.added,
        }
    }

    /// What each node has to do, and how the lines are, for whoever reads a failure.
    fn told(&self) -> String {
        let node = |node: &Node| {
            let process = node.process.as_ref().map_or_else(|| "down".to_owned(), Process::told);
            format!("\nnode {}: {process}", node.place)
        };
        let line = |line: &Line| {
            let ends = line.connection.as_ref().map(|(_, ends)| {
                ends.each_ref().map(|end| {
                    end.as_ref().map(|session| (session.is_open(), session.stats().sent))
                })
            });
            format!("\nline, {} connections: {ends:?}", line.connections)
        };
        let nodes = self.nodes.iter().map(node);
        nodes.chain(self.lines.iter().map(line)).collect()
    }

    fn unsettled(&self) -> Option<String> {
        let at = Moment { now: self.now };
        for node in &self.nodes {
            let is_idle = node.process.as_ref().is_some_and(|process| process.is_idle(at));
            if !is_idle {
                return Some(format!("node {} is at work", node.place));
            }
        }
        (1..self.nodes.len())
            .find_map(|place| Some(format!("node {place}: {}", self.truth.differs(place)?)))
    }

    fn step(&mut self) {
        while let Some(entry) = self.troubles.first_entry().filter(|entry| *entry.key() <= self.now)
        {
            let trouble = entry.remove();
            self.strike(trouble);
        }
        let at = Moment { now: self.now };
        for place in 0..self.nodes.len() {
            let before = place.checked_sub(1).and_then(|line| self.lines.get_mut(line));
            let line = before.and_then(|line| {
                let (_, sessions) = line.connection.as_mut()?;
                Some((line.connections, sessions[FAR].as_mut()?))
            });
            let node = &mut self.nodes[place];
            if !node.work(at, &mut self.truth, &mut self.rng, line) {
                self.gone(place);
            }
            let refused = self.nodes[place].process.as_mut().and_then(Process::refused);
            if refused.is_some_and(|number| self.lines[place - 1].connections == number) {
                self.hung_up(place - 1, FAR);
            }
        }
        for line in 0..self.lines.len() {
            self.connect(line);
            self.serve_near(line, at);
            self.serve_far(line, at);
        }
        self.now = self.next_wake().max(self.now + Duration::from_micros(1));
    }

    fn next_wake(&self) -> Instant {
        let mut next = self.nodes.iter().map(Node::next_wake).min().unwrap();
        next = self.troubles.keys().next().map_or(next, |at| next.min(*at));
        for (place, line) in self.lines.iter().enumerate() {
            let is_up = line.connection.as_ref().is_some_and(|(_, ends)| ends[NEAR].is_some());
            if !is_up && self.nodes[place].process.is_some() {
                next = next.min(line.call_at);
            }
            let Some((path, sessions)) = &line.connection else { continue };
            for (session, end) in sessions.iter().zip(&path.ends) {
                let Some(session) = session else { continue };
                let timeout = session.next_timeout().map(|at| at.max(end.free_at()));
                let send = session.has_symbol().then_some(end.free_at());
                next = [timeout, send, end.next_event()]
                    .into_iter()
                    .flatten()
                    .fold(next, Instant::min);
            }
        }
        next
    }

    fn connect(&mut self, place: usize) {
        let line = &mut self.lines[place];
        let is_up = line.connection.as_ref().is_some_and(|(_, ends)| ends[NEAR].is_some());
        if is_up || self.now < line.call_at {
            return;
        }
        line.call_at = self.now + millis(300);
        let (near, far) = self.nodes.split_at_mut(place + 1);
        let outbound = near[place].process.as_ref().and_then(|one| one.outbound.as_ref());
        let inbound = far[0].process.as_mut().and_then(|one| one.inbound.as_mut());
        let (Some(spool), Some(inbound)) = (outbound.and_then(|one| one.spool.identity()), inbound)
        else {
            return;
        };
        if self.now < line.cut_until {
            return;
        }
        line.connections += 1;
        let mut sessions = [Session::new(self.session.clone()), Session::new(self.session.clone())];
        sessions[NEAR].open(Opening { name: name(place), spool, ..Opening::default() });
        let custody = inbound.custody(line.connections);
        sessions[FAR].open(Opening { name: name(place + 1), custody, ..Opening::default() });
        let path = PlainPath::new(line.line, self.rng.random());
        line.connection = Some((path, sessions.map(Some)));
    }

    fn serve_near(&mut self, place: usize, at: Moment) {
        let line = &mut self.lines[place];
        let Some((path, sessions)) = &mut line.connection else { return };
        let (Some(session), Some(process)) = (&mut sessions[NEAR], &mut self.nodes[place].process)
        else {
            return;
        };
        drive(session, &mut path.ends[NEAR], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                _ if closed => {}
                other => closed = !process.event(at, other),
            }
        }
        if !closed {
            process.feed(at, session);
        }
        drive(session, &mut path.ends[NEAR], at.now);
        path.exchange();
        if closed {
            process.disconnected();
            line.call_at = at.now + millis(300);
            self.hung_up(place, NEAR);
        }
    }

    fn serve_far(&mut self, place: usize, at: Moment) {
        let line = &mut self.lines[place];
        let Some((path, sessions)) = &mut line.connection else { return };
        let process = self.nodes[place + 1].process.as_mut();
        let (Some(session), Some(inbound)) =
            (&mut sessions[FAR], process.and_then(|process| process.inbound.as_mut()))
        else {
            return;
        };
        drive(session, &mut path.ends[FAR], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                Event::Block(received) => inbound.arrived(line.connections, received),
                Event::Greeted { spool, .. } => inbound.greeted(line.connections, spool),
                Event::PathUp(_)
                | Event::PathStalled(_)
                | Event::PathBack(_)
                | Event::Settled { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        drive(session, &mut path.ends[FAR], at.now);
        path.exchange();
        if closed {
            self.hung_up(place, FAR);
        }
    }

    fn strike(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Power(place, seed) => {
                self.nodes[place].disk.crash(seed);
                self.kill(place);
            }
            Trouble::Kill(place) => self.kill(place),
            Trouble::Full(place, room) => {
                let disk = &self.nodes[place].disk;
                disk.set_capacity(disk.used() + room);
            }
            Trouble::Room(place) => self.nodes[place].disk.set_capacity(ROOMY),
            Trouble::Fault(place, after) => self.nodes[place].disk.fail_after(after),
            Trouble::Cut(place, length) => {
                let line = &mut self.lines[place];
                line.cut_until = line.cut_until.max(self.now + length);
                let given_up = [0, 1].map(|_| IDLE + millis(self.rng.random_range(0..500)));
                let Some((path, _)) = &mut line.connection else { return };
                path.cut(line.cut_until);
                for (end, given_up) in path.ends.iter_mut().zip(given_up) {
                    if length > given_up {
                        end.end(self.now + given_up, DownReason::TimedOut);
                    }
                }
            }
        }
    }

    fn kill(&mut self, place: usize) {
        self.nodes[place].die(self.now + millis(self.rng.random_range(1..1_500)));
        self.gone(place);
    }

    /// A node is gone, with its sessions.
    fn gone(&mut self, place: usize) {
        if place < self.lines.len() {
            self.hung_up(place, NEAR);
        }
        if place > 0 {
            self.hung_up(place - 1, FAR);
        }
    }

    /// The session of a line is gone at one side; the other finds out.
    fn hung_up(&mut self, line: usize, side: usize) {
        let found_out = self.now + millis(self.rng.random_range(100..3_500));
        if let Some((path, sessions)) = &mut self.lines[line].connection {
            sessions[side] = None;
            path.ends[1 - side].end(found_out, DownReason::TimedOut);
        }
    }
}

fn drawn(rng: &mut ChaCha8Rng) -> PlainLine {
    let mut chance = |parts: u64| Probability::of(rng.random_range(0..=parts), 1000);
    let (loss, lies, silence) = (chance(200), chance(20), chance(20));
    PlainLine {
        rate: Rate::from_mbps(rng.random_range(1..20)),
        one_way_delay: millis(rng.random_range(1..330)),
        loss,
        lies,
        silence,
        payload: rng.random_range(1200..1438),
        ..PlainLine::default()
    }
}

fn troubles(rng: &mut ChaCha8Rng, nodes: usize) -> BTreeMap<Instant, Trouble> {
    let mut troubles = BTreeMap::new();
    for _ in 0..rng.random_range(0..12) {
        let at = Instant::ZERO + Duration::from_micros(rng.random_range(0..PASS.as_micros()));
        let place = rng.random_range(0..nodes);
        let trouble = match rng.random_range(0..8) {
            0 | 1 => Trouble::Power(place, rng.random()),
            2 => Trouble::Kill(place),
            3 => Trouble::Fault(place, rng.random_range(0..30)),
            4 | 5 => Trouble::Cut(place.min(nodes - 2), millis(rng.random_range(1..6_000))),
            _ => {
                troubles.insert(at + millis(rng.random_range(1..4_000)), Trouble::Room(place));
                Trouble::Full(place, ByteCount::new(rng.random_range(0..6_000)))
            }
        };
        troubles.insert(at, trouble);
    }
    troubles
}
