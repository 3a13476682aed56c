//! Which loss is the line's own, and which is caused by sending too much.
//!
//! The loss that goes on whatever we send is the line's: its share is counted over stretches in
//! which nothing suggests an excess. Loss that is significantly more than that, by its count and
//! its burst length, is a suspicion.

use super::intervals::Flight;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// What was sent over a round trip, and what of it is missing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    pub(super) packets: u64,
    pub(super) missing: u64,
    sent: ByteCount,
    span: Duration,
    flights: usize,
    /// Of them, those that were sent slower than allowed.
    limited: usize,
    pub(super) queue_max: Duration,
}

impl Round {
    pub(super) fn add(&mut self, flight: &Flight) {
        self.packets += flight.packets;
        self.missing += flight.packets.saturating_sub(flight.arrived);
        self.sent += flight.sent;
        self.span += flight.span();
        self.flights += 1;
        self.limited += usize::from(!flight.is_full());
        self.queue_max = self.queue_max.max(flight.queue_max);
    }

    /// A round trip of flights, or fewer where haste is needed.
    pub(super) const fn is_complete(&self, flights: usize) -> bool {
        self.flights >= flights && self.packets >= FEWEST_PACKETS
    }

    /// The rate at which it arrived, had it taken no longer than its sending; no less than
    /// [`LEAST_CARRIED`] of it.
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

    /// Whether more of it is missing than this controller is made for, by more than bursts explain.
    pub(super) const fn is_heavy(&self) -> bool {
        self.exceeds_heavy(4)
    }

    /// The same, by so much more than bursts explain that a part of a round trip is enough to say
    /// so.
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

/// The line's own loss.
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

    /// How the losses of a flight clump.
    pub(super) fn add_runs(&mut self, flight: &Flight) {
        self.clumped += flight.lost;
        self.runs += flight.runs;
        if self.clumped > MEMORY_LOST {
            self.clumped /= 2;
            self.runs /= 2;
        }
    }

    /// The loss of `round` is the line's after all: begin anew with it.
    pub(super) fn replace(&mut self, round: &Round) {
        (self.packets, self.lost) = (0, 0);
        self.add(round);
    }

    pub(super) const fn share(&self) -> Probability {
        Probability::of(self.lost, self.packets)
    }

    /// Of what was sent at `rate`, with `missing` of `packets` missing, the part that the line
    /// carried, where the excess of loss is too much for chance.
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
        // Losses in runs of mean length b, geometrically distributed, scatter as if each counted
        // 2b - 1. What the baseline itself is uncertain by comes on top.
        let runs = self.runs.max(1);
        let clumping = (2 * self.clumped.max(runs) - runs).div_ceil(runs).min(MOST_CLUMPING);
        let clumping =
            if self.clumped < FEWEST_LOST { clumping.max(UNKNOWN_CLUMPING) } else { clumping };
        // Where few packets were counted none may be missing by chance: one more burst could as
        // well be.
        let likely = ((self.lost + UNKNOWN_CLUMPING) * packets / self.packets.max(packets)).max(1);
        let uncertainty = likely * packets / self.packets.max(packets);
        let variance = (likely + uncertainty) * clumping;
        let chance = 3 * variance.isqrt() + packets / 200 + BATCH;
        missing > usual + chance
    }
}

/// What the line carried of what was sent at `rate`, as far as one look can tell.
pub(super) fn least_carried(rate: Rate, arrived: Rate) -> Rate {
    arrived.max(rate.scaled(1, LEAST_CARRIED))
}

/// Where less than one in 16 arrives, a link or a host stood still for a moment, which is no rate:
/// at that of a few packets in a moment the flow would not come back within minutes. Where so much
/// is too much, it is found again and again, each time by as much.
const LEAST_CARRIED: u64 = 16;

/// Fewer packets say nothing about loss.
const FEWEST_PACKETS: u64 = 48;

/// One in five: more than the 15 % that must be borne.
const HEAVY: u64 = 5;

/// A tenth more than what arrives at 15 % loss.
const OVERFULL: u64 = 130;

/// The baseline is that of the last 4,096 packets, or of eight rounds where these are more.
const MEMORY: u64 = 4_096;
const MEMORY_ROUNDS: u64 = 8;

/// How they clump is known from the last 256 to 512 lost.
const MEMORY_LOST: u64 = 512;

/// Bursts longer than 32 packets are an event, not a habit.
const MOST_CLUMPING: u64 = 64;

/// Before the line's bursts are known, those of eight packets are assumed.
const UNKNOWN_CLUMPING: u64 = 15;
const FEWEST_LOST: u64 = 64;

/// A batch of acknowledgements is counted in the flight of its newest packet.
const BATCH: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Instant;

    /// A second at 10 Mbit/s, of which `lost` packets in `runs` are missing.
    fn flight(packets: u64, lost: u64, runs: u64) -> Flight {
        let mut flight = Flight::beginning(Instant::ZERO, ByteCount::ZERO, Rate::from_mbps(10));
        flight.end = Some(Instant::ZERO + Duration::from_secs(1));
        flight.sent = Rate::from_mbps(10) * Duration::from_secs(1);
        (flight.packets, flight.arrived, flight.lost, flight.runs) =
            (packets, packets - lost, lost, runs);
        flight
    }

    fn round(packets: u64, lost: u64) -> Round {
        let mut round = Round::default();
        round.add(&flight(packets, lost, lost));
        round
    }

    /// A line that loses 5 % in runs of this length.
    fn five_percent_in_runs_of(length: u64) -> Baseline {
        let mut baseline = Baseline::default();
        for _ in 0..20 {
            baseline.add(&round(1_000, 50));
            baseline.add_runs(&flight(1_000, 48, 48 / length));
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
        baseline.add_runs(&flight(553, 33, 6));
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
