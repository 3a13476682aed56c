//! How often a symbol goes that is sent again.
//!
//! Once, where there is time for another round. Several times where its deadline leaves none, in
//! the [aftermath](super::aftermath) of a path that went silent, and where one more loss would
//! pause delivery for longer than a path may be silent: nothing that waits behind it in its flow is
//! delivered meanwhile. That is so where it was lost twice, and where losses are so rare that
//! nothing before it in its flow, whose arrival would let something be delivered, went out again
//! lately. Both are seldom, so that the copies cost little; they get a small part of what is sent,
//! and no more.

use super::attached::Attached;
use crate::repair::repetition::copies_for;
use skyhaul_units::{Duration, Probability};

/// What may be spent on copies of symbols that hold up delivery, in parts of [`PART`] of a copy.
#[derive(Debug)]
pub struct Allowance(u32);

/// One copy for so many symbols sent: 0.4 % of them.
const PART: u32 = 256;
/// Copies saved up at most: what 23 MB earn.
const SAVED_MAX: u32 = 64;
/// A symbol's copies take at most one part in so many of what is saved: where there is less for
/// each, all have some.
const SHARE: u32 = 16;
/// Above this, more symbols are lost twice than one copy each could be had for.
const LOSS_MAX: Probability = Probability::of(1, 16);
/// Share of symbols of which all copies may be lost: at 50 Mbit/s one in seven hours.
const TARGET: Probability = Probability::from_ppb(10);

impl Default for Allowance {
    /// Half of what is saved at most: a short transfer's losses are to be cheap too.
    fn default() -> Self {
        Self(SAVED_MAX / 2 * PART)
    }
}

impl Allowance {
    /// A symbol was sent.
    pub fn earn(&mut self) {
        self.0 = (self.0 + 1).min(SAVED_MAX * PART);
    }

    /// Takes up to so many copies; how many it had.
    pub fn take(&mut self, copies: u8) -> u8 {
        let taken = u32::from(copies).min(self.0 / PART / SHARE);
        self.0 -= taken * PART;
        taken as u8
    }
}

/// How often a symbol that was sent so many times should go out again at once, when for so long
/// nothing before it did: once where there is a round left until delivery has paused for longer
/// than a path may be silent.
pub fn copies_before_pause(path: &Attached, sends: u8, paused: Duration) -> u8 {
    let Some(round) = path.repair.coder.plan().round else { return 1 };
    let loss = path.repair.loss_at_most();
    // It paused at the earliest when the symbol would have arrived first.
    let paused = paused.min(round * u64::from(sends));
    if paused + round <= path.patience() || loss > LOSS_MAX {
        return 1;
    }
    copies_for(loss, TARGET).saturating_sub(sends).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_a_small_part_of_what_is_sent_and_share_what_there_is() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.take(200), 2, "one part in 16 of 32");
        for _ in 0..SAVED_MAX * PART * 2 {
            allowance.earn();
        }
        assert_eq!(allowance.take(200), 4, "no more is saved than 64");
        let sent = 1_000_000;
        let mut copies = 0;
        for _ in 0..sent {
            allowance.earn();
            copies += u32::from(allowance.take(3));
        }
        assert!((sent / PART..=sent / PART + SAVED_MAX).contains(&copies), "{copies}");
    }
}
