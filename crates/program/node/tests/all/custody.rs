//! A station and a centre, with the production code of both, one line between them, and what goes
//! wrong.

mod centre;
mod several;
mod station;
mod truth;

use centre::Centre;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
pub use several::Several;
use skyhaul_lab::{PlainLine, PlainPath};
use skyhaul_store::sim::SimDisk;
use skyhaul_transport::{CloseReason, DownReason, Event, Opening, Session, SessionConfig, drive};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate, Utc};
use station::Station;
use std::collections::BTreeMap;
use truth::{Contact, Truth};

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
    Full(End, ByteCount),
    /// ... and as much as one can wish for.
    Room(End),
    /// The disk refuses one change, after so many that go well.
    Fault(End, u64),
    /// The line carries nothing for so long.
    Cut(Duration),
    /// The station's state folder is copied, as it is ...
    Backup,
    /// ... and put back: what came after is lost.
    PutBack,
    /// The station's machine is cloned as it runs, key and all.
    Clone,
    /// Another station comes with the same key.
    Twin,
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
const ROOMY: ByteCount = ByteCount::mib(4);
const STATIONS_MAX: usize = 3;

pub struct World {
    now: Instant,
    rng: ChaCha8Rng,
    /// Of numbers that the nodes draw, and of which of several stations something strikes: apart,
    /// so that they change nothing else.
    luck: ChaCha8Rng,
    /// All that have the key: at least one.
    stations: Vec<Station>,
    backup: Option<Station>,
    /// What spools held that are no more.
    gone: Vec<Truth>,
    centre: Centre,
    line: PlainLine,
    session: SessionConfig,
    connection: Option<Connection>,
    /// So many connections were made.
    connections: u64,
    cut_until: Instant,
    troubles: BTreeMap<Instant, Trouble>,
}

struct Connection {
    /// Which station's.
    of: usize,
    path: PlainPath,
    /// Of the station and of the centre, as far as they know of it.
    sessions: [Option<Session>; 2],
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let window = ByteCount::kib(*[16, 64].get(rng.random_range(0..2)).unwrap());
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
            luck: ChaCha8Rng::seed_from_u64(!seed),
            stations: vec![Station::new(SimDisk::new(ROOMY))],
            backup: None,
            gone: Vec::new(),
            centre: Centre::new(SimDisk::new(ROOMY)),
            line,
            session: SessionConfig {
                receive_window: window,
                send_buffer: window,
                utc_at_zero: Moment::zero(),
                ..SessionConfig::default()
            },
            connection: None,
            connections: 0,
            cut_until: Instant::ZERO,
            troubles,
        }
    }

    /// The same, with copies of the spool that are put back, that go on beside it, and with others
    /// under its key.
    pub fn with_copies(seed: u64) -> Self {
        let mut world = Self::new(seed);
        for _ in 0..world.luck.random_range(1..8) {
            let at =
                Instant::ZERO + Duration::from_micros(world.luck.random_range(0..PASS.as_micros()));
            let copies = [Trouble::Backup, Trouble::PutBack, Trouble::Clone, Trouble::Twin];
            world.troubles.insert(at, copies[world.luck.random_range(0..copies.len())]);
        }
        world
    }

    /// A pass with its troubles, then calm until everything is where it belongs.
    pub fn run(mut self) -> Summary {
        let end = Instant::ZERO + PASS;
        while self.now < end {
            self.step();
        }
        self.stations.iter_mut().for_each(|station| station.is_ending = true);
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
            records: self.flows().map(|flow| flow.appended.len() as u64).sum(),
            flows: self.flows().count() as u64,
            connections: self.connections,
            parted: self.stations.iter().map(|station| station.parted).sum(),
            settled_after: self.now.since(end),
            gave_way: 0,
        }
    }

    fn flows(&self) -> impl Iterator<Item = &truth::Flow> {
        self.stations.iter().flat_map(|station| station.truth.flows.values())
    }

    fn step(&mut self) {
        while let Some(entry) = self.troubles.first_entry().filter(|entry| *entry.key() <= self.now)
        {
            let trouble = entry.remove();
            self.strike(trouble);
        }
        let at = Moment { now: self.now };
        for of in 0..self.stations.len() {
            if !self.stations[of].work(at, &mut self.rng, &mut self.luck) {
                self.station_gone(of);
            }
        }
        let number = self.connections;
        let sessions =
            self.connection.as_mut().and_then(|connection| connection.sessions[CENTRE].as_mut());
        let line = sessions.map(|session| (number, session));
        let lives = self.centre.work(at, &mut self.rng, line);
        let refused = self.centre.node.as_mut().and_then(|node| node.refused.take());
        if !lives || refused == Some(self.connections) {
            self.gone(CENTRE);
        }
        self.connect();
        self.serve_station(at);
        self.serve_centre(at);
        self.now = self.next_wake().max(self.now + Duration::from_micros(1));
    }

    fn next_wake(&self) -> Instant {
        let stations = self.stations.iter().map(Station::next_wake);
        let mut next = stations.fold(self.centre.next_wake(), Instant::min);
        if let Some(at) = self.troubles.keys().next() {
            next = next.min(*at);
        }
        let connected = self.connected();
        let waiting = self.stations.iter().enumerate().filter(|(of, _)| Some(*of) != connected);
        let calls = waiting
            .filter(|(_, station)| station.node.is_some())
            .map(|(_, station)| station.call_at);
        next = calls.fold(next, Instant::min);
        let Some(Connection { path, sessions, .. }) = &self.connection else { return next };
        for (session, end) in sessions.iter().zip(&path.ends) {
            let Some(session) = session else { continue };
            let timeout = session.next_timeout().map(|at| at.max(end.free_at()));
            let send = session.has_symbol().then_some(end.free_at());
            next = [timeout, send, end.next_event()].into_iter().flatten().fold(next, Instant::min);
        }
        next
    }

    /// The station that has a session.
    fn connected(&self) -> Option<usize> {
        let connection = self.connection.as_ref()?;
        connection.sessions[STATION].is_some().then_some(connection.of)
    }

    /// A station calls when it has no session; the centre then knows it has lost the old one.
    fn connect(&mut self) {
        for of in 0..self.stations.len() {
            let connected = self.connected();
            if connected == Some(of) || self.now < self.stations[of].call_at {
                continue;
            }
            if self.stations[of].node.is_none() {
                continue;
            }
            self.stations[of].call_at = self.now + millis(300);
            let Some(spool) =
                self.stations[of].node.as_ref().and_then(|node| node.spool.identity())
            else {
                continue;
            };
            if let Some(other) = connected
                && !self.makes_place(other)
            {
                self.stations[of].call_at = self.now + millis(1_000);
                continue;
            }
            let Some(centre) = self.centre.node.as_mut().filter(|_| self.now >= self.cut_until)
            else {
                continue;
            };
            if let Some(other) = connected {
                self.stations[other].call_at =
                    self.now + millis(self.luck.random_range(500..4_000));
                self.stations[other].node.iter_mut().for_each(|node| node.disconnected(0));
            }
            self.connections += 1;
            let mut sessions =
                [Session::new(self.session.clone()), Session::new(self.session.clone())];
            sessions[STATION].open(Opening { name: NAME.to_owned(), spool, ..Opening::default() });
            let custody = centre.custody(self.connections, &mut self.centre.deeds);
            sessions[CENTRE].open(Opening {
                name: "centre".to_owned(),
                custody,
                ..Opening::default()
            });
            let path = PlainPath::new(self.line, self.rng.random());
            self.connection = Some(Connection { of, path, sessions: sessions.map(Some) });
        }
    }

    /// Whether a station's session ends for that of another one: now and then, and where it has
    /// nothing more to send.
    fn makes_place(&mut self, of: usize) -> bool {
        let is_idle = self.stations[of]
            .node
            .as_ref()
            .is_none_or(|node| node.spool.queue().live_flows().is_empty());
        is_idle || (!self.stations[of].is_ending && self.luck.random_bool(0.3))
    }

    fn serve_station(&mut self, at: Moment) {
        let Some(Connection { of, path, sessions }) = &mut self.connection else { return };
        let of = *of;
        let station = &mut self.stations[of];
        let Some(session) = sessions[STATION].as_mut().filter(|_| station.node.is_some()) else {
            return;
        };
        drive(session, &mut path.ends[STATION], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                // It has hung up: what else came is of no session.
                _ if closed => {}
                other => closed = !station.event(at, 0, other, &mut self.luck),
            }
        }
        let Some(node) = station.node.as_mut() else { return };
        if !closed {
            node.feed(at, 0, session);
        }
        drive(session, &mut path.ends[STATION], at.now);
        assert!(session.stats().balances(), "{:?}", session.stats());
        path.exchange();
        if closed {
            node.disconnected(0);
            station.call_at = at.now + millis(300);
            self.gone(STATION);
        }
    }

    fn serve_centre(&mut self, at: Moment) {
        let Some(Connection { path, sessions, .. }) = &mut self.connection else { return };
        let (Some(session), Some(node)) = (&mut sessions[CENTRE], &mut self.centre.node) else {
            return;
        };
        drive(session, &mut path.ends[CENTRE], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                Event::Block(received) => node.arrived(self.connections, received),
                Event::Greeted { spool, .. } => node.greeted(self.connections, spool),
                Event::PathUp(_)
                | Event::PathStalled(_)
                | Event::PathBack(_)
                | Event::Settled { .. } => {}
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
        let of = self.luck.random_range(0..self.stations.len());
        match trouble {
            Trouble::Power(end, seed) => {
                self.disk(end, of).crash(seed);
                self.kill(end, of);
            }
            Trouble::Kill(end) => self.kill(end, of),
            Trouble::Full(end, room) => {
                let disk = self.disk(end, of);
                disk.set_capacity(disk.used() + room);
            }
            Trouble::Room(End::Centre) => self.centre.disk.set_capacity(ROOMY),
            Trouble::Room(End::Station) => {
                self.stations.iter().for_each(|station| station.disk.set_capacity(ROOMY));
            }
            Trouble::Fault(end, after) => self.disk(end, of).fail_after(after),
            Trouble::Backup => self.backup = Some(self.stations[of].copy()),
            Trouble::PutBack => {
                let Some(backup) = &self.backup else { return };
                let mut station = backup.copy();
                station.die(self.now + millis(self.luck.random_range(1..3_000)));
                self.gone.push(std::mem::replace(&mut self.stations[of], station).truth);
                self.station_gone(of);
            }
            Trouble::Clone | Trouble::Twin if self.stations.len() == STATIONS_MAX => {}
            Trouble::Clone => {
                let mut clone = self.stations[of].copy();
                clone.die(self.now + millis(self.luck.random_range(1..3_000)));
                self.stations.push(clone);
            }
            Trouble::Twin => self.stations.push(Station::new(SimDisk::new(ROOMY))),
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

    fn disk(&self, end: End, of: usize) -> &SimDisk {
        match end {
            End::Station => &self.stations[of].disk,
            End::Centre => &self.centre.disk,
        }
    }

    fn kill(&mut self, end: End, of: usize) {
        let back = self.now + millis(self.rng.random_range(1..1_500));
        match end {
            End::Station => {
                self.stations[of].die(back);
                self.station_gone(of);
            }
            End::Centre => {
                self.centre.die(back);
                self.gone(CENTRE);
            }
        }
    }

    /// A station is gone, and its session if it has one.
    fn station_gone(&mut self, of: usize) {
        if self.connection.as_ref().is_none_or(|connection| connection.of == of) {
            self.gone(STATION);
        }
    }

    /// The session at `side` is gone; the other end is told so by the first answer, or hears
    /// nothing more.
    fn gone(&mut self, side: usize) {
        let found_out = self.now + millis(self.rng.random_range(100..3_500));
        if let Some(Connection { path, sessions, .. }) = &mut self.connection {
            sessions[side] = None;
            path.ends[1 - side].end(found_out, DownReason::TimedOut);
        }
    }

    /// Everything that was promised has been processed, and no station holds anything back. What is
    /// at the centre is what one spool or another held.
    fn is_settled(&self) -> bool {
        let Some(centre) = &self.centre.node else { return false };
        let has_sent = |station: &Station| {
            let Some(node) = &station.node else { return false };
            let depth = node.spool.queue().depth(Moment { now: self.now }.utc());
            node.spool.queue().live_flows().is_empty()
                && depth.blocks == 0
                && self.centre.deeds.lacks(&station.truth).is_none()
        };
        if !centre.is_idle() || !self.stations.iter().all(has_sent) {
            return false;
        }
        let truths = self.stations.iter().map(|station| &station.truth).chain(&self.gone);
        self.centre.deeds.check(&truths.cloned().collect::<Vec<_>>());
        true
    }

    fn state(&self) -> String {
        let contacts = self.centre.deeds.contacts.iter().map(|((space, flow), contact)| {
            let Contact { promised, processed, records } = contact;
            format!(
                "{space} {flow:?}: {promised} promised, {} read, processed {processed}",
                records.len()
            )
        });
        let stations = self.stations.iter().map(|station| {
            let live = station.node.as_ref().map(|node| node.spool.queue().live_flows());
            let lacks = self.centre.deeds.lacks(&station.truth);
            format!("parted {}, live {live:?}, lacks {lacks:?}", station.parted)
        });
        let sessions = self.connection.as_ref().map(|connection| connection.sessions.each_ref());
        let stats =
            sessions.map(|sessions| sessions.map(|session| session.as_ref().map(Session::stats)));
        format!("{}\n{stats:#?}", contacts.chain(stations).collect::<Vec<_>>().join("\n"))
    }
}

/// What a run was like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    pub records: u64,
    pub flows: u64,
    pub connections: u64,
    pub settled_after: Duration,
    /// So often did a spool find out that it is a copy.
    pub parted: u64,
    /// Segments that went before every destination had them.
    pub gave_way: u64,
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
                Trouble::Full(end, ByteCount::new(rng.random_range(0..6_000)))
            }
        };
        troubles.insert(at, trouble);
    }
    troubles
}
