//! A station and several centres, with the production code of all, a line to each, and what goes
//! wrong: each has what it must have once, and the spool holds nothing in the end.

use super::centre::Centre;
use super::station::Station;
use super::truth::{Deeds, Truth};
use super::{
    CENTRE, Connection, IDLE, Moment, NAME, PASS, ROOMY, SETTLED, STATION, Summary, millis,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use skyhaul_lab::{PlainLine, PlainPath};
use skyhaul_records::payload::LOST;
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{DestinationRole, Seq, Settle, Since, SpoolDestination};
use skyhaul_transport::{CloseReason, DownReason, Event, Opening, Session, SessionConfig, drive};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// What goes wrong; the number is that of the centre, and the station is the one behind the last.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Power(usize, u64),
    Kill(usize),
    Full(usize, ByteCount),
    Room(usize),
    Fault(usize, u64),
    /// The line to this centre carries nothing for so long.
    Cut(usize, Duration),
    /// The centre's store is copied ...
    Backup(usize),
    /// ... and put back.
    RollBack(usize),
    /// It is no destination any more ...
    Remove(usize),
    /// ... and is one again.
    Add(usize, Since),
}

/// A centre, and the line to it.
struct Far {
    centre: Centre,
    line: PlainLine,
    connection: Option<Connection>,
    connections: u64,
    cut_until: Instant,
    call_at: Instant,
    role: DestinationRole,
    is_declared: bool,
    /// It must have the flows from this one on.
    from: FlowId,
    backup: Option<(SimDisk, Deeds)>,
    was_rolled_back: bool,
    was_removed: bool,
}

pub struct Several {
    now: Instant,
    rng: ChaCha8Rng,
    station: Station,
    fars: Vec<Far>,
    session: SessionConfig,
    troubles: BTreeMap<Instant, Trouble>,
}

impl Several {
    /// Two or three centres, of which the last may be a shadow; the first always counts.
    pub fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5e7e_4a1d);
        let count = rng.random_range(2..4);
        let has_shadow = rng.random_bool(0.5);
        let far = |at: usize, rng: &mut ChaCha8Rng| {
            let mut chance = |parts: u64| Probability::of(rng.random_range(0..=parts), 1000);
            let (loss, lies, silence) = (chance(200), chance(20), chance(20));
            let line = PlainLine {
                rate: Rate::from_mbps(rng.random_range(1..20)),
                one_way_delay: millis(rng.random_range(1..330)),
                loss,
                lies,
                silence,
                payload: rng.random_range(1200..1438),
                ..PlainLine::default()
            };
            let is_shadow = has_shadow && at + 1 == count;
            Far {
                centre: Centre::new(SimDisk::new(ROOMY)),
                line,
                connection: None,
                connections: 0,
                cut_until: Instant::ZERO,
                call_at: Instant::ZERO,
                role: if is_shadow { DestinationRole::Shadow } else { DestinationRole::Counted },
                is_declared: true,
                from: FlowId(0),
                backup: None,
                was_rolled_back: false,
                was_removed: false,
            }
        };
        let fars: Vec<Far> = (0..count).map(|at| far(at, &mut rng)).collect();
        let window = ByteCount::kib(*[16, 64].get(rng.random_range(0..2)).unwrap());
        let mut station = Station::new(SimDisk::new(ROOMY));
        station.declared = declared(&fars, Since::Now);
        let troubles = troubles(&mut rng, count);
        Self {
            now: Instant::ZERO,
            rng,
            station,
            fars,
            session: SessionConfig {
                receive_window: window,
                send_buffer: window,
                utc_at_zero: Moment::zero(),
                ..SessionConfig::default()
            },
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
        for end in 0..=self.fars.len() {
            self.strike(Trouble::Room(end));
        }
        loop {
            let why = self.unsettled();
            let Some(why) = why else { break };
            assert!(self.now < end + SETTLED, "locked up: {why}\n{}", self.state());
            self.step();
        }
        assert_eq!(self.station.parted, 0, "there is no other copy of this spool");
        let flows = &self.station.truth.flows;
        let spool = self.station.node.as_ref().map(|node| node.spool.stats());
        Summary {
            records: flows.values().map(|flow| flow.appended.len() as u64).sum(),
            flows: flows.len() as u64,
            connections: self.fars.iter().map(|far| far.connections).sum(),
            parted: self.station.parted,
            settled_after: self.now.since(end),
            gave_way: spool.map_or(0, |stats| stats.gave_way),
        }
    }

    fn step(&mut self) {
        while let Some(entry) = self.troubles.first_entry().filter(|entry| *entry.key() <= self.now)
        {
            let trouble = entry.remove();
            self.strike(trouble);
        }
        let at = Moment { now: self.now };
        let mut luck = self.rng.clone();
        let lives = self.station.work(at, &mut self.rng, &mut luck);
        if !lives {
            self.station_gone();
        }
        for of in 0..self.fars.len() {
            let far = &mut self.fars[of];
            let session =
                far.connection.as_mut().and_then(|connection| connection.sessions[CENTRE].as_mut());
            let line = session.map(|session| (far.connections, session));
            let lives = far.centre.work(at, &mut self.rng, line);
            let refused = far.centre.node.as_mut().and_then(|node| node.refused.take());
            if !lives || refused == Some(far.connections) {
                self.gone(of, CENTRE);
            }
            self.connect(of);
            self.serve_station(of, at);
            self.serve_centre(of, at);
        }
        self.now = self.next_wake().max(self.now + Duration::from_micros(1));
    }

    fn next_wake(&self) -> Instant {
        let mut next = self.station.next_wake();
        if let Some(at) = self.troubles.keys().next() {
            next = next.min(*at);
        }
        for far in &self.fars {
            next = next.min(far.centre.next_wake());
            let is_up = far
                .connection
                .as_ref()
                .is_some_and(|connection| connection.sessions[STATION].is_some());
            if !is_up && far.is_declared && self.station.node.is_some() {
                next = next.min(far.call_at);
            }
            let Some(Connection { path, sessions, .. }) = &far.connection else { continue };
            for (session, end) in sessions.iter().zip(&path.ends) {
                let Some(session) = session else { continue };
                let timeout = session.next_timeout().map(|at| at.max(end.free_at()));
                let send = session.has_symbol().then_some(end.free_at());
                let due = [timeout, send, end.next_event()].into_iter().flatten();
                next = due.fold(next, Instant::min);
            }
        }
        next
    }

    fn connect(&mut self, of: usize) {
        let far = &mut self.fars[of];
        let is_up = far
            .connection
            .as_ref()
            .is_some_and(|connection| connection.sessions[STATION].is_some());
        if is_up || !far.is_declared || self.now < far.call_at {
            return;
        }
        far.call_at = self.now + millis(300);
        let spool = self.station.node.as_ref().and_then(|node| node.spool.identity());
        let (Some(spool), Some(centre)) =
            (spool, far.centre.node.as_mut().filter(|_| self.now >= far.cut_until))
        else {
            return;
        };
        far.connections += 1;
        let mut sessions = [Session::new(self.session.clone()), Session::new(self.session.clone())];
        sessions[STATION].open(Opening { name: NAME.to_owned(), spool, ..Opening::default() });
        let custody = centre.custody(far.connections, &mut far.centre.deeds);
        let name = "centre".to_owned();
        sessions[CENTRE].open(Opening { name, custody, ..Opening::default() });
        let path = PlainPath::new(far.line, self.rng.random());
        far.connection = Some(Connection { of: 0, path, sessions: sessions.map(Some) });
    }

    fn serve_station(&mut self, of: usize, at: Moment) {
        let far = &mut self.fars[of];
        let Some(Connection { path, sessions, .. }) = &mut far.connection else { return };
        let station = &mut self.station;
        let Some(session) = sessions[STATION].as_mut().filter(|_| station.node.is_some()) else {
            return;
        };
        drive(session, &mut path.ends[STATION], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                _ if closed => {}
                other => closed = !station.event(at, of, other, &mut self.rng),
            }
        }
        let Some(node) = station.node.as_mut() else { return };
        if !closed {
            node.feed(at, of, session);
        }
        drive(session, &mut path.ends[STATION], at.now);
        path.exchange();
        if closed {
            node.disconnected(of);
            far.call_at = at.now + millis(300);
            self.gone(of, STATION);
        }
    }

    fn serve_centre(&mut self, of: usize, at: Moment) {
        let far = &mut self.fars[of];
        let Some(Connection { path, sessions, .. }) = &mut far.connection else { return };
        let (Some(session), Some(node)) = (&mut sessions[CENTRE], &mut far.centre.node) else {
            return;
        };
        drive(session, &mut path.ends[CENTRE], at.now);
        let mut closed = false;
        while let Some(event) = session.poll() {
            match event {
                Event::Closed(CloseReason::Path(_)) => closed = true,
                Event::Block(received) => node.arrived(far.connections, received),
                Event::Greeted { spool, .. } => node.greeted(far.connections, spool),
                Event::PathUp(_)
                | Event::PathStalled(_)
                | Event::PathBack(_)
                | Event::Settled { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        drive(session, &mut path.ends[CENTRE], at.now);
        path.exchange();
        if closed {
            self.gone(of, CENTRE);
        }
    }

    fn strike(&mut self, trouble: Trouble) {
        let back = self.now + millis(self.rng.random_range(1..1_500));
        match trouble {
            Trouble::Power(end, seed) => {
                self.disk(end).crash(seed);
                self.kill(end, back);
            }
            Trouble::Kill(end) => self.kill(end, back),
            Trouble::Full(end, room) => {
                let disk = self.disk(end);
                disk.set_capacity(disk.used() + room);
            }
            Trouble::Room(end) => self.disk(end).set_capacity(ROOMY),
            Trouble::Fault(end, after) => self.disk(end).fail_after(after),
            Trouble::Backup(of) => {
                let centre = &self.fars[of].centre;
                if centre.node.is_none() {
                    return;
                }
                self.fars[of].backup = Some((centre.disk.copy(), centre.deeds.clone()));
            }
            Trouble::RollBack(of) => {
                let far = &mut self.fars[of];
                let Some((disk, deeds)) = &far.backup else { return };
                far.centre = Centre::new(disk.copy());
                far.centre.disk.set_capacity(ROOMY);
                far.centre.deeds = deeds.clone();
                far.centre.die(back);
                (far.was_rolled_back, self.station.may_miss) = (true, true);
                self.gone(of, CENTRE);
            }
            Trouble::Remove(of) => {
                let counts = |far: &&Far| far.is_declared && far.role == DestinationRole::Counted;
                let is_last = self.fars.iter().filter(counts).count() == 1;
                let far = &mut self.fars[of];
                if !far.is_declared || (is_last && far.role == DestinationRole::Counted) {
                    return;
                }
                (far.is_declared, far.was_removed) = (false, true);
                self.declare(Since::Now, back);
                self.gone(of, STATION);
            }
            Trouble::Add(of, since) => {
                if self.fars[of].is_declared {
                    return;
                }
                let flows = &self.station.truth.flows;
                self.fars[of].from =
                    flows.keys().max().map_or(FlowId(0), |flow| FlowId(flow.0 + 1));
                self.fars[of].is_declared = true;
                self.declare(since, back);
            }
            Trouble::Cut(of, length) => {
                let far = &mut self.fars[of];
                far.cut_until = far.cut_until.max(self.now + length);
                let given_up = [0, 1].map(|_| IDLE + millis(self.rng.random_range(0..500)));
                let Some(connection) = &mut far.connection else { return };
                connection.path.cut(far.cut_until);
                for (end, given_up) in connection.path.ends.iter_mut().zip(given_up) {
                    if length > given_up {
                        end.end(self.now + given_up, DownReason::TimedOut);
                    }
                }
            }
        }
    }

    fn declare(&mut self, since: Since, back: Instant) {
        self.station.declare(declared(&self.fars, since), back);
        if self.station.node.is_none() {
            self.station_gone();
        }
    }

    fn disk(&self, end: usize) -> &SimDisk {
        self.fars.get(end).map_or(&self.station.disk, |far| &far.centre.disk)
    }

    fn kill(&mut self, end: usize, back: Instant) {
        if let Some(far) = self.fars.get_mut(end) {
            far.centre.die(back);
            self.gone(end, CENTRE);
        } else {
            self.station.die(back);
            self.station_gone();
        }
    }

    fn station_gone(&mut self) {
        (0..self.fars.len()).for_each(|of| self.gone(of, STATION));
    }

    /// The session with a centre is gone at `side`; the other end finds out.
    fn gone(&mut self, of: usize, side: usize) {
        let found_out = self.now + millis(self.rng.random_range(100..3_500));
        if let Some(Connection { path, sessions, .. }) = &mut self.fars[of].connection {
            sessions[side] = None;
            path.ends[1 - side].end(found_out, DownReason::TimedOut);
        }
    }

    fn state(&self) -> String {
        let node = self.station.node.as_ref();
        let of = |(at, far): (usize, &Far)| {
            let sessions = far.connection.as_ref().map(|connection| {
                connection.sessions.each_ref().map(|session| session.as_ref().map(Session::stats))
            });
            let contacts = far.centre.deeds.contacts.iter().map(|((_, flow), contact)| {
                let lost = contact.records.iter().filter(|record| *record == LOST).count();
                (flow.0, contact.records.len(), lost, contact.promised.0, contact.processed)
            });
            let contacts: Vec<_> = contacts.collect();
            let line = (far.is_declared, far.connections, far.call_at, far.cut_until);
            format!("{at}: {line:?} {contacts:?}\n{sessions:?}")
        };
        let fars: Vec<String> = self.fars.iter().enumerate().map(of).collect();
        let spool = node.map(|node| node.spool.stats());
        format!("{}\n{spool:?}", fars.join("\n"))
    }

    /// Why it is not over: what a centre lacks, or the spool still holds.
    fn unsettled(&self) -> Option<String> {
        let Some(node) = &self.station.node else { return Some("no station".to_owned()) };
        let live = node.spool.queue().live_flows();
        let depth = node.spool.queue().depth(Moment { now: self.now }.utc());
        if !live.is_empty() || depth.blocks > 0 {
            let backlogs = node.spool.queue().backlogs(Moment { now: self.now }.utc());
            return Some(format!("live {live:?}, {depth:?}, {backlogs:?}"));
        }
        let is_idle = |far: &&Far| far.centre.node.as_ref().is_some_and(|node| node.is_idle());
        if let Some(at) = self.fars.iter().position(|far| !is_idle(&far)) {
            return Some(format!("centre {at} is at work"));
        }
        let fars = self.fars.iter().enumerate();
        for (at, far) in fars.filter(|(_, far)| far.is_declared && !far.was_rolled_back) {
            if let Some(lacks) = self.lacks(at, far) {
                return Some(format!("{}: {lacks}", name(at)));
            }
        }
        for far in &self.fars {
            let truth = std::slice::from_ref(&self.station.truth);
            far.centre.deeds.check(truth);
        }
        None
    }

    /// What a centre lacks of what it must have.
    fn lacks(&self, at: usize, far: &Far) -> Option<String> {
        let is_its = |flow: &FlowId| *flow >= far.from;
        let deeds = &far.centre.deeds;
        let flows = &self.station.truth.flows;
        if far.role == DestinationRole::Counted {
            let strict = flows.iter().filter(|(flow, known)| {
                let first = self.fars.iter().all(|far| !far.was_removed) && at == 0;
                is_its(flow)
                    && (known.settle == Settle::All || (known.settle == Settle::First && first))
            });
            let strict: BTreeMap<_, _> =
                strict.map(|(flow, known)| (*flow, known.clone())).collect();
            if let Some(lacks) = deeds.lacks(&Truth { flows: strict }) {
                return Some(lacks);
            }
        }
        // The others: each place is there, as a record or told lost.
        for (flow, known) in flows.iter().filter(|(flow, _)| is_its(flow)) {
            let its = deeds.contacts.iter().find(|((_, other), _)| other == flow);
            let records = its.map_or(&[][..], |(_, contact)| &contact.records);
            if records.len() != known.appended.len() {
                return Some(format!("{flow:?}: {} of {}", records.len(), known.appended.len()));
            }
            for (place, record) in records.iter().enumerate() {
                if record == LOST && !self.is_somewhere(*flow, place) {
                    return Some(format!("{flow:?}: {place} is lost and nowhere else"));
                }
            }
        }
        None
    }

    /// Whether a centre that counts has a record, or may have had it and was put back.
    fn is_somewhere(&self, flow: FlowId, place: usize) -> bool {
        let has = |far: &Far| {
            let contacts = far.centre.deeds.contacts.iter();
            let mut its = contacts.filter(|((_, other), _)| *other == flow);
            its.any(|(_, contact)| {
                contact.records.get(place).is_some_and(|record| record != LOST)
                    && contact.promised > Seq(place as u64)
            })
        };
        // Where each that counts was removed once, only a shadow may have been left to wait for a
        // record: that holds nothing.
        let mut counted = self.fars.iter().filter(|far| far.role == DestinationRole::Counted);
        counted.clone().all(|far| far.was_removed)
            || counted.any(|far| far.was_rolled_back || has(far))
    }
}

fn name(at: usize) -> String {
    format!("centre-{at}")
}

fn declared(fars: &[Far], since: Since) -> Vec<Option<SpoolDestination>> {
    let of = |(at, far): (usize, &Far)| SpoolDestination { name: name(at), role: far.role, since };
    fars.iter().enumerate().map(|one| one.1.is_declared.then(|| of(one))).collect()
}

fn troubles(rng: &mut ChaCha8Rng, centres: usize) -> BTreeMap<Instant, Trouble> {
    let mut troubles = BTreeMap::new();
    for _ in 0..rng.random_range(0..14) {
        let at = Instant::ZERO + Duration::from_micros(rng.random_range(0..PASS.as_micros()));
        let end = rng.random_range(0..=centres);
        let of = rng.random_range(0..centres);
        let trouble = match rng.random_range(0..12) {
            0 | 1 => Trouble::Power(end, rng.random()),
            2 => Trouble::Kill(end),
            3 => Trouble::Fault(end, rng.random_range(0..30)),
            4..7 => Trouble::Cut(of, millis(rng.random_range(1..9_000))),
            7 => {
                troubles.insert(at + millis(rng.random_range(1..3_000)), Trouble::RollBack(of));
                Trouble::Backup(of)
            }
            8 => {
                let since = if rng.random() { Since::Now } else { Since::Kept };
                troubles.insert(at + millis(rng.random_range(1..4_000)), Trouble::Add(of, since));
                Trouble::Remove(of)
            }
            _ => {
                troubles.insert(at + millis(rng.random_range(1..4_000)), Trouble::Room(end));
                Trouble::Full(end, ByteCount::new(rng.random_range(0..6_000)))
            }
        };
        troubles.insert(at, trouble);
    }
    troubles
}
