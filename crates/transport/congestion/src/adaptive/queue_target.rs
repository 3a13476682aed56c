//! The target of the queue, and the lengths of queues that follow from it.

use skyhaul_units::{ByteCount, Duration, Rate};

/// What determines the target now.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueTarget {
    /// The base RTT.
    pub(super) base: Duration,
    /// A smaller change of the round trip may be jitter.
    pub(super) noise: Duration,
    /// Bound of the target, where the line's queue is shallow.
    pub(super) shallow: Option<Duration>,
    pub(super) capacity: Rate,
}

impl QueueTarget {
    /// The target at the present capacity.
    pub(super) fn target(&self) -> Duration {
        self.at(self.capacity)
    }

    /// The target at `rate`. A queue below the line's jitter cannot be controlled; beyond a shallow
    /// queue's depth it would overflow.
    pub(super) fn at(&self, rate: Rate) -> Duration {
        // In jitter the target is twice what counts as no queue: see `quiet_below`.
        let noise = if self.is_jittery() { self.noise * 3 / 2 } else { self.noise };
        let wanted = self.calm(rate).max(noise);
        self.shallow.map_or(wanted, |shallow| wanted.min(shallow))
    }

    /// The target at `rate` on a line without jitter.
    pub(super) fn calm(&self, rate: Rate) -> Duration {
        let square = TARGET_NANOS * TARGET_NANOS * u128::from(TARGET_RATE.as_bps());
        let by_rate = (square / u128::from(rate.as_bps().max(1))).isqrt();
        let by_rate = Duration::from_nanos(u64::try_from(by_rate).unwrap_or(u64::MAX));
        // A soft bound: near it, too, the slower of two flows has the larger target.
        let bound = self.base.scaled(MOST_TARGET, 100);
        let square = |span: Duration| u128::from(span.as_nanos()) * u128::from(span.as_nanos());
        let both = u64::try_from((square(by_rate) + square(bound)).isqrt()).unwrap_or(u64::MAX);
        let wanted = by_rate.scaled(bound.as_nanos(), both.max(1));
        wanted.max(LEAST_TARGET).max(rate.time_for(TWO_PACKETS))
    }

    /// Whether round trips scatter by more than the target. Not on a base RTT of 12 ms or less:
    /// there the scatter is that of the hosts' timers.
    pub(super) fn is_jittery(&self) -> bool {
        let ticks = LEAST_JITTER.max(self.calm(self.capacity));
        self.base > LEAST_JITTER * 2 && self.noise > ticks
    }

    /// A shorter queue counts as none: a quarter of the target, or, in jitter, half of the target
    /// there (3/4 of the noise of 3/2), which the smallest of many samples still resolves.
    pub(super) fn quiet_below(&self) -> Duration {
        if self.is_jittery() { self.noise * 3 / 4 } else { self.target() / 4 }
    }

    /// A longer queue is not ours, if it stays: twice our target at `best`, the highest capacity of
    /// late, and half as much again as the target now. On slow lines, whose target approaches a
    /// quarter of the base RTT, a tenth of that counts instead of the target.
    pub(super) fn foreign_above(&self, best: Rate) -> Duration {
        let at_best = self.at(best.max(self.capacity));
        (at_best.min((self.base / 10).max(LEAST_FOREIGN)) * 2).max(self.target() * 3 / 2)
    }

    /// The time within which a deviation of the queue is corrected: a round trip, the delay of the
    /// control loop. On short routes four times the target, so that the pace does not follow the
    /// noise.
    pub(super) fn horizon(&self) -> Duration {
        self.base.max(self.target() * 4)
    }
}

/// The target is 5 ms at 100 Mbit/s: 40 packets, 3 % of a round trip of 160 ms. At half the rate it
/// is 1.4 times as long.
const TARGET_NANOS: u128 = 5_000_000;
const TARGET_RATE: Rate = Rate::from_mbps(100);

/// Bound of the target, as a percentage of the base RTT: on slow lines the queue adds at most a
/// quarter to the delay.
const MOST_TARGET: u64 = 25;

/// The sender's pacing ticks of 2 ms make a queue of up to 2 ms by themselves.
const LEAST_TARGET: Duration = Duration::from_millis(3);

/// Pacing ticks and batches of acknowledgements make round trips scatter by less than this.
const LEAST_JITTER: Duration = Duration::from_millis(6);

/// A queue of less than two packets cannot be told from none.
const TWO_PACKETS: ByteCount = ByteCount::new(3_000);

/// Twice this is a foreign queue on the shortest routes: more than hosts' timers cause.
const LEAST_FOREIGN: Duration = Duration::from_millis(8);
