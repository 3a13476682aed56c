//! A station and a centre, with the production code of both, one line between them, and what goes wrong.

mod centre;
mod station;
mod truth;

use centre::Centre;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use skyhaul_lab::{PlainLine, PlainPath};
use skyhaul_store::sim::SimDisk;
use skyhaul_transport::{CloseReason, DownReason, Event, Opening, Session, SessionConfig, drive};
use skyhaul_units::{Bytes, Duration, Instant, Probability, Rate, Utc};
use station::Station;
use std::collections::BTreeMap;
use truth::Truth;

pub const NAME: &str = "svalbard";

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The virtual clock's reading.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now: Instant,
}

impl Moment {
    pub fn zero() -> Utc {
        Utc::from_micros(1_730_419_200_000_000)
    }

    pub fn utc(self) -> Utc {
        Self::zero() + self.now.since(Instant::ZERO)
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// The power fails at this end; the seed decides what the disk kept of what was not synced.
    Power(End, u64),
    /// The process is killed.
    Kill(End),
    /// The disk has this much room, ...
    Full(End, Bytes),
    /// ... and as much as one can wish for.
    Room(End),
    /// The disk refuses one change, after so many that go well.
    Fault(End, u64),
    /// The line carries nothing for so long.
    Cut(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Station,
    Centre,
}

const STATION: usize = 0;
const CENTRE: usize = 1;

/// How long a station captures, and things go wrong.
const PASS: Duration = Duration::from_secs(12);
/// By when all must have arrived after that, at 1 Mbit/s and 30 % loss.
const SETTLED: Duration = Duration::from_secs(90);
/// A path silent for this long is given up.
const IDLE: Duration = Duration::from_secs(3);
const ROOMY: Bytes = Bytes::mib(4);

pub struct World {
    now: Instant,
    rng: ChaCha8Rng,
    station: Station,
    centre: Centre,
    truth: Truth,
    line: PlainLine,
    session: SessionConfig,
    connection: Option<Connection>,
    /// So many connections were made.
    connections: u64,
    connect_at: Instant,
    cut_until: Instant,
    troubles: BTreeMap<Instant, Trouble>,
}

struct Connection {
    path: PlainPath,
    /// Of the station and of the centre, as far as they know of it.
    sessions: [Option<Session>; 2],
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let window = Bytes::kib(*[16, 64].get(rng.random_range(0..2)).unwrap());
        let mut chance = |parts: u64| Probability::of(rng.random_range(0..=parts), 1000);
        let (loss, lies, silence) = (chance(300), chance(20), chance(20));
        let line = PlainLine {
            rate: Rate::from_mbps(rng.random_range(1..20)),
            one_way_delay: millis(rng.random_range(1..330)),
            loss,
            lies,
            silence,
            payload: rng.random_range(1200..1438),
            ..PlainLine::default()
        };
        let troubles = troubles(&mut rng);
        Self {
            now: Instant::ZERO,
            rng,
            station: Station::new(SimDisk::new(ROOMY)),
            centre: Centre::new(SimDisk::new(ROOMY)),
            truth: Truth::default(),
            line,
            session: SessionConfig {
                receive_window: window,
                send_buffer: window,
                utc_at_zero: Moment::zero(),
                ..SessionConfig::default()
            },
            connection: None,
            connections: 0,
            connect_at: Instant::ZERO,
            cut_until: Instant::ZERO,
            troubles,
        }
    }

    /// A pass with its troubles, then calm until everything is where it belongs.
    pub fn run(mut self) -> Summary {
        let end = Instant::ZERO + PASS;
        while self.now < end {
            self.step();
        }
        self.station.is_ending = true;
        for trouble in [Trouble::Room(End::Station), Trouble::Room(End::Centre)] {
            self.strike(trouble);
        }
        while !self.is_settled() {
            assert!(self.now < end + SETTLED, "locked up: {}", self.state());
            self.step();
        }
        // What the centre has, it has for good.
        self.strike(Trouble::Power(End::Centre, 0));
        while self.centre.node.is_none() {
            self.step();
        }
        Summary {
            records: self.truth.flows.values().map(|flow| flow.appended.len() as u64).sum(),
            flows: self.truth.flows.len() as u64,
            connections: self.connections,
            settled_after: self.now.since(end),
        }
    }

    fn step(&mut self) {
        while let Some(entry) = self.troubles.first_entry().filter(|entry| *entry.key() <= self.now) {
            let trouble = entry.remove();
            self.strike(trouble);
        }
        let at = Moment { now: self.now };
        if !self.station.work(at, &mut self.truth, &mut self.rng) {
            self.gone(STATION);
        }
        let number = self.connections;
        let sessions = self.connection.as_mut().and_then(|connection| connection.sessions[CENTRE].as_mut());
        let line = sessions.map(|session| (number, session));
        if !self.centre.work(at, &mut self.truth, &mut self.rng, line) {
            self.gone(CENTRE);
        }
        self.connect();
        self.serve_station(at);
        self.serve_centre(at);
        self.now = self.next_wake().max(self.now + Duration::from_micros(1));
    }

    fn next_wake(&self) -> Instant {
        let mut next = self.station.next_wake().min(self.centre.next_wake());
        if let Some(at) = self.troubles.keys().next() {
            next = next.min(*at);
        }
        let connect_at = if self.station.node.is_some() { self.connect_at } else { Instant::FAR_FUTURE };
        let Some(Connection { path, sessions }) = &self.connection else { return next.min(connect_at) };
        for (session, end) in sessions.iter().zip(&path.ends) {
            let Some(session) = session else { continue };
            let timeout = session.next_timeout().map(|at| at.max(end.free_at()));
            let send = session.has_symbol().then_some(end.free_at());
            next = [timeout, send, end.next_event()].into_iter().flatten().fold(next, Instant::min);
        }
        if sessions[STATION].is_none() { next.min(connect_at) } else { next }
    }

    /// The station calls when it has no session; the centre then knows it has lost the old one.
    fn connect(&mut self) {
        let connected =
            self.connection.as_ref().is_some_and(|connection| connection.sessions[STATION].is_some());
        if connected || self.now < self.connect_at || self.station.node.is_none() {
            return;
        }
        self.connect_at = self.now + millis(300);
        let Some(centre) = self.centre.node.as_ref().filter(|_| self.now >= self.cut_until) else { return };
        let mut sessions = [Session::new(self.session.clone()), Session::new(self.session.clone())];
        sessions[STATION].open(Opening { name: NAME.to_owned(), ..Opening::default() });
        let resume = centre.resume(&mut self.truth);
        sessions[CENTRE].open(Opening { name: "centre".to_owned(), resume, ..Opening::default() });
        self.connections += 1;
        let path = PlainPath::new(self.line, self.rng.random());
        self.connection = Some(Connection { path, sessions: sessions.map(Some) });
    }

    fn serve_station(&mut self, at: Moment) {
        let Some(Connection { path, sessions }) = &mut self.connection else { return };
        let (Some(session), Some(node)) = (&mut sessions[STATION], &mut self.station.node) else { return };
        drive(session, &mut path.ends[STATION], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                other => node.event(other),
            }
        }
        node.feed(at, session);
        drive(session, &mut path.ends[STATION], at.now);
        assert!(session.stats().balances(), "{:?}", session.stats());
        path.exchange();
        if closed {
            node.disconnected();
            self.gone(STATION);
            self.connect_at = at.now + millis(300);
        }
    }

    fn serve_centre(&mut self, at: Moment) {
        let Some(Connection { path, sessions }) = &mut self.connection else { return };
        let (Some(session), Some(node)) = (&mut sessions[CENTRE], &mut self.centre.node) else { return };
        drive(session, &mut path.ends[CENTRE], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                Event::Block(received) => node.arrived(self.connections, received),
                Event::Greeted { .. } | Event::PathUp(_) | Event::Settled { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        drive(session, &mut path.ends[CENTRE], at.now);
        assert!(session.stats().balances(), "{:?}", session.stats());
        path.exchange();
        if closed {
            self.gone(CENTRE);
        }
    }

    fn strike(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Power(end, seed) => {
                self.disk(end).crash(seed);
                self.kill(end);
            }
            Trouble::Kill(end) => self.kill(end),
            Trouble::Full(end, room) => {
                let disk = self.disk(end);
                disk.set_capacity(disk.used() + room);
            }
            Trouble::Room(end) => self.disk(end).set_capacity(ROOMY),
            Trouble::Fault(end, after) => self.disk(end).fail_after(after),
            Trouble::Cut(length) => {
                self.cut_until = self.cut_until.max(self.now + length);
                let given_up = [0, 1].map(|_| IDLE + millis(self.rng.random_range(0..500)));
                let Some(connection) = &mut self.connection else { return };
                connection.path.cut(self.cut_until);
                for (end, given_up) in connection.path.ends.iter_mut().zip(given_up) {
                    if length > given_up {
                        end.end(self.now + given_up, DownReason::TimedOut);
                    }
                }
            }
        }
    }

    const fn disk(&self, end: End) -> &SimDisk {
        match end {
            End::Station => &self.station.disk,
            End::Centre => &self.centre.disk,
        }
    }

    fn kill(&mut self, end: End) {
        let back = self.now + millis(self.rng.random_range(1..1_500));
        match end {
            End::Station => {
                self.station.die(back);
                self.gone(STATION);
            }
            End::Centre => {
                self.centre.die(back);
                self.gone(CENTRE);
            }
        }
    }

    /// The session at `side` is gone; the other end is told so by the first answer, or hears nothing more.
    fn gone(&mut self, side: usize) {
        let found_out = self.now + millis(self.rng.random_range(100..3_500));
        if let Some(Connection { path, sessions }) = &mut self.connection {
            sessions[side] = None;
            path.ends[1 - side].end(found_out, DownReason::TimedOut);
        }
    }

    /// Everything that was promised has been processed, and the station holds nothing back.
    fn is_settled(&self) -> bool {
        let (Some(station), Some(centre)) = (&self.station.node, &self.centre.node) else { return false };
        let done =
            |flow: &truth::Flow| flow.processed && flow.is_final() && flow.durable == flow.appended.len();
        centre.is_idle()
            && station.spool.live_flows().is_empty()
            && station.spool.depth(Moment { now: self.now }.utc()).blocks == 0
            && self.truth.flows.values().all(done)
    }

    fn state(&self) -> String {
        let flows = self.truth.flows.iter().map(|(id, flow)| {
            let (last, processed) = (flow.is_final(), flow.processed);
            format!(
                "{id:?}: {} of {}, last {last}, processed {processed}",
                flow.promised,
                flow.appended.len()
            )
        });
        let sessions = self.connection.as_ref().map(|connection| connection.sessions.each_ref());
        let stats = sessions.map(|sessions| sessions.map(|session| session.as_ref().map(Session::stats)));
        let live = self.station.node.as_ref().map(|node| node.spool.live_flows());
        format!("{}\nlive {live:?}\n{stats:#?}", flows.collect::<Vec<_>>().join("\n"))
    }
}

/// What a run was like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    pub records: u64,
    pub flows: u64,
    pub connections: u64,
    pub settled_after: Duration,
}

fn troubles(rng: &mut ChaCha8Rng) -> BTreeMap<Instant, Trouble> {
    let mut troubles = BTreeMap::new();
    for _ in 0..rng.random_range(0..12) {
        let at = Instant::ZERO + Duration::from_micros(rng.random_range(0..PASS.as_micros()));
        let end = if rng.random() { End::Station } else { End::Centre };
        let trouble = match rng.random_range(0..8) {
            0 | 1 => Trouble::Power(end, rng.random()),
            2 => Trouble::Kill(end),
            3 => Trouble::Fault(end, rng.random_range(0..30)),
            4 | 5 => Trouble::Cut(millis(rng.random_range(1..6_000))),
            _ => {
                troubles.insert(at + millis(rng.random_range(1..4_000)), Trouble::Room(end));
                Trouble::Full(end, Bytes::new(rng.random_range(0..6_000)))
            }
        };
        troubles.insert(at, trouble);
    }
    troubles
}
