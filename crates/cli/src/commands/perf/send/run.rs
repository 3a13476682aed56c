//! A run as the sender's service sees it.
//!
//! ```text
//!   Calling ── greeted ──► Asking ── answers ──► Sending ── planned amount ──► Draining ── all reported ──► Ending
//!      │                                                                                                      │
//!      └────────── refused, or cut off in any state ──► over: failed            over: report ◄── found ───────┘
//! ```

use crate::commands::perf::clock::Comparison;
use crate::commands::perf::message::{DATA, Found, Message, heard, say};
use crate::commands::perf::report::{Blocks, Cpu, Losses, Path, Report, rate_text};
use crate::commands::perf::source::{STAMP, Source};
use crate::commands::perf::{NAME, cpu_seconds};
use crate::failure::{Exit, Failure};
use skyhaul_net::{Clock, Service};
use skyhaul_quic::{Engine, EngineEvent, Fingerprint, Refusal, SessionId};
use skyhaul_transport::{Block, Event, Opening, Session, Stats, cost};
use skyhaul_units::{Bytes, Duration, Instant, Rate, Utc};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be sent, and to whom.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// This end.
    pub local: SocketAddr,
    /// The serving end.
    pub remote: SocketAddr,
    /// Its key.
    pub peer: Fingerprint,
    /// Bytes of a block.
    pub block: usize,
    /// How long to hand over blocks, unless `bytes` says how much.
    pub duration: Duration,
    /// How much to hand over.
    pub bytes: Option<Bytes>,
}

/// Runs the plan.
pub struct Sender<'a> {
    plan: Plan,
    clock: Clock,
    stop: &'a AtomicBool,
    connection: Option<SessionId>,
    state: State,
    comparison: Comparison,
    source: Source,
    handed: u64,
    talk_bytes: u64,
    tally: Tally,
    outcome: Option<Result<Report, Failure>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until the far end has introduced itself.
    Calling {
        until: Instant,
    },
    /// Comparing clocks; `asked` is when the last question left.
    Asking {
        number: u32,
        asked: Instant,
    },
    Sending,
    /// All is handed over.
    Draining,
    /// All is acknowledged; the far end's figures are awaited.
    Ending {
        until: Instant,
    },
}

/// Figures of the run so far.
#[derive(Debug, Default)]
struct Tally {
    began: Instant,
    cpu_at_begin: f64,
    /// Bytes of blocks acknowledged.
    bytes: u64,
    /// When that grew last.
    grew: Instant,
    stats: Stats,
    line_due: Instant,
    line_bytes: u64,
    path: Option<Path>,
}

impl<'a> Sender<'a> {
    /// A run of `plan` that sets `stop` when it is over.
    pub fn new(plan: Plan, clock: Clock, stop: &'a AtomicBool) -> Self {
        Self {
            source: Source::new(plan.block, KEPT.as_usize() / plan.block),
            plan,
            clock,
            stop,
            connection: None,
            state: State::Calling { until: Instant::FAR_FUTURE },
            comparison: Comparison::default(),
            handed: 0,
            talk_bytes: 0,
            tally: Tally::default(),
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
            Err(Failure::new(Exit::Interrupted, "interrupted before there was a result", help))
        })
    }

    fn over(&mut self, outcome: Result<Report, Failure>) {
        self.outcome.get_or_insert(outcome);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn fail(&mut self, what: &str, help: &str) {
        let failure = Failure::new(Exit::Peer, what, help).at(&self.plan.remote.to_string());
        self.over(Err(failure));
    }

    fn refused(&mut self, sentence: &str) {
        let place = self.plan.remote.to_string();
        self.over(Err(Failure::from_sentence(Exit::Peer, sentence).at(&place)));
    }

    fn session_event(&mut self, now: Instant, session: &mut Session, event: Event) {
        match event {
            Event::Greeted { .. } => {
                self.state = State::Asking { number: 0, asked: now };
                self.say(now, session, &Message::Ask { number: 0 });
            }
            Event::Block(received) => {
                session.release(received.bytes.len());
                match heard(&received.bytes) {
                    Some(message) => self.heard(now, session, message),
                    None => self.fail("the far end says what no serving end says", "compare the releases"),
                }
            }
            Event::Custody { .. } | Event::Settled { .. } | Event::PathUp(_) => {}
            Event::PathStalled(_) | Event::PathBack(_) | Event::PathDown(..) => {}
            Event::Closed(reason) => self.fail(&reason.to_string(), "see what the serving end says"),
        }
    }

    fn heard(&mut self, now: Instant, session: &mut Session, message: Message) {
        match (self.state, message) {
            (State::Asking { number, asked }, Message::Time { number: of, utc_ns }) if number == of => {
                let theirs = Utc::from_nanos(utc_ns);
                self.comparison.answer(asked, (now, self.clock.utc_of(now)), theirs);
                if self.comparison.answers() < QUESTIONS {
                    self.state = State::Asking { number: number + 1, asked: now };
                    self.say(now, session, &Message::Ask { number: number + 1 });
                } else {
                    self.begin(now, session);
                }
            }
            (State::Ending { .. }, Message::Found(found)) => self.found(&found),
            _ => {}
        }
    }

    fn say(&mut self, now: Instant, session: &mut Session, message: &Message) {
        let block = say(message);
        self.talk_bytes += block.bytes.len() as u64;
        if let Err(error) = session.send(now, block) {
            self.fail(&error.to_string(), "start both ends again");
        }
    }

    fn begin(&mut self, now: Instant, session: &mut Session) {
        self.say(now, session, &Message::Begin { clock_ahead_ns: self.comparison.ahead_nanos() });
        self.state = State::Sending;
        self.tally = Tally {
            began: now,
            cpu_at_begin: cpu_seconds(),
            grew: now,
            line_due: now + SECOND,
            ..Tally::default()
        };
    }

    /// Hands over blocks while the session has nothing to send: what waits in it longer only grows older. Returns
    /// whether some were.
    fn feed(&mut self, now: Instant, session: &mut Session, rate: Rate) -> bool {
        if session.has_symbol() {
            return false;
        }
        let ahead = (rate * AHEAD).as_u64() / self.plan.block as u64;
        for _ in 0..ahead.clamp(1, AT_ONCE) {
            let left = match self.plan.bytes {
                Some(bytes) => bytes.as_u64().saturating_sub(self.handed),
                None if now.since(self.tally.began) >= self.plan.duration => 0,
                None => u64::MAX,
            };
            if left == 0 {
                self.state = State::Draining;
                break;
            }
            let size = self.plan.block.min(usize::try_from(left).unwrap_or(usize::MAX)).max(STAMP);
            if session.room() < Bytes::new(cost(size)) {
                return false;
            }
            let block = Block::reliable(DATA, self.source.block(self.clock.utc(), size));
            if let Err(error) = session.send(now, block) {
                self.fail(&error.to_string(), "give a smaller --block");
                return false;
            }
            self.handed += size as u64;
        }
        true
    }

    /// Looks at the figures; says a line a second.
    fn count(&mut self, now: Instant, id: SessionId, engine: &mut Engine) {
        let Some(stats) = engine.session(id).map(|session| session.stats()) else { return };
        let bytes = stats.bytes_reported.saturating_sub(self.talk_bytes);
        if bytes > self.tally.bytes {
            self.tally.bytes = bytes;
            self.tally.grew = now;
        }
        self.tally.stats = stats;
        if now < self.tally.line_due {
            return;
        }
        let Some(estimate) = engine.estimate(id) else { return };
        let span = SECOND + now.since(self.tally.line_due);
        let grown = Bytes::new(self.tally.bytes - self.tally.line_bytes);
        // Standard error may be closed; the result comes all the same.
        let _ = writeln!(
            std::io::stderr(),
            "{:>6.1} s  {:>16}  rtt {:.1} ms  loss {:.3} %  {} symbols repeated",
            now.since(self.tally.began).as_secs_f64(),
            rate_text(Rate::over(grown, span).as_bps()),
            estimate.rtt.as_secs_f64() * 1e3,
            estimate.loss.as_f64() * 100.0,
            stats.symbols_repeated,
        );
        self.tally.line_bytes = self.tally.bytes;
        self.tally.line_due = now + SECOND;
    }

    fn see_path(&mut self, id: SessionId, engine: &mut Engine) {
        let Some(estimate) = engine.estimate(id) else { return };
        let stats = &self.tally.stats;
        self.tally.path = Some(Path {
            local: self.plan.local,
            remote: self.plan.remote,
            goodput_bps: self.goodput().as_bps(),
            rtt_s: estimate.rtt.as_secs_f64(),
            loss: estimate.loss.as_f64(),
            repair_sent: stats.symbols_repeated,
            repair_used: stats.symbols_repeated,
        });
    }

    fn goodput(&self) -> Rate {
        Rate::over(Bytes::new(self.tally.bytes), self.tally.grew.since(self.tally.began))
    }

    fn found(&mut self, found: &Found) {
        let tally = &self.tally;
        let mut report = Report {
            goodput_bps: self.goodput().as_bps(),
            bytes: tally.bytes,
            seconds: tally.grew.since(tally.began).as_secs_f64(),
            latency_s: found.latency_s,
            blocks: Blocks::default(),
            cpu_s: Cpu { send: cpu_seconds() - tally.cpu_at_begin, receive: 0.0 },
            paths: tally.path.clone().into_iter().collect(),
            losses: Losses { path: tally.stats.symbols_lost, ..Losses::default() },
        };
        report.found(found);
        for path in &mut report.paths {
            path.repair_used = path.repair_sent.saturating_sub(found.symbols_duplicate);
        }
        self.over(Ok(report));
    }

    /// What the state asks for next. Returns when to come again.
    fn advance(&mut self, now: Instant, id: SessionId, engine: &mut Engine) -> Option<Instant> {
        let rate = engine.estimate(id).map_or(Rate::ZERO, |estimate| estimate.rate);
        let session = engine.session(id)?;
        match self.state {
            State::Calling { until } | State::Ending { until } if now >= until => {
                self.fail("the far end does not answer any more", "see what the serving end says");
                None
            }
            State::Calling { until } | State::Ending { until } => Some(until),
            State::Asking { .. } => None,
            State::Sending => {
                let fed = self.feed(now, session, rate);
                Some(if fed { now } else { self.tally.line_due })
            }
            State::Draining if self.tally.stats.blocks_reported == self.tally.stats.blocks_taken => {
                self.say(now, session, &Message::End);
                self.state = State::Ending { until: now + PATIENCE };
                self.see_path(id, engine);
                Some(now)
            }
            State::Draining => Some(self.tally.line_due),
        }
    }
}

impl Service for Sender<'_> {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, .. } => {
                if let Some(session) = engine.session(id) {
                    session.open(Opening { name: NAME.to_owned(), ..Opening::default() });
                }
            }
            EngineEvent::Session { id, event } => {
                if let Some(session) = engine.session(id) {
                    self.session_event(now, session, event);
                }
            }
            EngineEvent::PathRefused { .. } => {}
            EngineEvent::Disconnected { reason, .. } => {
                self.fail(&format!("the line is down ({reason})"), "see what the serving end says");
            }
            EngineEvent::Refused { reason, .. } => self.refused(&reason.to_string()),
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        let Some(id) = self.connection else {
            match engine.connect(now, self.plan.remote, self.plan.peer) {
                Ok(id) => self.connection = Some(id),
                Err(error) => self.over(Err(Failure::from_sentence(Exit::Usage, &error.to_string()))),
            }
            self.state = State::Calling { until: now + PATIENCE };
            return Some(now);
        };
        if matches!(self.state, State::Calling { until } if now >= until) {
            self.refused(&Refusal::NoAnswer.to_string());
            return None;
        }
        if matches!(self.state, State::Sending | State::Draining) {
            self.count(now, id, engine);
        }
        self.advance(now, id, engine)
    }
}

/// Between two lines.
const SECOND: Duration = Duration::from_secs(1);

/// For an answer to a call or to the last message: at 660 ms and 15 % loss one call in a hundred takes 10 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// Clocks are compared so often: the first answer still holds the handshake's work.
const QUESTIONS: u32 = 4;

/// How far ahead blocks are handed over: as long as a wait of the sending thread.
const AHEAD: Duration = Duration::from_millis(4);

/// Blocks handed over at once, however small they are.
const AT_ONCE: u64 = 64;

/// Buffers kept for use again; more under way than this are made anew.
const KEPT: Bytes = Bytes::mib(64);
