//! The figures of a run: its blocks, its paths, and what each end measured of itself.

use super::blocks::{BlockAccount, RecentRate};
use super::plan::SendPlan;
use super::progress::ProgressLines;
use crate::commands::perf::cpu_seconds;
use crate::commands::perf::message::ReceiverResult;
use crate::commands::perf::report::{
    Blocks, Busiest, ClassResult, ControlSummary, Cpu, HostShortage, LossPlaces, PathResult,
    Report, TransferEvidence, WaitSeconds,
};
use skyhaul_net::SessionManager;
use skyhaul_probe::why::{Owes, SilenceDetector};
use skyhaul_probe_io::Processors;
use skyhaul_sessions::SessionId;
use skyhaul_transport::{PathId, PathStats, PathStatus, Session, Stats, Waits};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// The figures so far.
#[derive(Debug, Default)]
pub struct SendTally {
    /// The blocks.
    pub blocks: BlockAccount,
    baseline: Baseline,
    progress: ProgressLines,
    recent: RecentRate,
    last_look: LastLook,
    /// How long the far end did not answer; `None` before the measurement.
    listener: Option<SilenceDetector>,
}

/// Counters when the measurement began: they include the handshake and the comparison of clocks.
#[derive(Debug, Default)]
struct Baseline {
    began: Instant,
    cpu_s: f64,
    paths: BTreeMap<PathId, PathStats>,
    /// The largest symbol datagrams of each path.
    payloads: BTreeMap<PathId, usize>,
    stats: Stats,
    waits: Waits,
    processors: Processors,
}

/// The session as it was last seen: it is closed when the report is made.
#[derive(Debug, Default)]
struct LastLook {
    paths: Vec<PathLook>,
    stats: Stats,
    waits: Waits,
    control: ControlSummary,
}

/// A path as it was last seen.
#[derive(Debug)]
struct PathLook {
    /// Without its goodput, which is known when the report is made.
    result: PathResult,
    /// What it carried and was not lost there, as far as a path can know: what it counts as lost
    /// may have come late, and what came may have come over another path before.
    carried: ByteCount,
}

impl Baseline {
    fn of(now: Instant, session: &Session) -> Self {
        Self {
            began: now,
            cpu_s: cpu_seconds(),
            paths: session.paths().iter().map(|(id, path)| (id, path.stats)).collect(),
            payloads: session.paths().iter().map(|(id, path)| (id, path.payload)).collect(),
            stats: session.stats(),
            waits: session.waits().so_far(),
            processors: Processors::now(),
        }
    }
}

impl SendTally {
    /// Begins to count.
    pub fn begin(now: Instant, session: &Session) -> Self {
        Self {
            blocks: BlockAccount::begin(now),
            baseline: Baseline::of(now, session),
            progress: ProgressLines::begin(now, session.stats().sent.symbols_repeated),
            recent: RecentRate::begin(now),
            last_look: LastLook::default(),
            listener: Some(SilenceDetector::new(now, trace(session))),
        }
    }

    /// When the measurement began.
    pub const fn began(&self) -> Instant {
        self.baseline.began
    }

    /// Checks whether the far end answers. Returns when to check again.
    pub fn listen(&mut self, now: Instant, session: &Session) -> Instant {
        if let Some(listener) = &mut self.listener {
            let owes = if session.stats().sent.buffer > 0 { Owes::Answer } else { Owes::Nothing };
            listener.look(now, trace(session), owes);
        }
        now + LOOK
    }

    /// How fast blocks were acknowledged over the last tenth of a second.
    pub fn recent_rate(&mut self, now: Instant) -> Rate {
        self.recent.at(now, self.blocks.delivered())
    }

    /// Prints a line a second. Returns when the next is due.
    pub fn line(&mut self, now: Instant, session: Option<&mut Session>) -> Instant {
        self.progress.print(now, &self.blocks, session)
    }

    /// Notes the state of the session for the report, which is made when it is closed.
    pub fn note_session(&mut self, id: SessionId, manager: &mut SessionManager, plan: &SendPlan) {
        let sockets: BTreeMap<PathId, usize> =
            manager.paths(id).map(|(path, socket, _)| (path, socket.0)).collect();
        let Some(session) = manager.session(id) else { return };
        let paths = session.paths().iter().filter_map(|(id, status)| {
            let endpoint = *sockets.get(&id)?;
            self.path_look(id, &status, endpoint, plan)
        });
        self.last_look = LastLook {
            paths: paths.collect(),
            stats: session.stats(),
            waits: session.waits().so_far().since(&self.baseline.waits),
            control: ControlSummary {
                payload_shrunk: self.payload_shrunk(session, plan),
                ..plan.control.clone()
            },
        };
    }

    /// The payload of a full datagram now, if a path's has become smaller since the beginning.
    fn payload_shrunk(&self, session: &Session, plan: &SendPlan) -> Option<u64> {
        let less = session.paths().iter().map(|(id, path)| {
            let full = self.baseline.payloads.get(&id);
            full.map_or(0, |full| full.saturating_sub(path.payload))
        });
        let less = less.max().filter(|less| *less > 0)?;
        Some(plan.control.payload.saturating_sub(less as u64))
    }

    fn path_look(
        &self,
        id: PathId,
        status: &PathStatus,
        endpoint: usize,
        plan: &SendPlan,
    ) -> Option<PathLook> {
        let path = plan.path_of(endpoint)?;
        let (now, estimate) = (status.stats, &status.estimate);
        let then = self.baseline.paths.get(&id).copied().unwrap_or_default();
        let symbols = now.symbols_sent - then.symbols_sent;
        let lost = now.symbols_lost - then.symbols_lost;
        // A path counts bytes when they are sent: the share of lost symbols did not arrive.
        let bytes = u128::from(now.bytes_sent - then.bytes_sent);
        let carried = bytes * u128::from(symbols.saturating_sub(lost)) / u128::from(symbols.max(1));
        let carried = ByteCount::new(u64::try_from(carried).unwrap_or(u64::MAX));
        let loaded_rtt = self.progress.readings().mean_round_trip(id).unwrap_or(estimate.rtt);
        let result = PathResult {
            over: path.over,
            local: path.ends.local,
            remote: path.ends.remote,
            goodput_bps: 0,
            rtt_s: estimate.rtt.as_secs_f64(),
            loaded_rtt_s: loaded_rtt.as_secs_f64(),
            min_rtt_s: estimate.min_rtt.as_secs_f64(),
            loss: estimate.loss.as_f64(),
            repair_sent: now.repair_sent - then.repair_sent,
            repair_used: now.recovered_there - then.recovered_there,
        };
        Some(PathLook { result, carried })
    }

    /// From the beginning to the last acknowledgement.
    fn span(&self) -> Duration {
        self.blocks.end().since(self.baseline.began)
    }

    /// The report, with the far end's figures.
    pub fn report(&self, found: &ReceiverResult, plan: &SendPlan) -> Report {
        let (blocks, seconds) = (&self.blocks, self.span());
        let repaired = found.repaired.min(blocks.acknowledged());
        let steady =
            self.progress.readings().steady(self.began(), blocks.end(), blocks.delivered());
        let goodput = Rate::over(blocks.delivered(), seconds);
        Report {
            goodput_bps: goodput.as_bps(),
            bytes: blocks.delivered().as_u64(),
            seconds: seconds.as_secs_f64(),
            latency_s: found.latency_s,
            blocks: Blocks {
                delivered: blocks.acknowledged() - repaired,
                repaired,
                expired: blocks.expired(),
            },
            cpu_s: Cpu { send: cpu_seconds() - self.baseline.cpu_s, receive: found.cpu_s },
            paths: paths(&self.last_look.paths, goodput),
            losses: self.losses(found),
            steady_bps: steady.map(Rate::as_bps),
            evidence: self.evidence(found),
            offered_bps: plan.load.offer.map(Rate::as_bps),
            control: self.last_look.control.clone(),
            classes: classes(found, plan),
        }
    }

    /// Losses without those at the sockets, which the driver knows.
    fn losses(&self, found: &ReceiverResult) -> LossPlaces {
        let (now, then) = (&self.last_look.stats, &self.baseline.stats);
        let of = |count: fn(&Stats) -> u64| count(now) - count(then);
        LossPlaces {
            sent: of(|stats| stats.sent.symbols_sent + stats.sent.symbols_repeated),
            path: of(|stats| stats.sent.symbols_lost),
            repeated: of(|stats| stats.sent.symbols_repeated),
            receive_socket: found.socket_drops,
            duplicate: found.symbols_duplicate,
            ..LossPlaces::default()
        }
    }

    fn evidence(&self, found: &ReceiverResult) -> TransferEvidence {
        let (seconds, processors) = (self.span().as_secs_f64(), Processors::now());
        let then = &self.baseline.processors;
        TransferEvidence {
            waited_s: waited(&self.last_look.waits),
            busiest_thread: Busiest {
                send: processors.threads.busiest_since(&then.threads, seconds),
                receive: found.busiest_thread,
            },
            disk_share: found.disk_share,
            lack: HostShortage { send: processors.lack_since(then, seconds), receive: found.lack },
            backlog: found.backlog,
            silence: self.listener.map(|listener| listener.silence()).unwrap_or_default(),
        }
    }
}

/// A number that changes with each answer of the far end: made of its time and its round trip.
fn trace(session: &Session) -> u64 {
    let of = |estimate: skyhaul_transport::Estimate| {
        let since = estimate.answered.since(Instant::ZERO);
        since.as_nanos() ^ estimate.rtt.as_nanos().rotate_left(32)
    };
    session.paths().iter().fold(session.stats().sent.bytes_reported, |sum, (_, path)| {
        sum.wrapping_add(of(path.estimate))
    })
}

/// The paths with their shares of the goodput, which together are all of it.
fn paths(looks: &[PathLook], goodput: Rate) -> Vec<PathResult> {
    let carried = |look: &PathLook| u128::from(look.carried.as_u64());
    let total = looks.iter().map(carried).sum::<u128>().max(1);
    let (mut sum, mut before) = (0, 0);
    let share = |look: &PathLook| {
        sum += carried(look);
        let until = u64::try_from(u128::from(goodput.as_bps()) * sum / total).unwrap_or(u64::MAX);
        let goodput_bps = until - before;
        before = until;
        PathResult { goodput_bps, ..look.result.clone() }
    };
    looks.iter().map(share).collect()
}

fn waited(waits: &Waits) -> WaitSeconds {
    let Waits { application, window, buffer, classes, path } = *waits;
    let [application, window, buffer, classes, path] =
        [application, window, buffer, classes, path].map(|span| span.as_secs_f64());
    WaitSeconds { application, window, buffer, classes, path }
}

/// What the far end received of each class.
fn classes(found: &ReceiverResult, plan: &SendPlan) -> Vec<ClassResult> {
    let duration = plan.load.duration;
    let loads = plan.shares.iter().flat_map(|shares| shares.loads());
    let classes = loads.zip(&found.courses).map(|(load, course)| {
        let until = load.until.unwrap_or(duration).min(duration);
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

/// Between two checks whether the far end answers.
const LOOK: Duration = Duration::from_millis(100);
