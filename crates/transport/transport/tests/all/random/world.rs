//! Two sessions, their applications and the lines between them; what must hold is checked after
//! every step.

mod side;

use super::case::{Case, Setup, Step, Wanted};
use super::chance::Chance;
use super::line::Line;
use super::settings::config;
use bytes::Bytes;
use side::content;
use skyhaul_transport::{
    Block, BlockId, Custody, Event, FlowId, Held, Mode, Opening, Outcome, PathId, Received, Resume,
    SendError, Seq, Session, give_out, take_in,
};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// A block that an application made.
#[derive(Debug, Clone, Copy)]
struct Made {
    serial: u64,
    wanted: Wanted,
}

/// A block handed over in the present session.
#[derive(Debug)]
struct Given {
    made: Made,
    may_fail: bool,
    outcome: Option<Outcome>,
    received: bool,
}

struct Side {
    session: Session,
    /// What the application keeps over restarts, by durable flow; never freed.
    durable: BTreeMap<u32, Vec<Made>>,
    /// Blocks that wait for room, and the places of durable ones.
    waiting: VecDeque<Made>,
    given: BTreeMap<BlockId, Given>,
    order: Vec<BlockId>,
    /// Durable blocks received, over all sessions.
    stored: BTreeMap<u32, u64>,
    /// The place of the last reliable block received, by loose flow.
    last: BTreeMap<FlowId, Seq>,
    greeted: bool,
    holds: bool,
    kept: Vec<usize>,
    custody: BTreeMap<FlowId, Seq>,
    received: u64,
    settled: u64,
}

/// What a run did.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    pub delivered: u64,
    pub expired: u64,
    pub cancelled: u64,
    pub sessions: u64,
    pub stalls: u64,
    pub recovered: u64,
    /// Most that an end held, in bytes.
    pub memory: u64,
}

pub struct World {
    setup: Setup,
    now: Instant,
    chance: Chance,
    sides: [Side; 2],
    lines: BTreeMap<u8, Line>,
    next_path: u8,
    epoch: u32,
    serials: u64,
    /// Wake-ups for nothing since some moment.
    idle: (Instant, u64),
    summary: Summary,
}

/// As a session manager does: what was due and is still there waits for its path.
const WAITING: Duration = Duration::from_millis(20);
/// Wake-ups of both ends together in a second that neither sent, nor brought, nor told anything.
const IDLE_MAX: u64 = 300;
/// How long clean lines may take to bring everything over.
const SETTLE: Duration = Duration::from_secs(240);
/// Flows from here on are loose: nobody keeps their blocks. A session each has its own hundred.
const LOOSE: u32 = 100;

impl World {
    pub fn run(case: &Case) -> Summary {
        let mut chance = Chance::new(case.seed ^ 0x5eed);
        let side = || Side::new(&case.setup);
        let mut world = Self {
            setup: case.setup.clone(),
            now: Instant::ZERO,
            sides: [side(), side()],
            lines: BTreeMap::new(),
            next_path: 0,
            epoch: 0,
            serials: 0,
            idle: (Instant::ZERO, 0),
            summary: Summary::default(),
            chance: chance.split(),
        };
        world.begin();
        for step in &case.steps {
            world.step(*step);
            world.pump();
        }
        world.settle();
        world.summary
    }

    /// A session anew, over all lines, from what each end has stored.
    fn begin(&mut self) {
        self.lines.clear();
        self.next_path = 0;
        self.summary.sessions += 1;
        for side in 0..2 {
            let old = &self.sides[side].session;
            self.summary.stalls +=
                old.paths().iter().map(|(_, path)| path.stats.stalls).sum::<u64>();
            self.summary.recovered += old.stats().received.symbols_recovered;
            let flows =
                self.sides[side].stored.iter().map(|(flow, next)| (FlowId(*flow), Seq(*next)));
            let open = flows.map(|(flow, next)| Held { flow, next, ..Held::default() }).collect();
            let resume = Resume { finished_below: FlowId(0), open };
            self.sides[side].renew(&self.setup, resume, self.epoch + 1);
        }
        for (config, options) in self.setup.lines.clone() {
            self.lines.insert(self.next_path, Line::new(config, &mut self.chance));
            for side in &mut self.sides {
                side.session.add_path(PathId(self.next_path), options);
            }
            self.next_path += 1;
        }
        self.epoch += 1;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(span) => {
                self.run_until(self.now + span, |_| false);
            }
            Step::Await(span) => {
                self.pump();
                let done = self.run_until(self.now + span, Self::is_settled);
                assert!(done, "not settled in {span}: {}", self.state());
            }
            Step::Send(side, wanted) => self.make(side, wanted),
            Step::Cancel(side, back) => self.cancel(side, back),
            Step::Pin(side, flow, path) => {
                let path = path.map(|path| PathId(self.some_path(path)));
                let flow = self.loose(flow);
                self.sides[side].session.sender_mut().pin(flow, path);
            }
            Step::AddPath(which) => self.add_path(which),
            Step::DropPath(which, side) => {
                let path = self.some_path(which);
                let alive = |line: &Line| line.ends.iter().all(|end| end.alive);
                if self.lines.values().filter(|line| alive(line)).count() > 1
                    && let Some(line) = self.lines.get_mut(&path).filter(|line| alive(line))
                {
                    line.leave(side, self.now);
                    self.sides[side].session.remove_path(PathId(path));
                }
            }
            Step::Cut(which, bits, span) => {
                let path = self.some_path(which);
                let sides: Vec<usize> = (0..2).filter(|side| bits & (1 << side) != 0).collect();
                if let Some(line) = self.lines.get_mut(&path) {
                    line.cut(&sides, self.now + span);
                }
            }
            Step::Faults(which, faults) => {
                let path = self.some_path(which);
                if let Some(line) = self.lines.get_mut(&path) {
                    line.set_faults(faults);
                }
            }
            Step::Hold(side, holds) => self.sides[side].hold(holds),
            Step::Receipts(side) => self.sides[side].receipts(),
            Step::Restart => self.begin(),
        }
        self.run_until(self.now + Duration::from_micros(1), |_| false);
    }

    fn some_path(&mut self, which: u64) -> u8 {
        (which % u64::from(self.next_path.max(1))) as u8
    }

    /// The number of a loose flow in this session.
    const fn loose(&self, flow: u32) -> FlowId {
        FlowId(LOOSE * self.epoch + flow)
    }

    fn add_path(&mut self, which: u64) {
        if self.next_path >= 12 {
            return;
        }
        let (config, options) = self.setup.lines[which as usize % self.setup.lines.len()];
        self.lines.insert(self.next_path, Line::new(config, &mut self.chance));
        for side in &mut self.sides {
            side.session.add_path(PathId(self.next_path), options);
        }
        self.next_path += 1;
    }

    fn make(&mut self, side: usize, wanted: Wanted) {
        self.serials += 1;
        let made = Made { serial: self.serials, wanted };
        if wanted.durable {
            self.sides[side].durable.entry(wanted.flow).or_default().push(made);
        }
        self.sides[side].waiting.push_back(made);
    }

    fn cancel(&mut self, side: usize, back: u64) {
        let side = &mut self.sides[side];
        let loose: Vec<BlockId> =
            side.order.iter().rev().filter(|id| id.flow.0 >= LOOSE).copied().collect();
        let Some(id) = loose.get(back as usize).copied() else { return };
        if let Some(given) = side.given.get_mut(&id) {
            given.may_fail = true;
        }
        side.spoil_dependents();
        let open = side.given.get(&id).is_some_and(|given| given.outcome.is_none());
        // What was given up as it was handed over may not have been told yet.
        assert!(!side.session.cancel(id) || open, "{id:?}");
    }

    /// Hands over what the sessions have room for.
    fn pump(&mut self) {
        for side in 0..2 {
            let epoch = self.epoch;
            while let Some(made) = self.sides[side].waiting.front().copied() {
                if !self.sides[side].hand_over(self.now, made, epoch) {
                    break;
                }
                self.sides[side].waiting.pop_front();
            }
        }
    }

    /// Everything is mended: everything must come over, and both ends fall silent.
    fn settle(&mut self) {
        self.lines.values_mut().for_each(Line::clear);
        let flows: Vec<FlowId> = (0..3).map(|flow| self.loose(flow)).collect();
        for side in &mut self.sides {
            side.hold(false);
            flows.iter().for_each(|flow| side.session.sender_mut().pin(*flow, None));
        }
        let limit = self.now + SETTLE;
        let done = self.run_until(limit, Self::is_settled);
        assert!(done, "not all settled: {}", self.state());
        for side in &mut self.sides {
            side.receipts();
        }
        let quiet = self.run_until(self.now + Duration::from_secs(60), |world| {
            (0..2).all(|side| world.sides[side].is_quiet(&world.sides[1 - side]))
        });
        assert!(quiet, "not quiet: {}", self.state());
        for side in 0..2 {
            for (id, given) in &self.sides[side].given {
                let must = !given.may_fail && !given.made.wanted.expendable;
                assert!(given.received || !must, "{id:?} did not arrive");
                assert!(given.received || given.outcome != Some(Outcome::Delivered), "{id:?}");
                match given.outcome {
                    Some(Outcome::Delivered) => self.summary.delivered += 1,
                    Some(Outcome::Expired) => self.summary.expired += 1,
                    Some(Outcome::Cancelled) => self.summary.cancelled += 1,
                    Some(Outcome::Sent) | None => panic!("{id:?} has no outcome of a session"),
                }
            }
            for (flow, blocks) in &self.sides[side].durable {
                let stored = self.sides[1 - side].stored.get(flow).copied().unwrap_or(0);
                assert_eq!(stored, blocks.len() as u64, "durable flow {flow} of end {side}");
            }
            let old = &self.sides[side].session;
            self.summary.stalls +=
                old.paths().iter().map(|(_, path)| path.stats.stalls).sum::<u64>();
            self.summary.recovered += old.stats().received.symbols_recovered;
        }
    }

    fn is_settled(&mut self) -> bool {
        let settled = |side: &Side| side.settled == side.order.len() as u64;
        self.sides.iter().all(|side| side.greeted && side.waiting.is_empty() && settled(side))
    }

    fn state(&self) -> String {
        let open = |side: &Side| {
            let given = side.given.iter().filter(|(_, given)| given.outcome.is_none());
            given
                .map(|(id, given)| (*id, given.made.wanted.len, given.received))
                .take(8)
                .collect::<Vec<_>>()
        };
        self.sides
            .iter()
            .map(|side| {
                format!(
                    "\n{:?}\nwaiting {} open {:?}\ntime-out {:?} now {} paths {:?}",
                    side.session.stats(),
                    side.waiting.len(),
                    open(side),
                    side.session.next_timeout(),
                    self.now,
                    side.session
                        .paths()
                        .iter()
                        .map(|(id, path)| (id, path.state))
                        .collect::<Vec<_>>(),
                )
            })
            .collect()
    }

    /// Runs until `done`, or `limit`; whether it was `done`.
    fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            let before = self.activity();
            for side in 0..2 {
                self.serve(side);
            }
            self.lines.values_mut().for_each(Line::exchange);
            self.pump();
            let active = self.activity() != before;
            self.count_idle(active);
            if done(self) {
                return true;
            }
            let next = self.next_wake().unwrap_or(limit);
            assert!(next > self.now, "time stands still: {}", self.state());
            if next >= limit {
                self.now = limit;
                return done(self);
            }
            self.now = next;
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let mut wakes = Vec::new();
        for (index, side) in self.sides.iter().enumerate() {
            let due = side.session.next_timeout();
            wakes.extend(due.map(|due| if due <= self.now { self.now + WAITING } else { due }));
            let ends = || self.lines.values().map(|line| &line.ends[index]);
            wakes.extend(ends().filter_map(super::line::End::next_event));
            if side.session.has_symbol() || due.is_some_and(|due| due <= self.now) {
                wakes.extend(
                    ends()
                        .filter(|end| end.alive)
                        .map(super::line::End::free_at)
                        .filter(|at| *at > self.now),
                );
            }
        }
        wakes.into_iter().min()
    }

    /// Counts what happens.
    fn activity(&self) -> u64 {
        let sent = self.lines.values().flat_map(|line| &line.ends).map(|end| end.sent).sum::<u64>();
        let ends = self.sides.iter().map(|side| {
            let stats = side.session.stats();
            side.received
                + side.settled
                + stats.received.symbols_received
                + stats.sent.symbols_lost
                + stats.sent.blocks_taken
        });
        sent + ends.sum::<u64>()
    }

    fn count_idle(&mut self, active: bool) {
        if self.now.since(self.idle.0) >= Duration::from_secs(1) {
            self.idle = (self.now, 0);
        }
        let arrives =
            self.lines.values().flat_map(|line| &line.ends).any(|end| end.next_event().is_some());
        if !active && !arrives {
            self.idle.1 += 1;
            assert!(self.idle.1 <= IDLE_MAX, "a storm of time-outs: {}", self.state());
        }
    }

    fn serve(&mut self, side: usize) {
        let now = self.now;
        let session = &mut self.sides[side].session;
        for (id, line) in &mut self.lines {
            let end = &mut line.ends[side];
            if end.alive {
                take_in(session, PathId(*id), end, now);
            }
        }
        session.handle_timeout(now);
        for id in session.paths().fill_order() {
            if let Some(end) =
                self.lines.get_mut(&id.0).map(|line| &mut line.ends[side]).filter(|end| end.alive)
            {
                give_out(session, id, end, now);
            }
        }
        assert_eq!(session.control_mut().wants_close(), None);
        while let Some(event) = self.sides[side].session.poll() {
            self.event(side, event);
        }
        let held = self.sides[side].check(&self.setup);
        self.summary.memory = self.summary.memory.max(held);
    }

    fn event(&mut self, side: usize, event: Event) {
        match event {
            Event::Block(received) => self.received(side, &received),
            Event::Settled { id, outcome } => self.sides[side].settled(id, outcome),
            Event::Custody { flow, next } => {
                let stored = self.sides[1 - side].stored.get(&flow.0).copied().unwrap_or(0);
                assert!(
                    next.0 <= stored,
                    "a receipt for {next:?} of {flow:?}, of which {stored} are stored"
                );
                // One that went over a path left meanwhile may come late.
                let known = self.sides[side].custody.entry(flow).or_default();
                *known = next.max(*known);
            }
            Event::PathDown(path, _) => {
                if let Some(line) = self.lines.get_mut(&path.0) {
                    line.ends[side].alive = false;
                }
            }
            Event::Greeted { custody, .. } => {
                self.sides[side].greeted(&custody.unwrap_or_default().resume);
            }
            Event::Application { .. } | Event::PathUp(_) | Event::PathResized(_) => {}
            Event::PathStalled(_) | Event::PathBack(_) => {}
            Event::Closed(reason) => panic!("closed: {reason}"),
        }
    }

    fn received(&mut self, side: usize, received: &Received) {
        let id = received.id;
        let [left, right] = &mut self.sides;
        let (me, peer) = if side == 0 { (left, right) } else { (right, left) };
        let given = peer.given.get_mut(&id);
        let Some(given) = given else { panic!("{id:?} was never sent") };
        assert!(!given.received, "{id:?} came twice");
        given.received = true;
        assert!(received.bytes == content(given.made), "{id:?} has other bytes");
        me.received += 1;
        if given.made.wanted.durable {
            let next = me.stored.entry(id.flow.0).or_default();
            assert_eq!(id.seq.0, *next, "{id:?} out of order");
            *next += 1;
        } else if !given.made.wanted.expendable {
            let last = me.last.insert(id.flow, id.seq);
            assert!(last.is_none_or(|last| last < id.seq), "{id:?} after {last:?}");
        }
        if me.holds {
            me.kept.push(received.bytes.len());
        } else {
            me.session.release(received.bytes.len());
        }
    }
}
