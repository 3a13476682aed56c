//! A run as the sender's service sees it.
//!
//! ```text
//!   Calling ── greeted ──► Asking ── answers ──► Sending ── planned amount ──► Draining ── all reported ──► Ending
//!      │                                                                                                      │
//!      └────────── refused, or cut off in any state ──► over: failed            over: report ◄── found ───────┘
//! ```

use super::share::{Next, Shares, place};
use super::tally::SendTally;
use super::{AddressPair, PathTransport};
use crate::commands::perf::NAME;
use crate::commands::perf::clock::ClockComparison;
use crate::commands::perf::message::{DATA, Message, ReceiverResult, heard, say};
use crate::commands::perf::report::{ControlSummary, Report};
use crate::commands::perf::source::{BlockSource, STAMP};
use crate::failure::{Exit, Failure};
use skyhaul_net::SessionManager;
use skyhaul_net::{Clock, Service};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_sessions::{SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{
    Block, ClassId, Event, Opening, PathOptions, PathState, PolicyConfig, Session, cost,
};
use skyhaul_units::{ByteCount, Duration, Instant, Rate, Utc};
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be sent, and to whom.
#[derive(Debug, Clone)]
pub struct SendPlan {
    /// The paths, at least one, in the order of the sockets.
    pub paths: Vec<AddressPair>,
    /// Endpoints over UDP; those over TCP, one a path, follow.
    pub over_udp: usize,
    /// What the paths go over.
    pub transport: PathTransport,
    /// The serving end's key.
    pub peer: Fingerprint,
    /// Bytes of a block.
    pub block: usize,
    /// How long to hand over blocks, unless `bytes` says how much.
    pub duration: Duration,
    /// How much to hand over.
    pub bytes: Option<ByteCount>,
    /// How long a block is worth anything.
    pub deadline: Option<Duration>,
    /// How fast to hand over; as fast as it goes where nothing is said.
    pub offer: Option<Rate>,
    /// The rate control, for the report.
    pub control: ControlSummary,
    /// Several senders, each under a class of its own.
    pub shares: Option<Shares>,
    /// How long acknowledgements are awaited after the last block was handed over; without a bound
    /// where nothing is said.
    pub patience: Option<Duration>,
}

impl SendPlan {
    /// What an endpoint goes over, and the ends of its path.
    pub fn way(&self, endpoint: usize) -> Option<(&'static str, AddressPair)> {
        match endpoint.checked_sub(self.over_udp) {
            None => Some(("udp", *self.paths.get(endpoint)?)),
            Some(place) => {
                let pair = self.paths.get(place)?;
                // Each connection over TCP has a port of its own.
                let local = (pair.local.ip(), 0).into();
                Some(("tcp", AddressPair { local, ..*pair }))
            }
        }
    }

    /// The first endpoint over `kind`.
    const fn first(&self, kind: PathTransport) -> usize {
        match kind {
            PathTransport::Udp | PathTransport::Auto => 0,
            PathTransport::Tcp => self.over_udp,
        }
    }
}

/// A session that is called for, and the first of its paths' endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    id: SessionId,
    first: usize,
}

/// Runs the plan.
pub struct PlanRunner<'a> {
    plan: SendPlan,
    clock: Clock,
    stop: &'a AtomicBool,
    /// At most one over each kind; one that stands is alone.
    calls: Vec<Call>,
    /// When the other kind is called too.
    fall_back_at: Option<Instant>,
    state: State,
    comparison: ClockComparison,
    source: BlockSource,
    tally: SendTally,
    /// When the line after the last look at the paths is due.
    seen: Instant,
    outcome: Option<Result<Report, Failure>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until the far end has introduced itself and all paths are up.
    Calling {
        until: Instant,
    },
    /// Comparing clocks; `asked` is when the last question left.
    Asking {
        number: u32,
        asked: Instant,
        until: Instant,
    },
    Sending,
    /// All is handed over.
    Draining {
        until: Option<Instant>,
    },
    /// All is acknowledged; the far end's figures are awaited.
    Ending {
        until: Instant,
    },
}

impl<'a> PlanRunner<'a> {
    /// A run of `plan` that sets `stop` when it is over.
    pub fn new(plan: SendPlan, clock: Clock, stop: &'a AtomicBool) -> Self {
        Self {
            source: BlockSource::new(plan.block, KEPT.as_usize() / plan.block),
            plan,
            clock,
            stop,
            calls: Vec::new(),
            fall_back_at: None,
            state: State::Calling { until: Instant::FAR_FUTURE },
            comparison: ClockComparison::default(),
            tally: SendTally::default(),
            seen: Instant::ZERO,
            outcome: None,
        }
    }

    /// The report.
    ///
    /// # Errors
    /// The run failed, or was stopped before its end.
    pub fn finish(self) -> Result<Report, Failure> {
        self.outcome.unwrap_or_else(|| {
            let help = "let it run to its end, or give a shorter --duration";
            Err(Failure::new(Exit::Interrupted, "interrupted before a result", help))
        })
    }

    fn over(&mut self, outcome: Result<Report, Failure>) {
        self.outcome.get_or_insert(outcome);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn fail(&mut self, what: &str, help: &str) {
        let failure =
            Failure::new(Exit::Peer, what, help).at(&self.plan.paths[0].remote.to_string());
        self.over(Err(failure));
    }

    fn refused(&mut self, sentence: &str) {
        let place = self.plan.paths[0].remote.to_string();
        self.over(Err(Failure::from_sentence(Exit::Peer, sentence).at(&place)));
    }

    fn session_event(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
        event: Event,
    ) {
        match event {
            Event::Greeted { .. } => self.join(now, id, manager),
            Event::Block(received) => {
                if let Some(session) = manager.session(id) {
                    session.release(received.bytes.len());
                }
                match heard(&received.bytes) {
                    Some(message) => self.heard(now, id, manager, &message),
                    None => {
                        self.fail(
                            "the far end is not a measuring receiver",
                            "compare the releases",
                        );
                    }
                }
            }
            Event::Settled { id, outcome } if place(id.flow).is_some() => {
                if let Some(shares) = &mut self.plan.shares {
                    shares.settled(id.flow, self.plan.block);
                }
                self.tally.settled(now, (id.seq, outcome), self.plan.block);
            }
            Event::PathDown(_, reason) => {
                self.lost(now, &format!("path down ({reason})"));
            }
            Event::Closed(reason) => self.lost(now, &reason.to_string()),
            Event::Custody { .. } | Event::Settled { .. } | Event::PathUp(_) => {}
            Event::Application { .. } | Event::PathResized(_) => {}
            Event::PathStalled(_) | Event::PathBack(_) => {}
        }
    }

    /// Calls for the paths after the first.
    fn join(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager) {
        for index in 1..self.plan.paths.len() {
            let first = self.calls.first().map_or(0, |call| call.first);
            let way = (SocketId(first + index), self.plan.paths[index].remote);
            if let Err(error) = manager.join(now, id, way, PathOptions::default()) {
                self.over(Err(Failure::from_sentence(Exit::Usage, &error.to_string())));
            }
        }
    }

    fn heard(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
        message: &Message,
    ) {
        match (self.state, message) {
            (State::Asking { number, asked, .. }, Message::Time { number: of, utc_ns })
                if number == *of =>
            {
                self.comparison.answer(
                    asked,
                    (now, self.clock.utc_of(now)),
                    Utc::from_nanos(*utc_ns),
                );
                if self.comparison.answers() < QUESTIONS {
                    return self.ask(now, id, manager, number + 1);
                }
                let courses = self.plan.shares.as_ref().map_or(0, Shares::count);
                let clock_ahead_ns = self.comparison.ahead_nanos();
                self.say(now, id, manager, &Message::Begin { clock_ahead_ns, courses });
                self.state = State::Sending;
                self.tally = SendTally::begin(now, id, manager);
            }
            (State::Ending { .. }, Message::Found(found)) => {
                self.over(Ok(self.tally.report(found, &self.plan)));
            }
            _ => {}
        }
    }

    fn ask(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager, number: u32) {
        self.state = State::Asking { number, asked: now, until: now + PATIENCE };
        self.say(now, id, manager, &Message::Ask { number });
    }

    fn say(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
        message: &Message,
    ) {
        let Some(session) = manager.session(id) else { return };
        if let Err(error) = session.send(now, say(message)) {
            self.fail(&error.to_string(), "start both ends again");
        }
    }

    /// Hands over blocks, as many as keep the line busy. Returns when to come again: now where some
    /// were.
    fn feed(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        let ahead = self.ahead(now, session);
        for _ in 0..AT_ONCE {
            let left = self.left(now);
            if left == 0 {
                self.state =
                    State::Draining { until: self.plan.patience.map(|patience| now + patience) };
                return Some(now);
            }
            if let Some(due) = self.offered_at().filter(|due| *due > now) {
                return Some(due);
            }
            let size = self.plan.block.min(usize::try_from(left).unwrap_or(usize::MAX)).max(STAMP);
            let (flow, class) = match self.next(now, session, ahead) {
                Next::Block(flow, class) if session.room() >= ByteCount::new(cost(size)) => {
                    (flow, class)
                }
                Next::At(since) => return Some(self.tally.began + since),
                Next::Block(..) | Next::Wait => return None,
            };
            let bytes = self.source.block(self.clock.utc(), size);
            let block = match self.plan.deadline {
                Some(deadline) => Block::expendable(flow, deadline, bytes),
                None => Block::reliable(flow, bytes),
            };
            match session.send(now, Block { class, ..block }) {
                Ok(id) => {
                    self.tally.handed(id.seq, size, self.plan.block - size);
                    if let Some(shares) = &mut self.plan.shares {
                        shares.handed(flow, size);
                    }
                }
                Err(error) => {
                    self.fail(&error.to_string(), "give a smaller --block");
                    return None;
                }
            }
        }
        Some(now)
    }

    /// Where the next block belongs. One sender alone is told by what the whole session holds,
    /// several each by its own.
    fn next(&self, now: Instant, session: &Session, ahead: u64) -> Next {
        // What the far end does not take now would lie here for as long as it takes.
        if session.is_held_back() {
            return Next::Wait;
        }
        match &self.plan.shares {
            Some(shares) => shares.next(now.since(self.tally.began), ahead),
            None if session.has_symbol() && session.stats().send_buffer >= ahead => Next::Wait,
            None => Next::Block(DATA, ClassId::default()),
        }
    }

    /// Bytes still to be handed over.
    fn left(&self, now: Instant) -> u64 {
        match self.plan.bytes {
            Some(bytes) => bytes.as_u64().saturating_sub(self.tally.bytes),
            None if now.since(self.tally.began) >= self.plan.duration => 0,
            None => u64::MAX,
        }
    }

    /// When the next block is due, where they are offered at a rate.
    fn offered_at(&self) -> Option<Instant> {
        let offer = self.plan.offer.filter(|offer| *offer > Rate::ZERO)?;
        Some(self.tally.began + offer.time_for(ByteCount::new(self.tally.bytes)))
    }

    /// What should be in the session: what is under way, until its report is back, and as much
    /// again. More would only grow older there. The slowest path is given what the faster ones will
    /// not be through with until it arrives: where less waits it is given nothing.
    fn ahead(&mut self, now: Instant, session: &Session) -> u64 {
        let longest = session.paths().map(|(_, path)| path.estimate.rtt).max().unwrap_or_default();
        let span = session.rtt().max(longest) * 2 + REPORTS * 2;
        let busy = self.tally.recent_rate(now) * span;
        busy.as_u64().max(AHEAD_MIN.as_u64()).max(8 * self.plan.block as u64)
    }

    /// What the state asks for next. Returns when to come again.
    fn advance(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
    ) -> Option<Instant> {
        match self.state {
            // A run that is not awaited is judged by what this end knows.
            State::Ending { until } if now >= until && self.plan.patience.is_some() => {
                self.over(Ok(self.tally.report(&ReceiverResult::default(), &self.plan)));
                None
            }
            State::Calling { until } | State::Ending { until } | State::Asking { until, .. }
                if now >= until =>
            {
                self.fail("the far end no longer answers", "check the output of the serving end");
                None
            }
            State::Calling { until } => {
                let session = manager.session(id)?;
                let up =
                    session.paths().filter(|(_, path)| path.state == PathState::Active).count();
                if session.is_open() && up == self.plan.paths.len() {
                    self.ask(now, id, manager, 0);
                }
                Some(until)
            }
            State::Ending { until } => Some(until),
            State::Asking { until, .. } => Some(until),
            State::Sending => {
                let line = self.line(now, id, manager)?;
                let session = manager.session(id)?;
                let due = self.feed(now, session);
                Some(due.map_or(line, |due| due.min(line)))
            }
            State::Draining { .. } if self.tally.is_complete() => {
                self.tally.see_paths(id, manager, &self.plan);
                let patience =
                    self.plan.patience.map_or(PATIENCE, |patience| patience.min(PATIENCE));
                self.state = State::Ending { until: now + patience };
                self.say(now, id, manager, &Message::End);
                Some(now)
            }
            State::Draining { until } => {
                if until.is_some_and(|until| now >= until) {
                    self.tally.cut(now);
                    return Some(now);
                }
                self.line(now, id, manager)
            }
        }
    }

    /// Says what there is to say while data goes. Returns when to come again.
    fn line(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
    ) -> Option<Instant> {
        let line = self.tally.line(now, id, manager);
        if self.plan.patience.is_some() && self.seen != line {
            // Once a second: should the line go down, this is what is known.
            self.seen = line;
            self.tally.see_paths(id, manager, &self.plan);
        }
        Some(self.tally.listen(now, manager.session(id)?).min(line))
    }

    /// The line is gone. A run that is not awaited has come to its end by that, where data was
    /// sent.
    fn lost(&mut self, now: Instant, what: &str) {
        let is_sending =
            matches!(self.state, State::Sending | State::Draining { .. } | State::Ending { .. });
        if self.plan.patience.is_some() && is_sending {
            self.tally.cut(now);
            return self.over(Ok(self.tally.report(&ReceiverResult::default(), &self.plan)));
        }
        self.fail(what, "check the output of the serving end");
    }
}

impl Service for PlanRunner<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        let is_called = |id: SessionId| self.calls.iter().any(|call| call.id == id);
        match event {
            SessionManagerEvent::Connected { id, .. } if is_called(id) => {
                self.connected(now, id, manager);
            }
            SessionManagerEvent::Session { id, event } if is_called(id) => {
                self.session_event(now, id, manager, event);
            }
            SessionManagerEvent::Disconnected { id, reason } if is_called(id) => {
                self.lost(now, &format!("the line is down ({reason})"));
            }
            SessionManagerEvent::Refused { id: Some(id), reason, .. } if is_called(id) => {
                self.calls.retain(|call| call.id != id);
                if self.fall_back_at.is_some() {
                    self.fall_back_at = Some(now);
                } else if self.calls.is_empty() {
                    self.refused(&reason.to_string());
                }
            }
            SessionManagerEvent::PathRefused { remote, reason, .. } => {
                let failure = Failure::from_sentence(Exit::Peer, &reason).at(&remote.to_string());
                self.over(Err(failure));
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if self.state == (State::Calling { until: Instant::FAR_FUTURE }) {
            self.state = State::Calling { until: now + PATIENCE };
            self.fall_back_at =
                (self.plan.transport == PathTransport::Auto).then_some(now + FALL_BACK);
            self.call(now, manager, self.plan.transport);
            return Some(now);
        }
        if self.fall_back_at.is_some_and(|at| at <= now) {
            self.fall_back_at = None;
            self.call(now, manager, PathTransport::Tcp);
        }
        let standing = self.calls.iter().find(|call| manager.session(call.id).is_some());
        let Some(id) = standing.map(|call| call.id) else {
            let State::Calling { until } = self.state else { return None };
            if now >= until {
                self.refused(&Refusal::NoAnswer.to_string());
                return None;
            }
            return Some(self.fall_back_at.map_or(until, |at| at.min(until)));
        };
        self.advance(now, id, manager)
    }
}

impl PlanRunner<'_> {
    fn call(&mut self, now: Instant, manager: &mut SessionManager, kind: PathTransport) {
        let first = self.plan.first(kind);
        match manager.connect_from(now, SocketId(first), self.plan.paths[0].remote, self.plan.peer)
        {
            Ok(id) => self.calls.push(Call { id, first }),
            Err(error) => self.over(Err(Failure::from_sentence(Exit::Usage, &error.to_string()))),
        }
    }

    /// The call that stands first is the one that counts.
    fn connected(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager) {
        self.fall_back_at = None;
        let (stays, others) =
            core::mem::take(&mut self.calls).into_iter().partition(|call| call.id == id);
        self.calls = stays;
        let others: Vec<Call> = others;
        for call in others {
            manager.close(now, call.id, "another connection was established first");
        }
        if let Some(session) = manager.session(id) {
            session.open(Opening { name: NAME.to_owned(), ..Opening::default() });
            if let Some(shares) = &self.plan.shares {
                session.share(shares.tree().clone(), PolicyConfig::default());
            }
        }
    }
}

/// UDP that brings no answer for so long may be blocked: at 660 ms and 10 % loss a call takes 2 s.
const FALL_BACK: Duration = Duration::from_secs(3);

/// For an answer to a call or to the last message: at 660 ms and 15 % loss one call in a hundred
/// takes 10 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// Clocks are compared so often: the first answer still holds the handshake's work.
const QUESTIONS: u32 = 4;

/// Between two of the far end's reports.
const REPORTS: Duration = Duration::from_millis(20);

/// In the session at least, so that the rate can grow: a round trip of 10 ms at 1 Gbit/s.
const AHEAD_MIN: ByteCount = ByteCount::mib(1);

/// Blocks handed over before datagrams have their turn.
const AT_ONCE: u64 = 64;

/// Buffers kept for use again; more under way than this are made anew.
const KEPT: ByteCount = ByteCount::mib(64);
