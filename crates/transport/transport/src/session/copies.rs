//! How many copies of a retransmission go out.
//!
//! One, where there is time for another round trip. Several in three cases: its deadline leaves no
//! time; a path has just [failed](super::aftermath); or one more loss would pause the delivery of
//! its flow for longer than a path may be silent. The last is the case for a symbol that was lost
//! twice, and where losses are so rare that delivery has not paused in its flow lately. Both are
//! rare, so that the copies cost little; an allowance limits them to a small part of what is sent.

use super::attached::Attached;
use crate::repair::repetition::copies_for;
use skyhaul_units::{Duration, Probability};

/// The allowance for copies of symbols that block delivery, in units of 1 / [`PART`] of a copy.
#[derive(Debug)]
pub struct Allowance(u32);

/// One copy for so many symbols sent: 0.4 % of them.
const PART: u32 = 256;
/// Copies saved up at most: what 23 MB earn.
const SAVED_MAX: u32 = 64;
/// A symbol's copies take at most one sixteenth of what is saved, so that later symbols get some
/// too.
const SHARE: u32 = 16;
/// Above this loss rate, the allowance does not suffice for one copy of each symbol that is lost
/// twice.
const LOSS_MAX: Probability = Probability::of(1, 16);
/// The share of symbols of which all copies may be lost: at 50 Mbit/s one in seven hours.
const TARGET: Probability = Probability::from_ppb(10);

impl Default for Allowance {
    /// Half of the maximum: a short transfer gets copies too.
    fn default() -> Self {
        Self(SAVED_MAX / 2 * PART)
    }
}

impl Allowance {
    /// A symbol was sent.
    pub fn earn(&mut self) {
        self.0 = (self.0 + 1).min(SAVED_MAX * PART);
    }

    /// Takes up to `copies` from the allowance; returns how many it granted.
    pub fn take(&mut self, copies: u8) -> u8 {
        let taken = u32::from(copies).min(self.0 / PART / SHARE);
        self.0 -= taken * PART;
        taken as u8
    }
}

/// How many copies of a symbol should go out, which was sent `sends` times, where delivery in its
/// flow has `paused` for so long at most. One is enough while a further round trip does not make
/// the pause longer than a path may be silent.
pub fn copies_before_pause(path: &Attached, sends: u8, paused: Duration) -> u8 {
    let Some(round) = path.repair.coder.plan().round else { return 1 };
    let loss = path.repair.loss_at_most();
    // The pause began when the symbol's first transmission would have arrived, or later.
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
