//! One path as its session uses it: what is under way there, how it does, its repair.

use super::health::{Health, Size, Stall};
use super::hints::Hints;
use super::slacks::Slacks;
use crate::inflight::{Inflight, many};
use crate::path::{Estimate, PathOptions, PathState};
use crate::repair::{
    Coder, CoderCounters, DecoderCounters, Goal, LossMeter, Planner, RepairDecoder, Situation,
    UNDER_SYMBOL,
};
use crate::schedule::LineEstimate;
use crate::wire::ControlReader;
use skyhaul_coding::erasure::SOURCES_MAX;
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

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
    pub coder: Coder,
    pub decoder: RepairDecoder,
    pub control_in: ControlReader,
    pub stats: PathStats,
    losses: LossMeter,
    planner: Planner,
    timed: Timed,
    replan_at: Instant,
    /// So many unanswered in a row are not chance.
    many: u64,
    /// When a stalled path is tried next.
    pub try_at: Instant,
    /// When a block's symbol was last sent here.
    pub last_symbol: Instant,
    /// When one was last sent here for the first time.
    pub last_fresh: Instant,
    /// When the group of those was last closed because what had been lost followed them.
    pub last_closed: Instant,
    pub hints: Hints,
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

/// Traffic with deadlines that retransmission may not meet.
#[derive(Debug, Default)]
struct Timed {
    since: Instant,
    bytes: ByteCount,
    /// Of the stretch before.
    rate: Rate,
    slacks: Slacks,
}

impl Timed {
    /// How much there is, of a `line`. Of what has just begun half of the line is assumed, but
    /// where a group's worth of datagrams shows more: repair for half of what really comes fills
    /// the line. Where it shows less, it may only have begun.
    fn rate_at(&self, now: Instant, line: Rate, payload: usize) -> Rate {
        if self.rate > Rate::ZERO {
            return self.rate;
        }
        let guess = line.scaled(1, 2);
        let since = now.since(self.since);
        if since < BEGINNING || self.bytes < ByteCount::of(payload * SOURCES_MAX) {
            return guess;
        }
        Rate::over(self.bytes, since).max(guess)
    }
}

/// How often repair is planned anew.
const REPLAN: Duration = Duration::from_millis(100);
/// How often before timed traffic was measured once.
const BEGINNING: Duration = Duration::from_millis(25);
/// Over how long timed traffic is measured.
const STRETCH: Duration = Duration::from_millis(500);
/// What is assumed of a path of which nothing is known, for scheduling: delay alone counts.
const RATE_UNKNOWN: Rate = Rate::from_mbps(1_000);

impl Attached {
    pub fn new(options: PathOptions, goal: Goal) -> Self {
        Self {
            payload: None,
            options,
            inflight: Inflight::default(),
            estimate: Estimate::default(),
            health: Health::default(),
            size: Size::default(),
            coder: Coder::new(),
            decoder: RepairDecoder::new(),
            control_in: ControlReader::default(),
            stats: PathStats::default(),
            losses: LossMeter::new(),
            planner: Planner::new(goal),
            timed: Timed::default(),
            replan_at: Instant::ZERO,
            many: many(0),
            try_at: Instant::ZERO,
            last_symbol: Instant::ZERO,
            last_fresh: Instant::ZERO,
            last_closed: Instant::ZERO,
            hints: Hints::default(),
        }
    }

    /// It can carry datagrams, answers, and is not foretold to be out.
    pub fn is_usable(&self) -> bool {
        self.payload.is_some() && !self.is_stalled() && !self.hints.is_absent()
    }

    /// Nothing but a try now and then goes there.
    pub fn is_stalled(&self) -> bool {
        self.health.stall().is_some()
    }

    /// How long nothing new must have come before the end of a transfer is repaired ahead.
    pub fn idle(&self) -> Duration {
        (self.rtt() / 16).max(IDLE)
    }

    /// The round trip, as the path or else the symbols show it.
    pub fn rtt(&self) -> Duration {
        if self.estimate.rtt > Duration::ZERO { self.estimate.rtt } else { self.inflight.rtt() }
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

    /// Whether it has owed answers for longer than the larger of 200 ms and two round trips, or
    /// many for not so long.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now)
    }

    /// When it will count as silent, should nothing come.
    pub fn silent_at(&self) -> Option<Instant> {
        self.inflight.silent_at(
            self.rtt() + self.estimate.rtt_variation * 4,
            self.patience(),
            self.many,
        )
    }

    /// From when on so many have owed answers for so long that it may be silent.
    pub fn doubted_at(&self) -> Option<Instant> {
        self.inflight.doubted_at(self.rtt() + self.estimate.rtt_variation * 4, self.many)
    }

    pub fn patience(&self) -> Duration {
        (self.rtt() * 2).max(SILENCE)
    }

    /// Takes in the fates that became known, in their order.
    pub fn learn_losses(&mut self, now: Instant) {
        while let Some(lost) = self.inflight.next_fate() {
            self.losses.fate(now, lost);
        }
    }

    /// Share of datagrams lost.
    pub fn loss(&self) -> Probability {
        self.losses.estimate().loss
    }

    /// The same with the uncertainty of the measurement.
    pub fn loss_at_most(&self) -> Probability {
        self.losses.estimate().upper
    }

    /// A symbol of so many bytes with a deadline goes out with `slack` to spare after its flight.
    pub fn timed(&mut self, now: Instant, bytes: usize, slack: Duration) {
        let timed = &mut self.timed;
        if timed.bytes == ByteCount::ZERO && timed.rate == Rate::ZERO {
            timed.since = now;
            self.replan_at = now;
        }
        if now.since(timed.since) >= STRETCH {
            let is_recent = now.since(timed.since) < STRETCH * 4;
            timed.rate = if is_recent {
                Rate::over(timed.bytes, now.since(timed.since))
            } else {
                Rate::ZERO
            };
            timed.bytes = ByteCount::ZERO;
            if !is_recent {
                timed.slacks = Slacks::default();
            }
            timed.since = now;
            self.replan_at = now;
        }
        self.timed.bytes += ByteCount::of(bytes + self.excess(bytes));
        self.timed.slacks.add(now, ByteCount::of(bytes), slack);
    }

    /// What the headers below a symbol of `bytes` take beyond those of its part of a full datagram:
    /// of speech and text each packet is headers by a sixth, and repair that leaves those out takes
    /// the room of what it is to repair.
    fn excess(&self, bytes: usize) -> usize {
        let full = self.coder.plan().payload.min(self.payload.unwrap_or(bytes)).max(1);
        UNDER_SYMBOL - UNDER_SYMBOL * bytes.min(full) / full
    }

    /// Plans repair anew where it is time to.
    pub fn replan(&mut self, now: Instant) {
        let Some(payload) = self.payload.filter(|_| now >= self.replan_at) else { return };
        let begins = self.timed.rate == Rate::ZERO && self.timed.bytes > ByteCount::ZERO;
        self.replan_at = now + if begins { BEGINNING } else { REPLAN };
        let (rtt, line) = (self.rtt(), self.line());
        let slack = self.timed.slacks.typical().unwrap_or(rtt / 4);
        let flow = self.timed.rate_at(now, line.rate, payload);
        // The line's rate is counted in IP packets.
        let most = line.rate.scaled(payload as u64, (payload + UNDER_SYMBOL) as u64);
        let loss = self.losses.estimate();
        self.many = many(loss.mean_burst_milli());
        let situation = Situation {
            loss,
            rtt: Some(rtt),
            slack,
            flow,
            spare: Rate::from_bps(most.as_bps().saturating_sub(flow.as_bps())),
            payload,
        };
        self.coder.adopt(self.planner.plan(&situation));
    }

    pub fn status(&self) -> PathStatus {
        let DecoderCounters { repairs, used, wasted, .. } = *self.decoder.counters();
        let CoderCounters { repairs: sent, repair_bytes, .. } = *self.coder.counters();
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
        let out_until = self.hints.out_until();
        let payload = self.payload.unwrap_or_default();
        PathStatus { state, estimate: self.estimate, loss: self.loss(), out_until, payload, stats }
    }
}

/// The shortest pause that is taken for the end of a transfer.
const IDLE: Duration = Duration::from_millis(10);
/// The shortest silence that means anything: schedulers and acknowledgement timers of busy machines
/// take less.
const SILENCE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// Bytes on the line in 20 s, of sources and of their repair: 40 symbols in a second, 127
    /// kbit/s with their headers, over 200 kbit/s whose loss is not known.
    fn carried(slack: Duration) -> (usize, usize) {
        let mut path = Attached::new(PathOptions::default(), Goal::default());
        path.payload = Some(1_430);
        let (rate, rtt) = (Rate::from_bps(200_000), Duration::from_millis(600));
        path.estimate = Estimate { rate, rtt, ..Estimate::default() };
        let content = Bytes::from(vec![7; 330]);
        let (mut sources, mut repairs, mut now) = (0, 0, Instant::ZERO);
        for _ in 0..40 * 20 {
            path.timed(now, content.len(), slack);
            path.replan(now);
            path.coder.protect(now, &content, Some(now + slack));
            sources += content.len() + UNDER_SYMBOL;
            while let Some(repair) = path.coder.poll(now) {
                repairs += repair.bytes.len() + UNDER_SYMBOL;
            }
            now += Duration::from_millis(25);
        }
        (sources, repairs)
    }

    /// Of speech and text each packet is headers by a sixth. Repair that did not count them took
    /// more than the line had left, and most of what it was to repair came late.
    #[test]
    fn repair_of_small_symbols_leaves_them_the_line_with_their_headers() {
        let most = 200_000 / 8 * 20;
        for millis in [100, 150, 200, 250, 300, 400] {
            let (sources, repairs) = carried(Duration::from_millis(millis));
            assert!(repairs > 0, "{millis} ms: there is room for some");
            assert!(sources + repairs <= most, "{millis} ms: {sources} and {repairs} in {most}");
        }
    }
}
