//! One path as its session uses it: what is under way there, how it does, its FEC repair.

use super::health::{Health, IsLarge, Size, Stall, UsablePaths};
use super::hints::{Beside, Hints};
use super::path_repair::PathRepair;
use super::timers::Timer;
use crate::inflight::{Inflight, SentDatagram};
use crate::path::{Estimate, PathOptions, PathState};
use crate::repair::{CoderCounters, DecoderCounters, Goal};
use crate::schedule::LineEstimate;
use crate::wire::ControlReader;
use skyhaul_units::{Duration, Instant, Probability, Rate};

/// A path that a session has.
#[derive(Debug)]
pub struct Attached {
    /// Largest datagram, once it is up.
    pub payload: Option<usize>,
    pub options: PathOptions,
    pub inflight: Inflight,
    pub estimate: Estimate,
    pub health: Health,
    pub size: Size,
    pub repair: PathRepair,
    pub control_in: ControlReader,
    pub stats: PathStats,
    /// When what was last sent here.
    pub last: LastSent,
    /// When a stalled path, or one that carries nothing, is tried next.
    pub try_at: Instant,
    pub hints: Hints,
}

/// When what was last sent on a path.
#[derive(Debug, Default)]
pub struct LastSent {
    /// A block's symbol.
    pub symbol: Instant,
    /// One that was sent for the first time.
    pub fresh: Instant,
    /// The group of those was closed because what had been lost followed them.
    pub closed: Instant,
}

/// What a session did on one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Symbols sent, repetitions included.
    pub symbols_sent: u64,
    /// Bytes of blocks in those, repetitions included.
    pub bytes_sent: u64,
    /// Symbols that count as lost.
    pub symbols_lost: u64,
    /// Repair symbols sent, and copies of what would hold up delivery for too long or was under way
    /// on a path that went silent.
    pub repair_sent: u64,
    /// Bytes of those.
    pub repair_bytes: u64,
    /// Repair symbols received.
    pub repair_received: u64,
    /// Repair symbols received that brought something back.
    pub repair_used: u64,
    /// Repair symbols received that were not needed.
    pub repair_wasted: u64,
    /// Datagrams sent here that repair stood for at the far end.
    pub recovered_there: u64,
    /// How often it stopped answering.
    pub stalls: u64,
}

/// What is known of a path, for status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStatus {
    /// What the session does with it.
    pub state: PathState,
    /// The path's own measurements.
    pub estimate: Estimate,
    /// Share of datagrams lost, as repair is sized for.
    pub loss: Probability,
    /// Until when a hint says that it is out.
    pub out_until: Option<Instant>,
    /// The largest symbol datagram that goes there now; zero before it is up.
    pub payload: usize,
    /// Counters.
    pub stats: PathStats,
}

/// What is assumed of a path of which nothing is known, for scheduling: delay alone counts.
const RATE_UNKNOWN: Rate = Rate::from_mbps(1_000);
/// The shortest pause that is taken for the end of a transfer.
const IDLE: Duration = Duration::from_millis(10);
/// The shortest silence that means anything: schedulers and acknowledgement timers of busy machines
/// take less.
const SILENCE: Duration = Duration::from_millis(200);
/// Silence of an only path for less than this means nothing: a handover of a satellite's beam takes
/// as long.
const SILENCE_ALONE: Duration = Duration::from_secs(1);
/// Round trips for which an only path may be silent.
const ROUNDS_ALONE: u64 = 3;

impl Attached {
    pub fn new(options: PathOptions, goal: Goal) -> Self {
        Self {
            payload: None,
            options,
            inflight: Inflight::default(),
            estimate: Estimate::default(),
            health: Health::default(),
            size: Size::default(),
            repair: PathRepair::new(goal),
            control_in: ControlReader::default(),
            stats: PathStats::default(),
            last: LastSent::default(),
            try_at: Instant::ZERO,
            hints: Hints::default(),
        }
    }

    /// It can carry datagrams, answers, and is not foretold to be out.
    pub fn is_usable(&self) -> bool {
        self.payload.is_some() && !self.is_stalled() && !self.hints.is_absent()
    }

    /// It can carry anything: it is no standby, and sending on it costs nothing.
    pub fn is_free(&self) -> bool {
        self.is_usable() && !self.options.standby && !self.options.metered
    }

    /// Nothing but a try now and then goes there.
    pub fn is_stalled(&self) -> bool {
        self.health.stall().is_some()
    }

    /// How long nothing new must have come before the end of a transfer is repaired ahead.
    pub fn idle(&self) -> Duration {
        (self.rtt() / 16).max(IDLE)
    }

    /// When the last symbols here get FEC repair ahead of any loss.
    pub fn tail_due(&self) -> Option<Instant> {
        let has_closed_tail = self.repair.coder.has_closed_tail();
        let since = if has_closed_tail { self.last.fresh } else { self.last.symbol };
        self.repair.coder.has_tail().then(|| since + self.idle())
    }

    /// Whether FEC repair may go now.
    pub fn has_repair_to_send(&self, clock: Instant) -> bool {
        self.repair.coder.has_repair() || self.tail_due().is_some_and(|due| due <= clock)
    }

    /// The round trip, as the path or else the symbols show it.
    pub fn rtt(&self) -> Duration {
        if self.estimate.rtt > Duration::ZERO { self.estimate.rtt } else { self.inflight.rtt() }
    }

    /// How far the round trip swings above its mean.
    pub fn swing(&self) -> Duration {
        self.estimate.rtt_variation * 4
    }

    /// Half of the shortest round trip lately: what a symbol takes where no queue holds it.
    pub fn flight(&self) -> Duration {
        let shortest = self.estimate.min_rtt;
        if shortest > Duration::ZERO { shortest / 2 } else { self.rtt() / 2 }
    }

    /// Half a round trip, and the rate.
    pub fn line(&self) -> LineEstimate {
        let known = Some(self.estimate.rate).filter(|rate| *rate > Rate::ZERO);
        let rate = self.hints.predicted.or(known).unwrap_or(RATE_UNKNOWN);
        LineEstimate { rate, one_way_delay: self.rtt() / 2 }
    }

    /// The path has measured itself.
    pub fn measured(&mut self, estimate: Estimate) {
        self.estimate = estimate;
        self.inflight.hear(estimate.rtt);
    }

    /// When it will count as silent, should nothing come: it has owed answers for longer than
    /// [`Self::patience`] then, or many for not so long.
    fn silent_at(&self) -> Option<Instant> {
        let round = self.rtt() + self.swing();
        self.inflight.silent_at(round, self.patience(), self.repair.many())
    }

    /// From when on so many have owed answers for so long that it may be silent.
    pub fn doubted_at(&self) -> Option<Instant> {
        self.inflight.doubted_at(self.rtt() + self.swing(), self.repair.many())
    }

    /// How long it may owe answers: the larger of 200 ms and two round trips.
    pub fn patience(&self) -> Duration {
        (self.rtt() * 2).max(SILENCE)
    }

    /// Whether what was sent was about as long as datagrams are now.
    pub fn is_large(&self, sent: &SentDatagram) -> IsLarge {
        let payload = self.payload.unwrap_or_default();
        match sent {
            SentDatagram::Padding => IsLarge::Yes,
            SentDatagram::Slice(slice) if (slice.end - slice.start) as usize >= payload / 4 * 3 => {
                IsLarge::Yes
            }
            SentDatagram::Slice(_)
            | SentDatagram::Report { .. }
            | SentDatagram::Notice
            | SentDatagram::Repair => IsLarge::No,
        }
    }

    /// Why it is to be used no longer, if so, where so many paths are `usable`.
    pub fn stalls(&self, now: Instant, usable: UsablePaths) -> Option<Stall> {
        if self.is_stalled() || self.hints.is_absent() {
            return None;
        }
        let is_past = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        match usable {
            UsablePaths::Several if is_past(self.silent_at()) => Some(Stall::Unanswered),
            UsablePaths::OneAtMost if is_past(self.mute_at()) => Some(Stall::Silent),
            _ => is_past(self.health.hole_at(self.rtt())).then_some(Stall::BlackHole),
        }
    }

    /// When that may be so, should nothing come.
    fn stalls_at(&self, usable: UsablePaths) -> Option<Instant> {
        if self.is_stalled() {
            return None;
        }
        let silent = match usable {
            UsablePaths::Several => self.silent_at(),
            UsablePaths::OneAtMost => self.mute_at(),
        };
        [silent, self.health.hole_at(self.rtt())].into_iter().flatten().min()
    }

    /// When an only path counts as silent.
    fn mute_at(&self) -> Option<Instant> {
        self.payload?;
        let patience = (self.rtt() * ROUNDS_ALONE).max(SILENCE_ALONE);
        let answered = self.estimate.answered.max(self.hints.judge_from);
        self.inflight.mute_at(answered, self.rtt() + self.swing(), patience)
    }

    /// When it is to be told that datagrams have another size.
    pub fn size_due(&self) -> Option<Instant> {
        self.size.due(self.payload?, self.rtt())
    }

    /// Takes in the fates that became known, in their order, and plans FEC repair anew where it is
    /// time to.
    pub fn replan(&mut self, now: Instant) {
        self.repair.learn_losses(now, &mut self.inflight);
        if let Some(payload) = self.payload {
            let (rtt, line) = (self.rtt(), self.line());
            self.repair.replan(now, payload, rtt, line.rate);
        }
    }

    /// The timers of this path, where so many are `usable`.
    pub fn timers(&self, clock: Instant, usable: UsablePaths) -> [(Timer, Option<Instant>); 8] {
        // Silence during an outage that was foretold means nothing, and nothing is sent then.
        let unless_absent = |due: Option<Instant>| due.filter(|_| !self.hints.is_absent());
        // Nothing but a try now and then goes on a stalled path, so that repair waits.
        let unless_stalled = |due: Option<Instant>| due.filter(|_| !self.is_stalled());
        // Without another path there is none to send copies on; a doubt that has passed is settled.
        let several = usable == UsablePaths::Several;
        let is_doubtful = |at: &Instant| several && self.is_usable() && *at > clock;
        let loss = self.inflight.next_timeout().map(|due| due.max(self.hints.judge_from));
        let group = self.repair.coder.next_timeout();
        [
            (Timer::Loss, loss),
            (Timer::RepairGroup, unless_absent(unless_stalled(group))),
            (Timer::RepairTail, unless_absent(unless_stalled(self.tail_due()))),
            (Timer::SilenceDoubted, self.doubted_at().filter(is_doubtful)),
            (Timer::Stall, unless_absent(self.stalls_at(usable))),
            (Timer::StalledPathTry, unless_absent(self.is_stalled().then_some(self.try_at))),
            (Timer::HintChange, self.hints.next_change(clock)),
            (Timer::PathResize, self.size_due()),
        ]
    }

    /// Brings what is foretold of it up to date, where another path is usable `beside` it, or none is.
    pub fn update_hints(&mut self, now: Instant, beside: Beside) {
        let (rtt, swing) = (self.rtt(), self.swing());
        self.hints.update(now, rtt, swing, beside);
    }

    pub fn status(&self) -> PathStatus {
        let DecoderCounters { repairs, used, wasted, .. } = *self.repair.decoder.counters();
        let CoderCounters { repairs: sent, repair_bytes, .. } = *self.repair.coder.counters();
        let state = match (self.payload, self.health.stall(), self.options.standby) {
            (None, _, _) => PathState::Probing,
            _ if self.hints.is_absent() => PathState::Absent,
            (_, Some(Stall::Unanswered), _) => PathState::Stalled,
            (_, Some(Stall::Silent), _) => PathState::Silent,
            (_, Some(Stall::BlackHole), _) => PathState::BlackHole,
            (_, None, true) => PathState::Standby,
            (_, None, false) => PathState::Active,
        };
        let stats = PathStats {
            repair_sent: self.stats.repair_sent + sent,
            repair_bytes: self.stats.repair_bytes + repair_bytes,
            repair_received: repairs,
            repair_used: used,
            repair_wasted: wasted,
            ..self.stats
        };
        PathStatus {
            state,
            estimate: self.estimate,
            loss: self.repair.loss(),
            out_until: self.hints.out_until(),
            payload: self.payload.unwrap_or_default(),
            stats,
        }
    }
}
