//! The weights of `draft-shi-quic-dtp`, as published. For comparison: [`Urgency`](super::Urgency)
//! uses the same measures and keeps more deadlines.
//!
//! The draft's remaining time is the slack at arrival, r = deadline − now − one-way delay − unsent
//! ÷ rate. A block's weight is ((1 − a) × w + a × priority ÷ lowest priority) × unsent ÷ size,
//! where w is r ÷ lifetime, and beyond the deadline the lateness ÷ lifetime (at most 1) + beta; the
//! smallest weight is sent first. So a block rises as its slack shrinks, a started block is
//! finished rather than abandoned, and a block that cannot be in time ranks behind all that can.
//!
//! The draft does not cover blocks without a deadline. Here their w is patience ÷ (patience + age):
//! it starts where that of a new block with a deadline starts, so that they do not overtake it; it
//! always falls, so that they do not starve; and it is never zero, so that a block with a deadline
//! overtakes them before its slack is gone.

use super::arrival::{WHOLE, share};
use super::{Candidate, LineEstimate, Policy, SendOrder};
use core::num::NonZeroU8;
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, Instant, Probability};

/// The draft's constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DraftConfig {
    /// How much the priority counts against the slack (the draft's a): `"0 %"` is slack alone,
    /// `"100 %"` priority alone.
    pub priority_share: Probability,
    /// What a block that cannot make it is set back by (the draft's beta), in lifetimes.
    pub late_setback: u32,
    /// The number of the lowest priority; higher numbers count as it.
    pub lowest_priority: NonZeroU8,
    /// The age at which a block without a deadline has as much slack left as one in the middle of
    /// its lifetime.
    pub patience: Duration,
}

impl DraftConfig {
    /// The constants as published.
    pub const WRITTEN: Self = Self {
        priority_share: Probability::from_ppb(500_000_000),
        late_setback: 100_000,
        lowest_priority: NonZeroU8::MIN.saturating_add(1),
        patience: Duration::from_secs(10),
    };
}

impl Default for DraftConfig {
    fn default() -> Self {
        Self::WRITTEN
    }
}

/// Blocks by the draft's weight.
#[derive(Debug, Clone, Copy)]
pub struct Draft {
    config: DraftConfig,
}

impl Draft {
    /// A policy of these weights.
    pub const fn new(config: DraftConfig) -> Self {
        Self { config }
    }

    /// The draft's w, in parts per billion of a lifetime.
    fn slack_share(&self, now: Instant, candidate: &Candidate, line: &LineEstimate) -> u64 {
        let Some(deadline) = candidate.deadline else {
            let age = now.since(candidate.taken);
            return share(self.config.patience, self.config.patience + age);
        };
        let lifetime = deadline.since(candidate.taken);
        let arrival = line.arrival(now, candidate.unsent);
        if arrival < deadline {
            share(deadline.since(arrival), lifetime)
        } else {
            share(arrival.since(deadline), lifetime) + WHOLE * u64::from(self.config.late_setback)
        }
    }
}

impl Policy for Draft {
    fn key(&self, now: Instant, candidate: &Candidate, line: &LineEstimate) -> SendOrder {
        let slack = u128::from(self.slack_share(now, candidate, line));
        let lowest = self.config.lowest_priority.get();
        let priority =
            u128::from(candidate.priority.min(lowest)) * u128::from(WHOLE) / u128::from(lowest);
        let counts = u128::from(self.config.priority_share.as_ppb());
        let weight = (u128::from(WHOLE) - counts) * slack + counts * priority;
        let unsent = u128::from(candidate.unsent.as_u64().min(candidate.size.as_u64()));
        let rank = weight / u128::from(WHOLE) * unsent / u128::from(candidate.size.as_u64().max(1));
        SendOrder::new(
            u64::try_from(rank).unwrap_or(u64::MAX),
            candidate.unsent.as_u64(),
            candidate,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{ByteCount, Rate};

    /// 1 kB takes 1 ms.
    const LINE: LineEstimate =
        LineEstimate { rate: Rate::from_mbps(8), one_way_delay: Duration::from_millis(50) };
    const DRAFT: Draft = Draft::new(DraftConfig::WRITTEN);

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
            followers: crate::schedule::Followers::default(),
        }
    }

    /// The draft's weight in thousandths.
    fn weight(now: u64, block: &Candidate) -> u64 {
        DRAFT.key(millis(now), block, &LINE).rank / 1_000_000
    }

    #[test]
    fn weights_are_the_drafts() {
        // r = 1000 - 400 - 50 - 100 = 450 ms of 1000: w = 0.45; half of it, nothing for the highest
        // priority.
        assert_eq!(weight(400, &block(0, Some(1_000), 100_000, 100_000)), 225);
        // The lowest of three priorities: 0.225 + 0.5.
        assert_eq!(weight(400, &block(2, Some(1_000), 100_000, 100_000)), 725);
        // A lower one counts as the lowest; the middle one half of it.
        assert_eq!(weight(400, &block(9, Some(1_000), 100_000, 100_000)), 725);
        assert_eq!(weight(400, &block(1, Some(1_000), 100_000, 100_000)), 475);
        // A tenth left: r = 1000 - 400 - 50 - 10 = 540; (0.27 + 0.5) / 10.
        assert_eq!(weight(400, &block(2, Some(1_000), 100_000, 10_000)), 77);
        // Late by 200 of 1000 ms: (0.2 + 100000) / 2.
        assert_eq!(weight(1_050, &block(0, Some(1_000), 100_000, 100_000)), 50_000_100);
    }

    #[test]
    fn a_block_rises_as_its_slack_shrinks_and_falls_behind_when_it_is_gone() {
        let block = block(1, Some(1_000), 100_000, 100_000);
        let weights: Vec<u64> = (0..=850).step_by(50).map(|now| weight(now, &block)).collect();
        assert!(weights[..17].is_sorted_by(|earlier, later| earlier > later), "{weights:?}");
        assert!(weights[17] > 1_000_000, "{weights:?}");
    }

    #[test]
    fn without_a_deadline_a_block_neither_starves_nor_jumps_ahead() {
        let bulk = block(1, None, 100_000, 100_000);
        let fresh = block(1, Some(1_000), 1_000, 1_000);
        assert!(weight(0, &bulk) > weight(0, &fresh));
        // Ten seconds old it goes before a fresh block, but not before one with a tenth of its
        // slack.
        let at = |now: u64, candidate: &Candidate| DRAFT.key(millis(now), candidate, &LINE);
        let fresh = |now, slack| Candidate {
            taken: millis(now),
            deadline: Some(millis(now + slack)),
            ..fresh
        };
        assert!(at(10_000, &bulk) < at(10_000, &fresh(10_000, 1_000)));
        let urgent = Candidate { taken: millis(9_150), ..fresh(10_000, 150) };
        assert!(at(10_000, &bulk) > at(10_000, &urgent));
    }
}
