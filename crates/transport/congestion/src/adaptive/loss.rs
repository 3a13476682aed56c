//! The baseline: the loss that the line has by itself, as opposed to loss from sending too much.
//!
//! Its share is measured over round trips in which nothing suggests an overload. Loss that exceeds
//! it significantly, given the packets' number and the length of bursts, is an excess.

use super::intervals::Interval;
use super::loss_bounds::least_carried;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// Packets sent over about a round trip, and how many of them are missing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    pub(super) packets: u64,
    pub(super) missing: u64,
    sent: ByteCount,
    span: Duration,
    intervals: usize,
    /// Of them, those that were sent slower than allowed.
    limited: usize,
    pub(super) queue_max: Duration,
}

impl Round {
    pub(super) fn add(&mut self, interval: &Interval) {
        self.packets += interval.packets;
        self.missing += interval.packets.saturating_sub(interval.arrived);
        self.sent += interval.sent;
        self.span += interval.span();
        self.intervals += 1;
        self.limited += usize::from(!interval.is_full());
        self.queue_max = self.queue_max.max(interval.queue_max);
    }

    /// Whether it holds so many intervals, and enough packets.
    pub(super) const fn is_complete(&self, intervals: usize) -> bool {
        self.intervals >= intervals && self.packets >= FEWEST_PACKETS
    }

    /// The rate of arrival, taken over the time of sending; bounded by [`least_carried`].
    pub(super) fn arrived(&self) -> Rate {
        least_carried(
            self.rate(),
            self.rate().scaled(self.packets - self.missing, self.packets.max(1)),
        )
    }

    /// The rate it was sent at.
    pub(super) const fn rate(&self) -> Rate {
        Rate::over(self.sent, self.span)
    }

    /// Whether more is missing than this controller is made for, and than bursts explain: two
    /// standard deviations above a fifth.
    pub(super) const fn is_heavy(&self) -> bool {
        self.exceeds_heavy(4)
    }

    /// The same by two and a half standard deviations, so that a part of a round trip is enough to
    /// decide.
    pub(super) const fn is_surely_heavy(&self) -> bool {
        self.exceeds_heavy(5)
    }

    const fn exceeds_heavy(&self, half_deviations: u64) -> bool {
        let usual = self.packets / HEAVY;
        self.missing > usual + half_deviations * (self.missing * UNKNOWN_CLUMPING).isqrt() / 2
    }

    /// Whether all of it was sent as fast as allowed, and much more than arrived.
    pub(super) fn is_overfull(&self) -> bool {
        self.limited == 0 && self.rate() > self.arrived().scaled(OVERFULL, 100)
    }

    pub(super) const fn loss(&self) -> Probability {
        Probability::of(self.missing, self.packets)
    }
}

/// The loss that the line has by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Baseline {
    packets: u64,
    lost: u64,
    /// How losses clump: of these, so many in runs.
    clumped: u64,
    runs: u64,
}

impl Baseline {
    /// A round in which nothing suggests that we sent too much.
    pub(super) fn add(&mut self, round: &Round) {
        self.packets += round.packets;
        self.lost += round.missing;
        let memory = MEMORY.max(round.packets * MEMORY_ROUNDS);
        if self.packets > memory {
            self.lost = self.lost * memory / self.packets;
            self.packets = memory;
        }
    }

    /// Takes the lengths of an interval's bursts of loss.
    pub(super) fn add_runs(&mut self, interval: &Interval) {
        self.clumped += interval.lost;
        self.runs += interval.runs;
        if self.clumped > MEMORY_LOST {
            self.clumped /= 2;
            self.runs /= 2;
        }
    }

    /// The loss of `round` is the line's after all: starts anew from it.
    pub(super) fn replace(&mut self, round: &Round) {
        (self.packets, self.lost) = (0, 0);
        self.add(round);
    }

    pub(super) const fn share(&self) -> Probability {
        Probability::of(self.lost, self.packets)
    }

    /// The part of `rate` that the line carried, where `missing` of `packets` is an excess beyond
    /// chance.
    pub(super) fn carried(&self, rate: Rate, packets: u64, missing: u64) -> Option<Rate> {
        if !self.is_excess(packets, missing) {
            return None;
        }
        let arrived = Probability::of(packets - missing.min(packets), packets).as_ppb();
        let usual = self.share().complement().as_ppb().max(1);
        Some(least_carried(rate, rate.scaled(u64::from(arrived), u64::from(usual)).min(rate)))
    }

    fn is_excess(&self, packets: u64, missing: u64) -> bool {
        let usual = self.lost * packets / self.packets.max(1);
        // Losses in bursts of mean length b, geometrically distributed, have the variance of single
        // losses times 2b - 1. The uncertainty of the baseline itself is added.
        let runs = self.runs.max(1);
        let clumping = (2 * self.clumped.max(runs) - runs).div_ceil(runs).min(MOST_CLUMPING);
        let clumping =
            if self.clumped < FEWEST_LOST { clumping.max(UNKNOWN_CLUMPING) } else { clumping };
        // A baseline of few packets may have missed a burst by chance: one more is assumed.
        let likely = ((self.lost + UNKNOWN_CLUMPING) * packets / self.packets.max(packets)).max(1);
        let uncertainty = likely * packets / self.packets.max(packets);
        let variance = (likely + uncertainty) * clumping;
        // Three standard deviations, half a percent of the packets, and one acknowledgement's
        // batch.
        let chance = 3 * variance.isqrt() + packets / 200 + BATCH;
        missing > usual + chance
    }
}

/// Packets of a round: fewer do not show its loss.
const FEWEST_PACKETS: u64 = 48;

/// One in five is heavy: more than the 15 % that the controller must bear.
const HEAVY: u64 = 5;

/// Percentage of the rate of arrival above which a round is overfull: a tenth more than is sent for
/// it at 15 % loss.
const OVERFULL: u64 = 130;

/// The baseline covers the last 4,096 packets, or eight rounds where these are more.
const MEMORY: u64 = 4_096;
const MEMORY_ROUNDS: u64 = 8;

/// The length of bursts is that of the last 256 to 512 losses.
const MEMORY_LOST: u64 = 512;

/// Bound of 2b - 1: bursts of more than 32 packets are outages, not the line's usual loss.
const MOST_CLUMPING: u64 = 64;

/// 2b - 1 for bursts of eight packets, assumed until 64 losses are known.
const UNKNOWN_CLUMPING: u64 = 15;
const FEWEST_LOST: u64 = 64;

/// Packets of one acknowledgement: those of the next one may still be missing.
const BATCH: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Instant;

    /// A second at 10 Mbit/s, of which `lost` packets in `runs` are missing.
    fn interval(packets: u64, lost: u64, runs: u64) -> Interval {
        let mut interval = Interval::beginning(Instant::ZERO, ByteCount::ZERO, Rate::from_mbps(10));
        interval.end = Some(Instant::ZERO + Duration::from_secs(1));
        interval.sent = Rate::from_mbps(10) * Duration::from_secs(1);
        (interval.packets, interval.arrived, interval.lost, interval.runs) =
            (packets, packets - lost, lost, runs);
        interval
    }

    fn round(packets: u64, lost: u64) -> Round {
        let mut round = Round::default();
        round.add(&interval(packets, lost, lost));
        round
    }

    /// A line that loses 5 % in runs of this length.
    fn five_percent_in_runs_of(length: u64) -> Baseline {
        let mut baseline = Baseline::default();
        for _ in 0..20 {
            baseline.add(&round(1_000, 50));
            baseline.add_runs(&interval(1_000, 48, 48 / length));
        }
        baseline
    }

    #[test]
    fn the_share_follows_the_last_few_thousand() {
        let mut baseline = five_percent_in_runs_of(1);
        assert_eq!(baseline.share(), Probability::of(5, 100));
        (0..40).for_each(|_| baseline.add(&round(1_000, 0)));
        assert!(baseline.share() < Probability::of(1, 1_000), "{}", baseline.share());
    }

    #[test]
    fn what_is_usual_is_no_excess_and_much_more_is() {
        let baseline = five_percent_in_runs_of(1);
        let rate = Rate::from_mbps(10);
        assert_eq!(baseline.carried(rate, 1_000, 50), None);
        assert_eq!(baseline.carried(rate, 1_000, 70), None);
        // 145 of 1,000 missing: 855 arrive where 950 would, so 9 Mbit/s were carried.
        assert_eq!(baseline.carried(rate, 1_000, 145), Some(Rate::from_mbps(9)));
    }

    #[test]
    fn bursts_must_be_exceeded_by_more_than_single_losses() {
        let rate = Rate::from_mbps(10);
        assert!(five_percent_in_runs_of(1).carried(rate, 1_000, 100).is_some());
        assert!(five_percent_in_runs_of(8).carried(rate, 1_000, 100).is_none());
        assert!(five_percent_in_runs_of(8).carried(rate, 1_000, 250).is_some());
    }

    #[test]
    fn few_packets_without_a_loss_are_no_proof_of_a_clean_line() {
        // 10 % in bursts of 8: 259 packets came through whole, then 58 of 294 were lost.
        let rate = Rate::from_mbps(10);
        let mut baseline = Baseline::default();
        baseline.add(&round(259, 0));
        baseline.add_runs(&interval(553, 33, 6));
        assert_eq!(baseline.carried(rate, 294, 58), None);
        baseline.add(&round(4_096, 0));
        assert!(baseline.carried(rate, 294, 58).is_some());
    }

    #[test]
    fn a_few_packets_on_a_line_without_history_say_nothing() {
        assert_eq!(Baseline::default().carried(Rate::from_mbps(10), 20, 10), None);
        assert!(!round(10, 5).is_complete(1));
    }
}
