//! One path as its session uses it: transmissions in flight, health, FEC repair, forecasts.

use super::ceiling::PathCeiling;
use super::health::{Health, IsLarge, Size, Stall, UsablePaths};
use super::hints::{Beside, Hints};
use super::path_repair::PathRepair;
use super::timer::Timer;
use crate::inflight::{Inflight, SentDatagram};
use crate::path::{Estimate, PathOptions, PathState};
use crate::repair::{CoderCounters, DecoderCounters, Goal};
use crate::schedule::LineEstimate;
use crate::wire::ControlReader;
use skyhaul_units::{Duration, Instant, Probability, Rate};

/// A path that a session has.
#[derive(Debug)]
pub struct Attached {
    /// The largest datagram in bytes, once the path is up.
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
    pub ceiling: PathCeiling,
}

/// When datagrams of each kind were last sent on a path.
#[derive(Debug, Default)]
pub struct LastSent {
    /// A symbol of a block.
    pub symbol: Instant,
    /// A symbol that was sent for the first time.
    pub fresh: Instant,
    /// The FEC group of those was closed, because retransmissions followed.
    pub closed: Instant,
}

/// The counters of one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Symbols sent, retransmissions included.
    pub symbols_sent: u64,
    /// Bytes of blocks in those symbols.
    pub bytes_sent: u64,
    /// Symbols that count as lost.
    pub symbols_lost: u64,
    /// FEC repair symbols sent, and further copies of retransmissions.
    pub repair_sent: u64,
    /// Bytes of those.
    pub repair_bytes: u64,
    /// FEC repair symbols received.
    pub repair_received: u64,
    /// FEC repair symbols received that recovered a symbol.
    pub repair_used: u64,
    /// FEC repair symbols received that were not needed.
    pub repair_wasted: u64,
    /// Datagrams sent here that were lost, and that the far end recovered by FEC.
    pub recovered_there: u64,
    /// How often the path stopped answering.
    pub stalls: u64,
}

/// The state of a path, for status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStatus {
    /// What the session does with it.
    pub state: PathState,
    /// The path's own measurements.
    pub estimate: Estimate,
    /// The loss rate for which FEC repair is planned.
    pub loss: Probability,
    /// Until when a hint says that the path is out.
    pub out_until: Option<Instant>,
    /// The largest symbol datagram in bytes; zero before the path is up.
    pub payload: usize,
    /// Counters.
    pub stats: PathStats,
}

/// The rate assumed of a path that has not measured one: so high that delay alone decides the
/// scheduling.
const RATE_UNKNOWN: Rate = Rate::from_mbps(1_000);
/// A shorter pause is not taken for the end of a transfer.
const IDLE: Duration = Duration::from_millis(10);
/// Shorter silences are no sign of a fault: schedulers and acknowledgement timers of busy machines
/// cause them.
const SILENCE: Duration = Duration::from_millis(200);
/// Shorter silences of an only path are no sign of a fault: the handover of a satellite's beam
/// takes as long.
const SILENCE_ALONE: Duration = Duration::from_secs(1);
/// Round trips for which an only path may be silent: one acknowledgement may be lost.
const ROUNDS_ALONE: u64 = 3;

impl Attached {
    pub fn new(options: PathOptions, goal: Goal, version: u16) -> Self {
        Self {
            payload: None,
            options,
            inflight: Inflight::default(),
            estimate: Estimate::default(),
            health: Health::default(),
            size: Size::default(),
            repair: PathRepair::new(goal),
            control_in: ControlReader::of(version),
            stats: PathStats::default(),
            last: LastSent::default(),
            try_at: Instant::ZERO,
            hints: Hints::default(),
            ceiling: PathCeiling::default(),
        }
    }

    /// Whether it is up, answers, and is not forecast to be out.
    pub fn is_usable(&self) -> bool {
        self.payload.is_some() && !self.is_stalled() && !self.hints.is_absent()
    }

    /// Whether it is usable for anything: neither a standby nor metered.
    pub fn is_free(&self) -> bool {
        self.is_usable() && !self.options.standby && !self.options.metered
    }

    /// Whether nothing but a probe now and then goes there.
    pub fn is_stalled(&self) -> bool {
        self.health.stall().is_some()
    }

    /// After a pause this long, the last symbols count as the end of a transfer.
    pub fn idle(&self) -> Duration {
        (self.rtt() / 16).max(IDLE)
    }

    /// When the last symbols of a transfer get FEC repair, ahead of any loss.
    pub fn tail_due(&self) -> Option<Instant> {
        let has_closed_tail = self.repair.coder.has_closed_tail();
        let since = if has_closed_tail { self.last.fresh } else { self.last.symbol };
        self.repair.coder.has_tail().then(|| since + self.idle())
    }

    /// Whether FEC repair may go now.
    pub fn has_repair_to_send(&self, clock: Instant) -> bool {
        self.repair.coder.has_repair() || self.tail_due().is_some_and(|due| due <= clock)
    }

    /// The round trip as the path measures it, or else as the symbols do.
    pub fn rtt(&self) -> Duration {
        if self.estimate.rtt > Duration::ZERO { self.estimate.rtt } else { self.inflight.rtt() }
    }

    /// How far the round trip may exceed its mean: four mean deviations (RFC 6298 2).
    pub fn swing(&self) -> Duration {
        self.estimate.rtt_variation * 4
    }

    /// Half of the shortest recent round trip: the delay of a symbol where no queue holds it.
    pub fn flight(&self) -> Duration {
        let shortest = self.estimate.min_rtt;
        if shortest > Duration::ZERO { shortest / 2 } else { self.rtt() / 2 }
    }

    /// The path's rate, and half a round trip as its delay.
    pub fn line(&self) -> LineEstimate {
        let known = Some(self.estimate.rate).filter(|rate| *rate > Rate::ZERO);
        let rate = self.hints.predicted.or(known).unwrap_or(RATE_UNKNOWN);
        let rate = self.hints.ceiling.map_or(rate, |most| rate.min(most));
        LineEstimate { rate, one_way_delay: self.rtt() / 2 }
    }

    /// Takes the path's own measurements.
    pub fn measured(&mut self, estimate: Estimate) {
        self.estimate = estimate;
        self.inflight.hear(estimate.rtt);
    }

    /// When it counts as silent if nothing arrives: it has owed answers for longer than
    /// [`Self::patience`], or so many that a shorter time is enough.
    fn silent_at(&self) -> Option<Instant> {
        let round = self.rtt() + self.swing();
        self.inflight.silent_at(round, self.patience(), self.repair.many())
    }

    /// When silence is in doubt: earlier than it is certain.
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

    /// Why the path is out of use from now on, if it is. `usable`: how many paths are.
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

    /// When [`Self::stalls`] may have an answer if nothing arrives.
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

    /// When the application is to be told of the new datagram size.
    pub fn size_due(&self) -> Option<Instant> {
        self.size.due(self.payload?, self.rtt())
    }

    /// Passes the outcomes of transmissions to the loss meter, and plans FEC repair anew where that
    /// is due.
    pub fn replan(&mut self, now: Instant) {
        self.repair.learn_losses(now, &mut self.inflight);
        if let Some(payload) = self.payload {
            let (rtt, line) = (self.rtt(), self.line());
            self.repair.replan(now, payload, rtt, line.rate);
        }
    }

    /// The timers of this path. `usable`: how many paths are.
    pub fn timers(&self, clock: Instant, usable: UsablePaths) -> [(Timer, Option<Instant>); 9] {
        // Silence during a forecast outage is expected, and nothing is sent then.
        let unless_absent = |due: Option<Instant>| due.filter(|_| !self.hints.is_absent());
        // A stalled path carries only probes: FEC repair waits.
        let unless_stalled = |due: Option<Instant>| due.filter(|_| !self.is_stalled());
        // Doubt only sends copies on another path; one that has passed has been acted on.
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
            (Timer::HintRate, self.ceiling.due(clock)),
            (Timer::PathResize, self.size_due()),
        ]
    }

    /// Brings what is forecast of the path up to date. `beside`: whether another path is usable.
    pub fn update_hints(&mut self, now: Instant, beside: Beside) {
        let (rtt, swing) = (self.rtt(), self.swing());
        self.hints.update(now, rtt, swing, beside);
        self.repair.foretell(self.hints.loss);
        self.ceiling.set(now, self.hints.ceiling);
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
