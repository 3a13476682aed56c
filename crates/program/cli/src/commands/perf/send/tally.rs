//! Figures of a run: what was handed over, what became of it, what the paths did.

use super::course::Readings;
use crate::commands::perf::cpu_seconds;
use crate::commands::perf::message::ReceiverResult;
use crate::commands::perf::report::{
    Blocks, Busiest, ClassResult, ControlSummary, Cpu, HostShortage, LossPlaces, PathResult,
    Report, WaitSeconds,
};
use crate::commands::perf::send::run::SendPlan;
use crate::commands::rate::rate_text;
use skyhaul_net::SessionManager;
use skyhaul_probe::why::{Owes, SilenceDetector};
use skyhaul_probe_io::Processors;
use skyhaul_sessions::SessionId;
use skyhaul_transport::{Outcome, PathId, PathStats, Seq, Session, Stats, Waits};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeMap;
use std::io::Write;

/// The figures so far.
#[derive(Debug, Default)]
pub struct SendTally {
    /// Measurement began.
    pub began: Instant,
    cpu_at_begin: f64,
    paths_at_begin: BTreeMap<PathId, PathStats>,
    /// The largest symbol datagrams of each path.
    payloads_at_begin: BTreeMap<PathId, usize>,
    stats_at_begin: Stats,
    waits_at_begin: Waits,
    processors_at_begin: Processors,
    course: Readings,
    /// Blocks handed over.
    pub blocks: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// The place of the last block and what it lacks of a full one.
    short: Option<(Seq, u64)>,
    acknowledged: u64,
    expired: u64,
    delivered: ByteCount,
    /// When `delivered` grew last.
    grew: Instant,
    line_due: Instant,
    line_bytes: ByteCount,
    recent: Recent,
    paths: Vec<PathResult>,
    stats: Stats,
    waits: Waits,
    control: ControlSummary,
    /// How long the far end was not heard; `None` before the measurement.
    listener: Option<SilenceDetector>,
    /// All that were handed over are not awaited any more.
    is_cut: bool,
}

/// How fast blocks were acknowledged lately.
#[derive(Debug, Default)]
struct Recent {
    since: Instant,
    bytes: ByteCount,
    rate: Rate,
}

impl SendTally {
    /// Begins to count.
    pub fn begin(now: Instant, id: SessionId, manager: &mut SessionManager) -> Self {
        let session = manager.session(id);
        let paths: Vec<_> = session.iter().flat_map(|session| session.paths()).collect();
        Self {
            began: now,
            cpu_at_begin: cpu_seconds(),
            paths_at_begin: paths.iter().map(|(id, path)| (*id, path.stats)).collect(),
            payloads_at_begin: paths.iter().map(|(id, path)| (*id, path.payload)).collect(),
            stats_at_begin: manager.session(id).map(|session| session.stats()).unwrap_or_default(),
            waits_at_begin: manager.session(id).map(|session| session.waits()).unwrap_or_default(),
            processors_at_begin: Processors::now(),
            grew: now,
            line_due: now + SECOND,
            listener: manager.session(id).map(|session| SilenceDetector::new(now, trace(session))),
            recent: Recent { since: now, ..Recent::default() },
            ..Self::default()
        }
    }

    /// A block was handed over at place `seq`, shorter than others by `short`.
    pub fn handed(&mut self, seq: Seq, bytes: usize, short: usize) {
        self.blocks += 1;
        self.bytes += bytes as u64;
        if short > 0 {
            self.short = Some((seq, short as u64));
        }
    }

    /// A block of `full` bytes, but for the last one, came to its end.
    pub fn settled(&mut self, now: Instant, (seq, outcome): (Seq, Outcome), full: usize) {
        if outcome != Outcome::Delivered {
            self.expired += 1;
            return;
        }
        let short = self.short.filter(|(place, _)| *place == seq).map_or(0, |(_, short)| short);
        self.acknowledged += 1;
        self.delivered += ByteCount::new(full as u64 - short);
        self.grew = now;
    }

    /// Whether every block has come to its end, or those that have not are not awaited any more.
    pub const fn is_complete(&self) -> bool {
        self.is_cut || self.acknowledged + self.expired >= self.blocks
    }

    /// What is not acknowledged by now is not awaited: the run ends here.
    pub fn cut(&mut self, now: Instant) {
        if !self.is_complete() {
            (self.is_cut, self.grew) = (true, now);
        }
    }

    /// Looks whether the far end is heard. Returns when to look again.
    pub fn listen(&mut self, now: Instant, session: &Session) -> Instant {
        if let Some(listener) = &mut self.listener {
            let owes = if session.stats().send_buffer > 0 { Owes::Answer } else { Owes::Nothing };
            listener.look(now, trace(session), owes);
        }
        now + LOOK
    }

    /// How fast blocks were acknowledged over the last tenths of a second.
    pub fn recent_rate(&mut self, now: Instant) -> Rate {
        let recent = &mut self.recent;
        let span = now.since(recent.since);
        if span >= STRETCH {
            let rate = Rate::over(self.delivered.saturating_sub(recent.bytes), span);
            *recent = Recent { since: now, bytes: self.delivered, rate };
        }
        recent.rate
    }

    /// Says a line a second. Returns when the next is due.
    pub fn line(&mut self, now: Instant, id: SessionId, manager: &mut SessionManager) -> Instant {
        let Some(session) = manager.session(id).filter(|_| now >= self.line_due) else {
            return self.line_due;
        };
        let repeated = session.stats().symbols_repeated - self.stats_at_begin.symbols_repeated;
        self.course.read(now, self.delivered);
        session.paths().for_each(|(id, path)| self.course.round_trip(id, path.estimate.rtt));
        let paths = session.paths().map(|(_, path)| {
            let (rtt, loss) =
                (path.estimate.rtt.as_secs_f64() * 1e3, path.estimate.loss.as_f64() * 100.0);
            format!("rtt {rtt:.1} ms, loss {loss:.3} %")
        });
        let paths: Vec<String> = paths.collect();
        let span = SECOND + now.since(self.line_due);
        let rate = Rate::over(self.delivered.saturating_sub(self.line_bytes), span);
        // Standard error may be closed; the result comes all the same.
        let _ = writeln!(
            std::io::stderr(),
            "{:>6.1} s {:>16}; {}; {repeated} symbols repeated, {} blocks expired",
            now.since(self.began).as_secs_f64(),
            rate_text(rate.as_bps()),
            paths.join("; "),
            self.expired
        );
        self.line_bytes = self.delivered;
        self.line_due = now + SECOND;
        self.line_due
    }

    /// Looks at the paths for the last time: after this they are closed.
    pub fn see_paths(&mut self, id: SessionId, manager: &mut SessionManager, plan: &SendPlan) {
        let sockets: BTreeMap<PathId, usize> =
            manager.paths(id).map(|(path, socket, _)| (path, socket.0)).collect();
        let Some(session) = manager.session(id) else { return };
        self.stats = session.stats();
        self.waits = session.waits().since(&self.waits_at_begin);
        let less = session.paths().map(|(id, path)| {
            self.payloads_at_begin.get(&id).map_or(0, |full| full.saturating_sub(path.payload))
        });
        let shrunk = less
            .max()
            .filter(|less| *less > 0)
            .map(|less| plan.control.payload.saturating_sub(less as u64));
        self.control = ControlSummary { payload_shrunk: shrunk, ..plan.control.clone() };
        let seconds = self.grew.since(self.began);
        let seen = session.paths().filter_map(|(id, status)| {
            let (over, pair) = plan.way(*sockets.get(&id)?)?;
            let (now, then) =
                (status.stats, self.paths_at_begin.get(&id).copied().unwrap_or_default());
            let (symbols, lost) =
                (now.symbols_sent - then.symbols_sent, now.symbols_lost - then.symbols_lost);
            let bytes = u128::from(now.bytes_sent - then.bytes_sent);
            let arrived =
                bytes * u128::from(symbols.saturating_sub(lost)) / u128::from(symbols.max(1));
            let arrived = ByteCount::new(u64::try_from(arrived).unwrap_or(u64::MAX));
            Some(PathResult {
                over,
                local: pair.local,
                remote: pair.remote,
                goodput_bps: Rate::over(arrived, seconds).as_bps(),
                rtt_s: status.estimate.rtt.as_secs_f64(),
                loaded_rtt_s: self
                    .course
                    .mean_round_trip(id)
                    .unwrap_or(status.estimate.rtt)
                    .as_secs_f64(),
                min_rtt_s: status.estimate.min_rtt.as_secs_f64(),
                loss: status.estimate.loss.as_f64(),
                repair_sent: now.repair_sent - then.repair_sent,
                repair_used: now.recovered_there - then.recovered_there,
            })
        });
        self.paths = seen.collect();
    }

    /// The report, with what the far end found.
    pub fn report(&self, found: &ReceiverResult, plan: &SendPlan) -> Report {
        let seconds = self.grew.since(self.began);
        let (repaired, processors) = (found.repaired.min(self.acknowledged), Processors::now());
        let of = |count: fn(&Stats) -> u64| count(&self.stats) - count(&self.stats_at_begin);
        Report {
            goodput_bps: Rate::over(self.delivered, seconds).as_bps(),
            bytes: self.delivered.as_u64(),
            seconds: seconds.as_secs_f64(),
            latency_s: found.latency_s,
            blocks: Blocks {
                delivered: self.acknowledged - repaired,
                repaired,
                expired: self.expired,
            },
            cpu_s: Cpu { send: cpu_seconds() - self.cpu_at_begin, receive: found.cpu_s },
            paths: self.paths.clone(),
            steady_bps: self
                .course
                .steady(self.began, (self.grew, self.delivered))
                .map(Rate::as_bps),
            waited_s: waited(&self.waits),
            busiest_thread: Busiest {
                send: processors
                    .threads
                    .busiest_since(&self.processors_at_begin.threads, seconds.as_secs_f64()),
                receive: found.busiest_thread,
            },
            disk_share: found.disk_share,
            lack: HostShortage {
                send: processors.lack_since(&self.processors_at_begin, seconds.as_secs_f64()),
                receive: found.lack,
            },
            backlog: found.backlog,
            silence: self.listener.map(|listener| listener.silence()).unwrap_or_default(),
            offered_bps: plan.offer.map(Rate::as_bps),
            control: self.control.clone(),
            losses: LossPlaces {
                sent: of(|stats| stats.symbols_sent + stats.symbols_repeated),
                path: of(|stats| stats.symbols_lost),
                repeated: of(|stats| stats.symbols_repeated),
                receive_socket: found.socket_drops,
                duplicate: found.symbols_duplicate,
                ..LossPlaces::default()
            },
            classes: classes(found, plan),
        }
    }
}

/// What changes with each answer of the far end: when it was, and the round trip that was measured.
fn trace(session: &Session) -> u64 {
    let of = |estimate: skyhaul_transport::Estimate| {
        let since = estimate.answered.since(Instant::ZERO);
        since.as_nanos() ^ estimate.rtt.as_nanos().rotate_left(32)
    };
    session
        .paths()
        .fold(session.stats().bytes_reported, |sum, (_, path)| sum.wrapping_add(of(path.estimate)))
}

fn waited(waits: &Waits) -> WaitSeconds {
    let Waits { application, window, buffer, classes, path } = *waits;
    let [application, window, buffer, classes, path] =
        [application, window, buffer, classes, path].map(|span| span.as_secs_f64());
    WaitSeconds { application, window, buffer, classes, path }
}

/// What the far end found of each class.
fn classes(found: &ReceiverResult, plan: &SendPlan) -> Vec<ClassResult> {
    let loads = plan.shares.iter().flat_map(|shares| shares.loads());
    let classes = loads.zip(&found.courses).map(|(load, course)| {
        let until = load.until.unwrap_or(plan.duration).min(plan.duration);
        let bytes = ByteCount::new(course.iter().fold(0, |sum, step| sum.saturating_add(*step)));
        ClassResult {
            name: load.class.name.clone(),
            from_s: load.from.as_secs_f64(),
            until_s: until.as_secs_f64(),
            goodput_bps: Rate::over(bytes, until.saturating_sub(load.from)).as_bps(),
            tenths: course.clone(),
        }
    });
    classes.collect()
}

/// Between two lines.
const SECOND: Duration = Duration::from_secs(1);

/// Between two looks whether the far end is heard.
const LOOK: Duration = Duration::from_millis(100);

/// Over how long the recent rate is taken: five of the far end's reports.
const STRETCH: Duration = Duration::from_millis(100);
