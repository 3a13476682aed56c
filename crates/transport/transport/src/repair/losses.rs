//! The exact distribution of losses within a group, and the number of repair symbols that it needs.
//!
//! Losses follow a Markov chain of two states (E. N. Gilbert, "Capacity of a burst-noise channel",
//! 1960): a loss makes the next one likelier. Independent loss is the case in which it does not.
//! Probabilities are computed by addition and multiplication alone, so that every machine gets the
//! same result.

use skyhaul_coding::erasure::{SOURCES_MAX, SYMBOLS_MAX};
use skyhaul_units::Probability;
use std::sync::Arc;

/// The losses within one group.
#[derive(Debug, Clone, Copy)]
pub struct GroupLosses {
    loss: f64,
    /// Probability of a loss directly after a loss, among the group's own symbols.
    after_loss: f64,
    after_arrival: f64,
}

/// Repair symbols for each group size up to 255 sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairTable {
    repairs: Arc<[u8; SYMBOLS_MAX]>,
    largest: usize,
}

impl GroupLosses {
    /// On a path that loses a share of `loss`, and of `after_loss` directly after a loss. The group
    /// has every `stride`-th datagram.
    pub fn new(loss: Probability, after_loss: Probability, stride: u8) -> Self {
        let p = loss.as_f64();
        // The chain's correlation falls by this factor with each datagram.
        let memory = if p < 1.0 { ((after_loss.as_f64() - p) / (1.0 - p)).max(0.0) } else { 0.0 };
        let memory = (0..stride.max(1)).fold(1.0, |product, _| product * memory);
        Self { loss: p, after_loss: p + (1.0 - p) * memory, after_arrival: p * (1.0 - memory) }
    }

    /// The probability that more than `repairs` of `symbols` are lost.
    pub fn failure(self, symbols: usize, repairs: usize) -> f64 {
        let mut counts = Counts::new(self);
        for _ in 0..symbols {
            counts.step();
        }
        counts.more_than(repairs)
    }
}

impl RepairTable {
    /// For each group size the fewest repair symbols with which it fails with at most the
    /// probability `target`; as many as the code allows where none are enough.
    pub fn for_target(chain: GroupLosses, target: Probability) -> Self {
        let mut table = [0u8; SYMBOLS_MAX];
        let mut counts = Counts::new(chain);
        let mut sources = 1;
        let mut enough = 0;
        for symbols in 1..=SYMBOLS_MAX {
            counts.step();
            enough = counts.enough(target.as_f64(), enough);
            while sources + enough <= symbols && sources < SYMBOLS_MAX {
                table[sources] = (symbols - sources) as u8;
                sources += 1;
            }
        }
        let largest = sources - 1;
        for (sources, repairs) in table.iter_mut().enumerate().skip(sources) {
            *repairs = (SYMBOLS_MAX - sources) as u8;
        }
        Self { repairs: Arc::new(table), largest }
    }

    /// One repair symbol for groups of `least` sources and more, none for smaller ones.
    pub fn single(least: usize) -> Self {
        let mut table = [0; SYMBOLS_MAX];
        table.iter_mut().skip(least).for_each(|repairs| *repairs = 1);
        Self { repairs: Arc::new(table), largest: SOURCES_MAX }
    }

    /// The same table, with at most `part` repair symbols for `whole` sources.
    #[must_use]
    pub fn capped(&self, part: u32, whole: u32) -> Self {
        let mut table = *self.repairs;
        for (sources, repairs) in table.iter_mut().enumerate() {
            let cap = sources as u64 * u64::from(part) / u64::from(whole.max(1));
            *repairs = (*repairs).min(u8::try_from(cap).unwrap_or(u8::MAX));
        }
        Self { repairs: Arc::new(table), largest: self.largest }
    }

    /// Repairs for a group of `sources`.
    pub fn of(&self, sources: usize) -> u8 {
        self.repairs.get(sources).copied().unwrap_or(0)
    }

    /// The largest group that reaches the target, before any cap.
    pub fn largest(&self) -> usize {
        self.largest
    }
}

impl Default for RepairTable {
    /// No repairs.
    fn default() -> Self {
        Self { repairs: Arc::new([0; SYMBOLS_MAX]), largest: SOURCES_MAX }
    }
}

/// The distribution of the number of losses among the symbols so far, separately for a last symbol
/// that arrived and for one that was lost.
struct Counts {
    chain: GroupLosses,
    /// The largest number that is not negligible.
    most: usize,
    arrived: [f64; SYMBOLS_MAX + 1],
    lost: [f64; SYMBOLS_MAX + 1],
}

/// A probability that changes no sum that is compared with a target, which is 1e-9 or more: doubles
/// have 16 digits.
const NEGLIGIBLE: f64 = 1e-30;

impl Counts {
    fn new(chain: GroupLosses) -> Self {
        let mut counts =
            Self { chain, most: 0, arrived: [0.0; SYMBOLS_MAX + 1], lost: [0.0; SYMBOLS_MAX + 1] };
        // Before the group's first symbol the chain is in its steady state.
        counts.arrived[0] = 1.0 - chain.loss;
        counts.lost[0] = chain.loss;
        counts
    }

    /// Adds a symbol.
    fn step(&mut self) {
        let GroupLosses { after_loss, after_arrival, .. } = self.chain;
        let next = (self.most + 1).min(SYMBOLS_MAX);
        for count in (0..=next).rev() {
            let arrives =
                self.arrived[count] * (1.0 - after_arrival) + self.lost[count] * (1.0 - after_loss);
            let one_less = count.checked_sub(1);
            let lost = one_less
                .map_or(0.0, |one| self.arrived[one] * after_arrival + self.lost[one] * after_loss);
            self.arrived[count] = arrives;
            self.lost[count] = lost;
        }
        if self.arrived[next] + self.lost[next] < NEGLIGIBLE {
            (self.arrived[next], self.lost[next]) = (0.0, 0.0);
        } else {
            self.most = next;
        }
    }

    fn more_than(&self, losses: usize) -> f64 {
        (losses + 1..=self.most).rev().map(|count| self.arrived[count] + self.lost[count]).sum()
    }

    /// The smallest number of losses, from `least` on, that is exceeded with a probability of at
    /// most `target`.
    fn enough(&self, target: f64, least: usize) -> usize {
        let mut tail = 0.0;
        for count in (least + 1..=self.most).rev() {
            tail += self.arrived[count] + self.lost[count];
            if tail > target {
                return count;
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(value: u32) -> Probability {
        Probability::from_ppb(value * 10_000_000)
    }

    fn independent(loss: Probability) -> GroupLosses {
        GroupLosses::new(loss, loss, 1)
    }

    #[test]
    fn independent_losses_are_binomial() {
        let chain = independent(percent(5));
        // n = 3: exactly 1 - 0.95^3 for any loss, 0.05^3 for all three.
        assert!((chain.failure(3, 0) - 0.142_625).abs() < 1e-12);
        assert!((chain.failure(3, 2) - 0.000_125).abs() < 1e-15);
        assert!(chain.failure(3, 3) == 0.0);
    }

    #[test]
    fn repairs_agree_with_published_sizes() {
        // Computed tables for maximum distance separable codes under independent loss.
        for (loss, sources, for_millionth) in
            [(percent(1), 32, 6), (percent(5), 32, 11), (percent(1), 100, 9), (percent(5), 100, 20)]
        {
            let table = RepairTable::for_target(independent(loss), Probability::from_ppb(1_000));
            let repairs = table.of(sources);
            assert!(
                (for_millionth..=for_millionth + 1).contains(&repairs),
                "{loss}, {sources}: {repairs}"
            );
        }
    }

    #[test]
    fn each_size_has_the_fewest_repairs_that_reach_the_target() {
        let target = Probability::from_ppb(1_000);
        for (loss, after_loss, stride) in [(5, 5, 1), (1, 50, 4), (5, 87, 16)] {
            let chain = GroupLosses::new(percent(loss), percent(after_loss), stride);
            let table = RepairTable::for_target(chain, target);
            for sources in [1, 2, 10, 64, 150, 200] {
                let repairs = usize::from(table.of(sources));
                assert!(chain.failure(sources + repairs, repairs) <= target.as_f64());
                assert!(chain.failure(sources + repairs - 1, repairs - 1) > target.as_f64());
            }
        }
    }

    /// The same sum by another way: of all numbers of losses, and one symbol after the other.
    fn failure_of_all(chain: GroupLosses, symbols: usize, repairs: usize) -> f64 {
        let mut states = vec![[0.0; 2]; symbols + 1];
        states[0] = [1.0 - chain.loss, chain.loss];
        for _ in 0..symbols {
            let before = core::mem::replace(&mut states, vec![[0.0; 2]; symbols + 1]);
            for (count, [arrived, lost]) in before.into_iter().enumerate() {
                let loses = arrived * chain.after_arrival + lost * chain.after_loss;
                states[count][0] += arrived + lost - loses;
                if let Some(next) = states.get_mut(count + 1) {
                    next[1] += loses;
                }
            }
        }
        states[repairs + 1..].iter().rev().map(|[arrived, lost]| arrived + lost).sum()
    }

    #[test]
    fn what_is_negligible_changes_no_probability() {
        for (loss, after_loss) in [(1, 1), (5, 87), (14, 14), (60, 90)] {
            let chain = GroupLosses::new(percent(loss), percent(after_loss), 1);
            for (symbols, repairs) in [(1, 0), (20, 3), (150, 40), (256, 20), (256, 120)] {
                let (few, all) =
                    (chain.failure(symbols, repairs), failure_of_all(chain, symbols, repairs));
                let off = (few - all).abs();
                assert!(off <= all * 1e-12 + 1e-24, "{loss} {symbols}: {few} {all}");
            }
        }
    }

    #[test]
    fn what_no_number_of_repairs_reaches_gets_all_there_are() {
        let table = RepairTable::for_target(independent(percent(90)), Probability::from_ppb(1));
        assert_eq!((table.of(100), table.of(255), table.of(256)), (156, 1, 0));
        let certain =
            RepairTable::for_target(independent(Probability::ONE), Probability::from_ppb(1));
        assert_eq!(certain.of(1), 255);
    }

    #[test]
    fn wider_strides_bring_bursts_near_independent_loss() {
        let chain =
            |stride| GroupLosses::new(percent(5), Probability::from_ppb(875_000_000), stride);
        let failures = [1, 4, 16].map(|stride| chain(stride).failure(256, 36));
        assert!(failures[0] > 1e-2 && failures[1] > failures[2] * 100.0, "{failures:?}");
        assert!(
            failures[2] < 1e-6 && failures[2] > independent(percent(5)).failure(256, 36),
            "{failures:?}"
        );
    }

    #[test]
    fn a_cap_holds_for_every_size() {
        let table = RepairTable::for_target(independent(percent(5)), Probability::from_ppb(1_000))
            .capped(1, 10);
        assert_eq!((table.of(1), table.of(10), table.of(200)), (0, 1, 20));
        assert_eq!((RepairTable::single(200).of(199), RepairTable::single(200).of(200)), (0, 1));
    }
}
