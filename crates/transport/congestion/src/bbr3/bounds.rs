//! Bounds from loss, short-term and long-term (draft-ietf-ccwg-bbr 5.5.10, 5.3.3.6).

use crate::segments::Multiple;
use crate::{Ack, LossEvent};
use skyhaul_units::{ByteCount, Rate};

/// The bounds, and the round trips in which loss is counted.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    segment: ByteCount,
    long_term: Option<ByteCount>,
    short_rate: Option<Rate>,
    short_inflight: Option<ByteCount>,
    latest: Latest,
    losses: Losses,
    slope: Slope,
    /// Losses now belong to a probe.
    pub(super) probing: bool,
    reductions: u64,
}

/// What arrived in the present round trip of losses.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    rate: Rate,
    inflight: ByteCount,
}

#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    delivered: ByteCount,
    round_ends: ByteCount,
    round_began: bool,
    in_round: bool,
    ranges: u32,
}

/// How fast the long-term bound is raised: twice as fast each round trip.
#[derive(Debug, Clone, Copy, Default)]
struct Slope {
    /// Bytes acknowledged for each segment by which it rises.
    bytes_per_segment: Option<u64>,
    acked: u64,
    rounds: u32,
}

impl Bounds {
    pub(super) fn new(segment: ByteCount) -> Self {
        Self {
            segment,
            long_term: None,
            short_rate: None,
            short_inflight: None,
            latest: Latest::default(),
            losses: Losses::default(),
            slope: Slope::default(),
            probing: false,
            reductions: 0,
        }
    }

    /// Bound of the rate.
    pub(super) const fn rate(&self) -> Option<Rate> {
        self.short_rate
    }

    /// Short-term bound of the data in flight.
    pub(super) const fn short_term(&self) -> Option<ByteCount> {
        self.short_inflight
    }

    /// Long-term bound of the data in flight.
    pub(super) const fn long_term(&self) -> Option<ByteCount> {
        self.long_term
    }

    /// The long-term bound with 15 % left to others.
    pub(super) fn with_headroom(&self) -> Option<ByteCount> {
        self.long_term.map(|bound| bound - bound.scaled(15, 100).max(self.segment))
    }

    pub(super) const fn latest_inflight(&self) -> ByteCount {
        self.latest.inflight
    }

    pub(super) const fn delivered(&self) -> ByteCount {
        self.losses.delivered
    }

    /// How often a bound was lowered.
    pub(super) const fn reductions(&self) -> u64 {
        self.reductions
    }

    pub(super) fn note_delivery(&mut self, ack: &Ack) {
        let sample = &ack.sample;
        self.losses.delivered = sample.total;
        self.latest.rate = self.latest.rate.max(sample.rate().unwrap_or_default());
        self.latest.inflight = self.latest.inflight.max(sample.delivered);
        self.losses.round_began = sample.prior >= self.losses.round_ends;
        if self.losses.round_began {
            self.losses.round_ends = sample.total;
        }
    }

    pub(super) fn note_loss(&mut self, loss: &LossEvent) {
        if !self.losses.in_round {
            self.losses.round_ends = self.losses.delivered;
        }
        self.losses.in_round = true;
        self.losses.ranges += u32::from(!loss.continues);
    }

    /// Whether a round trip of losses is over.
    pub(super) const fn end_of_loss_round(&self) -> bool {
        self.losses.round_began
    }

    /// More than 2 % were lost, in at least six runs: start-up is over.
    pub(super) fn is_heavy(&self, ack: &Ack) -> bool {
        self.losses.ranges >= START_RANGES
            && is_too_high(ack.sample.lost, ack.sample.in_flight_when_sent)
    }

    /// After a round trip with loss: what arrived in it, but not less than 0.7 of the bound before.
    pub(super) fn lower(&mut self, rate: Rate, window: ByteCount) {
        if !self.losses.in_round {
            return;
        }
        let (before, under_way) =
            (self.short_rate.unwrap_or(rate), self.short_inflight.unwrap_or(window));
        self.short_rate = Some(self.latest.rate.max(before.scaled(7, 10)));
        self.short_inflight = Some(self.latest.inflight.max(under_way.scaled(7, 10)));
        self.reductions += 1;
    }

    pub(super) const fn forget_losses(&mut self) {
        self.losses.in_round = false;
        self.losses.ranges = 0;
    }

    pub(super) const fn forget_short_term(&mut self) {
        self.short_rate = None;
        self.short_inflight = None;
    }

    /// The next round trip of losses begins with this acknowledgement.
    pub(super) fn advance(&mut self, ack: &Ack) {
        if self.losses.round_began {
            let rate = ack.sample.rate().unwrap_or_default();
            self.latest = Latest { rate, inflight: ack.sample.delivered };
        }
    }

    /// Probing is over.
    pub(super) fn restart(&mut self, ack: &Ack) {
        self.forget_losses();
        self.latest = Latest::default();
        self.losses.round_ends = ack.sample.total;
        self.slope.bytes_per_segment = None;
    }

    pub(super) fn set_long_term(&mut self, bound: ByteCount) {
        self.reductions += 1;
        self.long_term = Some(bound);
    }

    /// This much was in flight without heavy loss.
    pub(super) fn allow(&mut self, in_flight: ByteCount) {
        self.long_term = self.long_term.map(|bound| bound.max(in_flight));
    }

    pub(super) const fn restart_slope(&mut self) {
        self.slope = Slope { bytes_per_segment: None, acked: 0, rounds: 0 };
    }

    /// Twice as many segments in the coming round trip as in the last.
    pub(super) fn raise_slope(&mut self, window: ByteCount) {
        let segments = 1u64 << self.slope.rounds.min(MAX_SLOPE);
        self.slope.rounds += 1;
        self.slope.bytes_per_segment = Some((window.as_u64() / segments).max(1));
    }

    /// Raises the long-term bound for `acked`, if the window has reached it. Returns whether it
    /// has.
    pub(super) fn raise(&mut self, acked: ByteCount, window: ByteCount) -> bool {
        let Some(bound) = self.long_term.filter(|bound| window >= *bound) else { return false };
        if let Some(per_segment) = self.slope.bytes_per_segment {
            self.slope.acked = self.slope.acked.saturating_add(acked.as_u64());
            let segments = self.slope.acked / per_segment;
            self.slope.acked -= segments * per_segment;
            self.long_term = Some(bound + self.segment.times(segments));
        }
        true
    }
}

/// Whether more than 2 % of the data in flight was lost.
pub(super) fn is_too_high(lost: ByteCount, in_flight: ByteCount) -> bool {
    lost > in_flight.scaled(2, 100)
}

/// How much was in flight when the loss crossed 2 %: the packet may be a large one.
pub(super) fn inflight_at_loss(loss: &LossEvent) -> ByteCount {
    let before = loss.in_flight_when_sent - loss.bytes;
    let lost_before = loss.lost_since_sent - loss.bytes;
    before + (before.scaled(2, 100) - lost_before).scaled(100, 98)
}

/// Runs of loss in one round trip that end start-up.
const START_RANGES: u32 = 6;

/// 2^30 segments a round trip: more than any line has room for.
const MAX_SLOPE: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    const SEGMENT: ByteCount = ByteCount::new(1_500);

    fn ack(total: u64, prior: u64, mbps: u64) -> Ack {
        let mut ack = Ack::default();
        ack.sample.total = ByteCount::new(total);
        ack.sample.prior = ByteCount::new(prior);
        ack.sample.interval = Duration::from_millis(8);
        ack.sample.delivered = ByteCount::new(mbps * 1_000);
        ack
    }

    #[test]
    fn a_round_with_loss_lowers_to_what_arrived_but_not_below_seven_tenths() {
        let mut bounds = Bounds::new(SEGMENT);
        for (arrived, expected) in [(9, 9), (1, 6)] {
            bounds.note_delivery(&ack(10_000, 10_000, arrived));
            bounds.note_loss(&LossEvent::default());
            bounds.lower(Rate::from_mbps(10), ByteCount::new(100_000));
            assert_eq!(bounds.rate().map(|rate| rate.as_bps() / 1_000_000), Some(expected));
            bounds.forget_losses();
            bounds.advance(&ack(10_000, 10_000, 0));
        }
        bounds.lower(Rate::ZERO, ByteCount::ZERO);
        assert_eq!(bounds.reductions(), 2, "nothing without loss");
        bounds.forget_short_term();
        assert_eq!((bounds.rate(), bounds.short_term()), (None, None));
    }

    #[test]
    fn acknowledgements_of_any_size_are_added_up() {
        let mut bounds = Bounds::new(SEGMENT);
        bounds.set_long_term(SEGMENT);
        let window = ByteCount::new(u64::MAX);
        bounds.raise_slope(window);
        for bytes in [u64::MAX - 1, u64::MAX] {
            assert!(bounds.raise(ByteCount::new(bytes), window));
        }
        assert!(bounds.long_term() > Some(SEGMENT));
    }

    #[test]
    fn the_long_term_bound_rises_twice_as_fast_each_round() {
        let mut bounds = Bounds::new(SEGMENT);
        let window = SEGMENT.times(1_000);
        bounds.set_long_term(SEGMENT.times(100));
        bounds.restart_slope();
        bounds.raise_slope(window);
        let reached = [(); 4].map(|()| {
            assert!(bounds.raise(window, window));
            bounds.raise_slope(window);
            bounds.long_term().unwrap().as_u64() / 1_500
        });
        assert_eq!(reached, [101, 103, 107, 115]);
        assert_eq!(bounds.with_headroom().unwrap().as_u64() / 1_500, 97);
    }

    #[test]
    fn the_flight_at_which_loss_became_heavy_lies_within_the_packet() {
        let loss = LossEvent {
            bytes: ByteCount::new(1_500),
            in_flight_when_sent: ByteCount::new(150_000),
            lost_since_sent: ByteCount::new(4_000),
            ..LossEvent::default()
        };
        assert!(is_too_high(loss.lost_since_sent, loss.in_flight_when_sent));
        // 148,500 before, 2,500 of it lost: 2,970 would be 2 %, (2,970 - 2,500) / 0.98 more were
        // allowed.
        assert_eq!(inflight_at_loss(&loss), ByteCount::new(148_500 + 479));
    }
}
