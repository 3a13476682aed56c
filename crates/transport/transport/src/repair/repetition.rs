//! The number of copies of a retransmitted symbol: one while there is time for further rounds, more
//! as the deadline nears.
//!
//! A copy costs the same in any round, but one of a later round is needed only if all before it
//! were lost. The cheapest way to a given residual loss therefore sends few copies in early rounds
//! and many in the last; it is computed exactly, backwards from the last round.

use skyhaul_units::Probability;
use std::sync::Arc;

/// Copies by rounds left and copies still needed, for one loss rate and target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies(Arc<Table>);

#[derive(Debug, PartialEq, Eq)]
struct Table {
    /// Transmissions that reach the target together, the first one included.
    wanted: u8,
    /// Copies to send now, by rounds left after this one, then by copies still needed.
    now: [[u8; COPIES_MAX + 1]; ROUNDS_MAX + 1],
}

/// Most transmissions of one symbol, the first one included: 60 % loss to 1e-9 takes 41.
pub const COPIES_MAX: usize = 48;

/// Rounds considered: with more, one copy now is best at any loss below 60 %.
pub const ROUNDS_MAX: usize = 16;

/// The fewest transmissions of one symbol that are all lost with a probability of at most `target`;
/// at most [`COPIES_MAX`].
pub fn copies_for(loss: Probability, target: Probability) -> u8 {
    let mut all_lost = 1.0;
    let reaches = |_: &usize| {
        all_lost *= loss.as_f64();
        all_lost <= target.as_f64()
    };
    (1..COPIES_MAX).find(reaches).unwrap_or(COPIES_MAX) as u8
}

impl Copies {
    /// For a loss of `loss`, where a share of symbols of at most `target` may never arrive.
    pub fn for_target(loss: Probability, target: Probability) -> Self {
        let p = loss.as_f64();
        let mut all_lost = [1.0; COPIES_MAX + 1];
        for copies in 1..=COPIES_MAX {
            all_lost[copies] = all_lost[copies - 1] * p;
        }
        let wanted = usize::from(copies_for(loss, target));
        let mut now = [[0u8; COPIES_MAX + 1]; ROUNDS_MAX + 1];
        // In the last round all copies that are still needed are sent.
        let mut cost: [f64; COPIES_MAX + 1] = core::array::from_fn(|copies| copies as f64);
        now[0] = core::array::from_fn(|copies| copies as u8);
        for row in &mut now[1..] {
            let mut best = [0.0; COPIES_MAX + 1];
            for open in 1..=COPIES_MAX {
                let expected =
                    |copies: usize| copies as f64 + all_lost[copies] * cost[open - copies];
                let (mut choice, mut least) = (1, expected(1));
                for copies in 2..=open {
                    let cost = expected(copies);
                    if cost < least {
                        (choice, least) = (copies, cost);
                    }
                }
                best[open] = least;
                row[open] = choice as u8;
            }
            cost = best;
        }
        Self(Arc::new(Table { wanted: wanted as u8, now }))
    }

    /// Copies to send now of a missing symbol that was sent `sent` times, with `rounds` more rounds
    /// after this one. At least one.
    pub fn now(&self, sent: u8, rounds: u64) -> u8 {
        let open = usize::from(self.0.wanted.saturating_sub(sent)).max(1);
        let rounds = usize::try_from(rounds).map_or(ROUNDS_MAX, |rounds| rounds.min(ROUNDS_MAX));
        self.0.now[rounds][open]
    }
}

impl Default for Copies {
    /// One copy at a time.
    fn default() -> Self {
        Self::for_target(Probability::ZERO, Probability::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(loss_percent: u32) -> Copies {
        Copies::for_target(
            Probability::from_ppb(loss_percent * 10_000_000),
            Probability::from_ppb(1_000),
        )
    }

    #[test]
    fn the_last_round_sends_all_that_reach_the_target() {
        // 0.05^5 = 3e-7, one was sent.
        assert_eq!(copies(5).now(1, 0), 4);
        // 0.3^12 = 5e-7.
        assert_eq!(
            (copies(30).now(1, 0), copies(30).now(11, 0), copies(30).now(40, 0)),
            (11, 1, 1)
        );
    }

    #[test]
    fn with_a_round_for_each_copy_one_is_sent_at_a_time() {
        for loss in [1, 5, 30] {
            for sent in 1..10 {
                assert_eq!(copies(loss).now(sent, 12), 1, "{loss} %, sent {sent}");
            }
        }
        assert_eq!(copies(30).now(1, u64::MAX), 1);
    }

    #[test]
    fn fewer_rounds_never_mean_fewer_copies() {
        for loss in [1, 5, 30, 60, 95] {
            for sent in 0..50 {
                for rounds in 0..20 {
                    assert!(copies(loss).now(sent, rounds) >= copies(loss).now(sent, rounds + 1));
                    assert!(copies(loss).now(sent, rounds) >= 1);
                }
            }
        }
    }

    #[test]
    fn one_round_in_between_is_used_thinly() {
        // At 30 %, 11 copies in two rounds: 3 + 0.027 × 8 = 3.2; 2 + 0.09 × 9 = 2.8; 1 + 0.3 × 10 =
        // 4.
        assert_eq!(copies(30).now(1, 1), 2);
    }
}
