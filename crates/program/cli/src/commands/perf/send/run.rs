//! A run as the sender's service sees it.
//!
//! ```text
//!   Unstarted ─► Connecting ─ all paths up ─► Comparing ─ answers ─► Sending
//!                                              clocks                  │ planned amount
//!                                                                      ▼
//!        over: report ◄─ Found ─ AwaitingResult ◄─ each block ─ Draining
//!                                                  has an outcome
//!   A refusal, or a line that goes down in any state: over, failed
//! ```

use super::plan::SendPlan;
use super::share::{Next, Shares, place};
use super::tally::SendTally;
use crate::commands::perf::NAME;
use crate::commands::perf::clock::{ClockComparison, ClockReading};
use crate::commands::perf::message::{DATA, Message, ReceiverResult, heard, say};
use crate::commands::perf::report::Report;
use crate::commands::perf::source::{BlockSource, STAMP};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::SessionManager;
use skyhaul_net::{Clock, Service};
use skyhaul_quic::Refusal;
use skyhaul_sessions::{
    AfterFailure, DialAttempt, DialFailure, Dialler, PathTarget, SessionId, SessionManagerEvent,
    SocketId,
};
use skyhaul_transport::{
    Block, ClassId, Event, Opening, PathOptions, PathState, PolicyConfig, Session, cost,
};
use skyhaul_units::{ByteCount, Duration, Instant, Utc};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the plan.
pub struct PlanRunner<'a> {
    plan: SendPlan,
    clock: Clock,
    stop: &'a AtomicBool,
    dialler: Dialler<SessionId>,
    state: State,
    comparison: ClockComparison,
    source: BlockSource,
    tally: SendTally,
    /// When the progress line after the last note of the session is due.
    noted: Instant,
    outcome: Option<Result<Report, Failure>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The driver has not started, so there is no time to count from.
    Unstarted,
    /// Until the far end has introduced itself and all paths are up.
    Connecting {
        until: Instant,
    },
    /// `asked` is when the last question left.
    ComparingClocks {
        number: u32,
        asked: Instant,
        until: Instant,
    },
    Sending,
    /// All blocks are handed over.
    Draining {
        until: Option<Instant>,
    },
    /// Each block has an outcome; the far end's figures are awaited.
    AwaitingResult {
        until: Instant,
    },
}

impl<'a> PlanRunner<'a> {
    /// A run of `plan` that sets `stop` when it is over.
    pub fn new(plan: SendPlan, clock: Clock, stop: &'a AtomicBool) -> Self {
        Self {
            source: BlockSource::new(plan.load.block, KEPT.as_usize() / plan.load.block),
            plan,
            clock,
            stop,
            dialler: Dialler::default(),
            state: State::Unstarted,
            comparison: ClockComparison::default(),
            tally: SendTally::default(),
            noted: Instant::ZERO,
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
                            "install the same version at both ends",
                        );
                    }
                }
            }
            Event::Settled { id, outcome } if place(id.flow).is_some() => {
                if let Some(shares) = &mut self.plan.shares {
                    shares.settled(id.flow, self.plan.load.block);
                }
                self.tally.blocks.resolved(now, id.seq, outcome, self.plan.load.block);
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

    /// Adds the paths after the first.
    fn join(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager) {
        let first = self.dialler.attempt_of(id).map_or(0, |attempt| self.plan.first(attempt));
        for index in 1..self.plan.paths.len() {
            let socket = SocketId(first + index);
            let way = PathTarget { socket, remote: self.plan.paths[index].remote };
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
            (
                State::ComparingClocks { number, asked, .. },
                Message::Time { number: of, utc_ns },
            ) if number == *of => {
                let ours = ClockReading { at: now, utc: self.clock.utc_of(now) };
                self.comparison.answer(asked, ours, Utc::from_nanos(*utc_ns));
                if self.comparison.answers() < QUESTIONS {
                    return self.ask(now, id, manager, number + 1);
                }
                let courses = self.plan.shares.as_ref().map_or(0, Shares::count);
                let clock_ahead_ns = self.comparison.ahead_nanos();
                self.say(now, id, manager, &Message::Begin { clock_ahead_ns, courses });
                self.state = State::Sending;
                if let Some(session) = manager.session(id) {
                    self.tally = SendTally::begin(now, session);
                }
            }
            (State::AwaitingResult { .. }, Message::Found(found)) => {
                self.over(Ok(self.tally.report(found, &self.plan)));
            }
            _ => {}
        }
    }

    fn ask(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager, number: u32) {
        self.state = State::ComparingClocks { number, asked: now, until: now + PATIENCE };
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
            let handed_over = self.tally.blocks.handed_over_bytes();
            let left = self.plan.load.left(now.since(self.tally.began()), handed_over);
            if left == 0 {
                self.state =
                    State::Draining { until: self.plan.patience.map(|patience| now + patience) };
                return Some(now);
            }
            let due = self.plan.load.next_due(self.tally.began(), handed_over);
            if let Some(due) = due.filter(|due| *due > now) {
                return Some(due);
            }
            let load = self.plan.load;
            let size = load.block.min(usize::try_from(left).unwrap_or(usize::MAX)).max(STAMP);
            let (flow, class) = match self.next(now, session, ahead) {
                Next::Block(flow, class) if session.room() >= ByteCount::new(cost(size)) => {
                    (flow, class)
                }
                Next::At(since) => return Some(self.tally.began() + since),
                Next::Block(..) | Next::Wait => return None,
            };
            let bytes = self.source.block(self.clock.utc(), size);
            let block = match load.deadline {
                Some(deadline) => Block::expendable(flow, deadline, bytes),
                None => Block::reliable(flow, bytes),
            };
            match session.send(now, Block { class, ..block }) {
                Ok(id) => {
                    self.tally.blocks.handed_over(id.seq, size, load.block - size);
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

    /// The flow and class of the next block. A single sender is limited by the bytes that the
    /// session holds, several by their own bytes.
    fn next(&self, now: Instant, session: &Session, ahead: u64) -> Next {
        // Blocks that the far end does not accept now would only wait here.
        if session.sender().is_held_back() {
            return Next::Wait;
        }
        match &self.plan.shares {
            Some(shares) => shares.next(now.since(self.tally.began()), ahead),
            None if session.stats().sent.buffer >= ahead && !is_starved(session) => Next::Wait,
            None => Next::Block(DATA, ClassId::default()),
        }
    }

    /// Bytes that the session should hold: those under way until their report is back, and as many
    /// again. More would only add latency. With less, the slowest path would get nothing: the
    /// scheduler gives it only blocks that the faster paths would deliver later.
    fn ahead(&mut self, now: Instant, session: &Session) -> u64 {
        let longest =
            session.paths().iter().map(|(_, path)| path.estimate.rtt).max().unwrap_or_default();
        let span = session.paths().rtt().max(longest) * 2 + REPORTS * 2;
        let busy = self.tally.recent_rate(now) * span;
        busy.as_u64().max(AHEAD_MIN.as_u64()).max(8 * self.plan.load.block as u64)
    }

    /// What the state asks for next. Returns when to come again.
    fn advance(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
    ) -> Option<Instant> {
        match self.state {
            State::Unstarted => None,
            // A run that does not wait for the far end is reported by what this end knows.
            State::AwaitingResult { until } if now >= until && self.plan.patience.is_some() => {
                self.over(Ok(self.tally.report(&ReceiverResult::default(), &self.plan)));
                None
            }
            State::Connecting { until }
            | State::AwaitingResult { until }
            | State::ComparingClocks { until, .. }
                if now >= until =>
            {
                self.fail("the far end no longer answers", "check the output of the serving end");
                None
            }
            State::Connecting { until } => {
                let session = manager.session(id)?;
                let up = session
                    .paths()
                    .iter()
                    .filter(|(_, path)| path.state == PathState::Active)
                    .count();
                if session.is_open() && up == self.plan.paths.len() {
                    self.ask(now, id, manager, 0);
                }
                Some(until)
            }
            State::AwaitingResult { until } | State::ComparingClocks { until, .. } => Some(until),
            State::Sending => {
                let line = self.line(now, id, manager)?;
                let session = manager.session(id)?;
                let due = self.feed(now, session);
                Some(due.map_or(line, |due| due.min(line)))
            }
            State::Draining { .. } if self.tally.blocks.is_complete() => {
                self.tally.note_session(id, manager, &self.plan);
                let patience =
                    self.plan.patience.map_or(PATIENCE, |patience| patience.min(PATIENCE));
                self.state = State::AwaitingResult { until: now + patience };
                self.say(now, id, manager, &Message::End);
                Some(now)
            }
            State::Draining { until } => {
                if until.is_some_and(|until| now >= until) {
                    self.tally.blocks.cut(now);
                    return Some(now);
                }
                self.line(now, id, manager)
            }
        }
    }

    /// Prints progress and checks whether the far end answers. Returns when to do it again.
    fn line(
        &mut self,
        now: Instant,
        id: SessionId,
        manager: &mut SessionManager,
    ) -> Option<Instant> {
        let line = self.tally.line(now, manager.session(id));
        if self.plan.patience.is_some() && self.noted != line {
            // Once a second: if the line goes down, the report is made of this.
            self.noted = line;
            self.tally.note_session(id, manager, &self.plan);
        }
        Some(self.tally.listen(now, manager.session(id)?).min(line))
    }

    /// The line is down. A run that does not wait for the far end is over by that, if data was
    /// sent.
    fn lost(&mut self, now: Instant, what: &str) {
        let is_sending = matches!(
            self.state,
            State::Sending | State::Draining { .. } | State::AwaitingResult { .. }
        );
        if self.plan.patience.is_some() && is_sending {
            self.tally.blocks.cut(now);
            return self.over(Ok(self.tally.report(&ReceiverResult::default(), &self.plan)));
        }
        self.fail(what, "check the output of the serving end");
    }
}

impl Service for PlanRunner<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        let is_ours = |id: SessionId| self.dialler.attempt_of(id).is_some();
        match event {
            SessionManagerEvent::Connected { id, .. } if is_ours(id) => {
                self.connected(now, id, manager);
            }
            SessionManagerEvent::Session { id, event } if is_ours(id) => {
                self.session_event(now, id, manager, event);
            }
            SessionManagerEvent::Disconnected { id, reason } if is_ours(id) => {
                self.lost(now, &format!("the line is down ({reason})"));
            }
            SessionManagerEvent::Refused { id: Some(id), reason, .. } => {
                let Some(attempt) = self.dialler.attempt_of(id) else { return };
                // One more attempt costs little: no refusal decides for the other transport.
                let after = self.dialler.failed(now, attempt, DialFailure::Undecided);
                if after == AfterFailure::GiveUp {
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
        if self.state == State::Unstarted {
            self.state = State::Connecting { until: now + PATIENCE };
            self.dialler.start(now, self.plan.transport.dialling());
        }
        if let Some(attempt) = self.dialler.due(now) {
            self.connect(now, manager, attempt);
            return Some(now);
        }
        let connected = self.dialler.session().filter(|id| manager.session(*id).is_some());
        let Some(id) = connected else {
            let State::Connecting { until } = self.state else { return None };
            if now >= until {
                self.refused(&Refusal::NoAnswer.to_string());
                return None;
            }
            return Some(self.dialler.due_at().map_or(until, |at| at.min(until)));
        };
        self.advance(now, id, manager)
    }
}

impl PlanRunner<'_> {
    fn connect(&mut self, now: Instant, manager: &mut SessionManager, attempt: DialAttempt) {
        let (socket, remote) = (SocketId(self.plan.first(attempt)), self.plan.paths[0].remote);
        match manager.connect_from(now, socket, remote, self.plan.peer) {
            Ok(id) => self.dialler.begun(attempt, id),
            Err(error) => self.over(Err(Failure::from_sentence(Exit::Usage, &error.to_string()))),
        }
    }

    /// The first attempt that connects is used.
    fn connected(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager) {
        if let Some(other) = self.dialler.answered(id) {
            manager.close(now, other, "another connection was established first");
        }
        if let Some(session) = manager.session(id) {
            session.open(Opening { name: NAME.to_owned(), ..Opening::default() });
            if let Some(shares) = &self.plan.shares {
                session.sender_mut().share(shares.tree().clone(), PolicyConfig::default());
            }
        }
    }
}

/// For an answer to a connection attempt or to the last message: at 660 ms round trip and 15 % loss
/// one attempt in a hundred takes 10 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// Clocks are compared this often: the first answer is delayed by the handshake's work.
const QUESTIONS: u32 = 4;

/// Between two of the far end's reports.
const REPORTS: Duration = Duration::from_millis(20);

/// The session holds at least this much, so that the rate can grow: 10 ms at 1 Gbit/s.
const AHEAD_MIN: ByteCount = ByteCount::mib(1);

/// Blocks handed over before datagrams are sent.
const AT_ONCE: u64 = 64;

/// Buffers kept for reuse; if more are under way, they are allocated anew.
const KEPT: ByteCount = ByteCount::mib(64);

/// Whether a path has room and nothing to fill it. While no path is active nothing can be sent, and
/// what is handed over then would only wait: minutes' worth of it behind an outage of seconds.
fn is_starved(session: &Session) -> bool {
    let has_path = session.paths().iter().any(|(_, path)| path.state == PathState::Active);
    has_path && !session.has_symbol()
}
