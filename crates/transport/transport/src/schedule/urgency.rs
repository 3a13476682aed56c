//! The urgency policy: ranks blocks by slack, priority and bytes unsent.
//!
//! The measures are those of `draft-shi-quic-dtp`: the slack at arrival, r = deadline − now −
//! one-way delay − unsent ÷ rate, as a share s of the block's lifetime, the priority, and the bytes
//! unsent. They are combined differently:
//!
//! rank = unsent ÷ worth × (1 + slope × s)², the smallest first, with worth = lowest priority −
//! priority + 1.
//!
//! A block rises as its slack shrinks. Of two with equal slack, the one with more worth for its
//! bytes goes first: where not all blocks can be on time, this decides how many are. (The apparent
//! tardiness cost rule of Vepsalainen and Morton, Management Science 33, 1987, with a square in
//! place of their exponential, so that it is exact in integers.) A started block is finished rather
//! than abandoned, because only unsent bytes count. The rank does not depend on the scale of time,
//! size or rate.
//!
//! The draft adds slack and priority and multiplies by the *share* unsent, so that a large block
//! costs no more than a small one. In random mixtures of three streams at 120 to 300 % of the line
//! it delivers 5 to 14 % less worth on time than this rank; replanning the whole set of blocks at
//! each change delivers up to 2 % more. Slopes between 5 and 10 differ by less than 1 % at loads up
//! to 150 %. With a smaller slope a line that is just full misses deadlines that it could keep;
//! with a larger one a heavily overloaded line does.
//!
//! - A block on which others depend counts together with them: all their bytes against all their
//!   worth. An intra frame of 60 kB then costs no more for each frame than the 29 that need it, and
//!   waits behind the rest of the previous group, whose intra frame is already sent.
//! - A block that cannot be in time ranks behind all that can.
//! - A block without deadline counts as a large one, whatever its size: it gives way to blocks with
//!   a deadline, and keeps the order of hand-over within its priority. Its rank falls with its age
//!   towards zero, so that it never starves, and never reaches zero, so that it does not overtake
//!   urgent blocks.

use super::arrival::{WHOLE, share};
use super::{Candidate, LineEstimate, Policy, SendOrder};
use core::num::NonZeroU8;
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant};

/// Weights of the urgency policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UrgencyConfig {
    /// How much slack counts against worth: 0 is worth for bytes alone, 255 nearly slack alone.
    /// Default 7.
    pub slope: u8,
    /// The number of the lowest priority; higher numbers count as it. One block of priority 0 is
    /// worth one more of the lowest than this. Default 2: three, two and one.
    pub lowest_priority: NonZeroU8,
    /// The age at which the rank of a block without a deadline has fallen by half. Default 10 s.
    pub patience: Duration,
}

impl UrgencyConfig {
    /// What was found best in simulation.
    pub const BEST: Self = Self {
        slope: 7,
        lowest_priority: NonZeroU8::MIN.saturating_add(1),
        patience: Duration::from_secs(10),
    };
}

impl Default for UrgencyConfig {
    fn default() -> Self {
        Self::BEST
    }
}

/// Blocks by urgency.
#[derive(Debug, Clone, Copy)]
pub struct Urgency {
    config: UrgencyConfig,
}

impl Urgency {
    /// A policy with these weights.
    pub const fn new(config: UrgencyConfig) -> Self {
        Self { config }
    }

    /// Bytes × (1 + slope × `slack`)² ÷ worth of `blocks`, in millionths of a byte. `slack` is in
    /// parts per billion of a lifetime.
    fn rank(&self, bytes: ByteCount, slack: u64, blocks: u32, priority: u8) -> u64 {
        let lowest = self.config.lowest_priority.get();
        let worth = (1 + u128::from(lowest - priority.min(lowest))) * u128::from(blocks.max(1));
        let factor = u128::from(WHOLE + u64::from(self.config.slope) * slack);
        // A square of billionths by a million millionths leaves millionths.
        let square = factor * factor / (u128::from(WHOLE) * 1_000);
        let rank = u128::from(bytes.as_u64()).saturating_mul(square) / worth;
        u64::try_from(rank).unwrap_or(u64::MAX)
    }
}

impl Policy for Urgency {
    fn key(&self, now: Instant, candidate: &Candidate, line: &LineEstimate) -> SendOrder {
        let Some(deadline) = candidate.deadline else {
            let patience = self.config.patience;
            let young = share(patience, patience + now.since(candidate.taken));
            let rank =
                u128::from(self.rank(UNDATED, WHOLE, 1, candidate.priority)) * u128::from(young);
            return SendOrder::new(
                u64::try_from(rank / u128::from(WHOLE)).unwrap_or(u64::MAX),
                0,
                candidate,
            );
        };
        let arrival = line.arrival(now, candidate.unsent);
        let slack = if arrival < deadline {
            share(deadline.since(arrival), deadline.since(candidate.taken))
        } else {
            0
        };
        let followers = candidate.followers;
        let bytes = candidate.unsent + followers.unsent;
        let blocks = followers.count.saturating_add(1);
        let rank = self.rank(bytes, slack, blocks, candidate.priority);
        let key = SendOrder::new(rank, candidate.unsent.as_u64(), candidate);
        if arrival > deadline { key.behind() } else { key }
    }
}

/// Assumed size of a block without deadline: the largest block that a capture makes.
const UNDATED: ByteCount = ByteCount::kib(256);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Followers;
    use skyhaul_units::Rate;

    /// 1 kB takes 1 ms.
    const LINE: LineEstimate =
        LineEstimate { rate: Rate::from_mbps(8), one_way_delay: Duration::from_millis(50) };
    const BEST: Urgency = Urgency::new(UrgencyConfig::BEST);

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn block(priority: u8, deadline: Option<u64>, size: u64, unsent: u64) -> Candidate {
        Candidate {
            size: ByteCount::new(size),
            unsent: ByteCount::new(unsent),
            priority,
            deadline: deadline.map(millis),
            taken: Instant::ZERO,
            order: 0,
            started: unsent < size,
            followers: Followers::default(),
        }
    }

    fn key(now: u64, block: &Candidate) -> SendOrder {
        BEST.key(millis(now), block, &LINE)
    }

    #[test]
    fn ranks_are_bytes_by_worth_and_slack() {
        let rank = |now, block: &Candidate| key(now, block).rank;
        // r = 1000 - 350 - 50 - 100 = 500 ms of 1000: (1 + 7 x 0.5) squared is 20.25, by a worth of
        // 3, 2, 1 and 1.
        for (priority, bytes) in [(0, 675_000), (1, 1_012_500), (2, 2_025_000), (9, 2_025_000)] {
            let block = block(priority, Some(1_000), 100_000, 100_000);
            assert_eq!(rank(350, &block), bytes * 1_000_000);
        }
        // A tenth left: r = 590 ms; (1 + 7 x 0.59) squared x 10 kB.
        assert_eq!(rank(350, &block(2, Some(1_000), 100_000, 10_000)), 263_169_000_000);
        // No slack at all, and still in time.
        assert_eq!(rank(850, &block(2, Some(1_000), 100_000, 100_000)), 100_000_000_000);
        // Without a deadline: 64 x 256 KiB, half of it after ten seconds.
        assert_eq!(rank(10_000, &block(2, None, 5, 5)), 64 * (256 << 10) * 1_000_000 / 2);
    }

    #[test]
    fn a_block_counts_with_what_waits_for_it() {
        let alone = block(2, Some(3_000), 60_000, 60_000);
        let followers = Followers { count: 29, unsent: ByteCount::new(29 * 6_000) };
        let whole = Candidate { followers, ..alone };
        // r = 3000 - 2040 - 50 - 60 = 850 ms of 3000: (1 + 7 x 0.2833) squared is 8.9; x 60 kB, or
        // x 234 kB for 30.
        assert_eq!(key(2_040, &alone).rank / 1_000_000, 534_016);
        assert_eq!(key(2_040, &whole).rank / 1_000_000, 69_422);
        let predicted = block(2, Some(3_000), 6_000, 6_000);
        assert!(
            key(2_040, &predicted) < key(2_040, &whole),
            "of one that is there the next frame goes first"
        );
        assert!(key(2_040, &whole) < key(1_000, &alone));
    }

    #[test]
    fn a_block_rises_as_its_slack_shrinks_and_falls_behind_when_it_is_gone() {
        let block = block(1, Some(1_000), 100_000, 100_000);
        let keys: Vec<SendOrder> = (0..=850).step_by(50).map(|now| key(now, &block)).collect();
        assert!(keys.is_sorted_by(|earlier, later| earlier > later), "{keys:?}");
        let worthless = Candidate { priority: 2, ..block };
        assert!(key(851, &block) > key(0, &worthless));
        assert!(key(851, &block) > key(0, &Candidate { deadline: None, ..worthless }));
    }

    #[test]
    fn without_a_deadline_a_block_neither_starves_nor_jumps_ahead() {
        let bulk = block(2, None, 1_000, 1_000);
        let text = |now, slack| Candidate {
            taken: millis(now),
            deadline: Some(millis(now + slack)),
            ..block(0, None, 1_000, 1_000)
        };
        for minutes in [0, 1, 10] {
            let now = minutes * 60_000;
            assert!(key(now, &bulk) > key(now, &text(now, 800)), "{minutes} minutes");
        }
        let days = 2 * 86_400_000;
        assert!(key(days, &bulk) < key(days, &text(days, 800)));
        // In the order of hand-over, whatever the sizes.
        let later = Candidate {
            size: ByteCount::new(10),
            unsent: ByteCount::new(10),
            taken: millis(1),
            ..bulk
        };
        assert!(key(5_000, &bulk) < key(5_000, &later));
    }
}
