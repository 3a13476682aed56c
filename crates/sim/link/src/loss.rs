//! Which packets are lost on the way, each alone or in bursts.

use crate::chance::Chance;
use core::num::NonZeroU32;
use serde::{Deserialize, Serialize};
use skyhaul_units::Probability;

/// How packets are lost after they have crossed the queue and taken their time on the line.
///
/// In TOML one of
/// ```toml
/// loss = { kind = "none" }
/// loss = { kind = "independent", probability = "1 %" }
/// loss = { kind = "bursts", mean = "1 %", mean_burst = 8 }
///
/// [loss]
/// kind = "gilbert-elliott"
/// good_to_bad = "0.1 %"
/// bad_to_good = "25 %"
/// loss_in_good = "0 %"
/// loss_in_bad = "100 %"
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "LossText", into = "LossText")]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability, whatever happened to the others.
    Independent(Probability),
    /// Losses come in bursts.
    GilbertElliott(GilbertElliott),
}

/// A chain of two states that takes one step for each packet, then loses it with the state's
/// probability. It starts in the good state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability, for each packet, to go from the good state to the bad one.
    pub good_to_bad: Probability,
    /// Probability, for each packet, to go from the bad state to the good one.
    pub bad_to_good: Probability,
    /// Loss in the good state.
    pub loss_in_good: Probability,
    /// Loss in the bad state.
    pub loss_in_bad: Probability,
}

/// Why no chain has the wanted loss and burst length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a mean loss of {mean} cannot come in bursts of {mean_burst} packets on average: \
     lower the loss or lengthen the bursts"
)]
pub struct LossError {
    mean: Probability,
    mean_burst: NonZeroU32,
}

impl GilbertElliott {
    /// The chain that loses everything in the bad state and nothing in the good one, loses the
    /// share `mean` of all packets in the long run, and whose runs of lost packets are `mean_burst`
    /// packets long on average.
    ///
    /// # Errors
    /// Where the good state would have to last less than one packet: `mean` > `mean_burst` ÷
    /// (`mean_burst` + 1).
    pub fn with_bursts(mean: Probability, mean_burst: NonZeroU32) -> Result<Self, LossError> {
        let whole = u64::from(Probability::ONE.as_ppb());
        let burst = u64::from(mean_burst.get());
        // In balance the chain enters bursts as often as it leaves them: good x p = bad x r, with r
        // = 1 / burst.
        let part = u64::from(mean.as_ppb());
        let of = u64::from(mean.complement().as_ppb()) * burst;
        if part > of {
            return Err(LossError { mean, mean_burst });
        }
        Ok(Self {
            good_to_bad: Probability::of(part, of),
            bad_to_good: Probability::from_ppb((whole / burst).max(1) as u32),
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        })
    }

    /// The share of packets lost in the long run; where the chain never moves, that of the good
    /// state.
    pub const fn mean(&self) -> Probability {
        let enter = self.good_to_bad.as_ppb() as u64;
        let leave = self.bad_to_good.as_ppb() as u64;
        if enter == 0 {
            return self.loss_in_good;
        }
        let lost =
            leave * self.loss_in_good.as_ppb() as u64 + enter * self.loss_in_bad.as_ppb() as u64;
        Probability::of(lost, (enter + leave) * Probability::ONE.as_ppb() as u64)
    }
}

impl Loss {
    /// The share of packets lost in the long run.
    pub const fn mean(&self) -> Probability {
        match self {
            Self::None => Probability::ZERO,
            Self::Independent(probability) => *probability,
            Self::GilbertElliott(chain) => chain.mean(),
        }
    }
}

/// The chain's present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Good,
    Bad,
}

impl Channel {
    /// Decides over one packet.
    pub fn loses(&mut self, loss: &Loss, chance: &mut Chance) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(probability) => chance.happens(*probability),
            Loss::GilbertElliott(chain) => {
                *self = match *self {
                    Self::Good if chance.happens(chain.good_to_bad) => Self::Bad,
                    Self::Bad if chance.happens(chain.bad_to_good) => Self::Good,
                    unchanged => unchanged,
                };
                let probability = match *self {
                    Self::Good => chain.loss_in_good,
                    Self::Bad => chain.loss_in_bad,
                };
                chance.happens(probability)
            }
        }
    }
}

/// The text form of [`Loss`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum LossText {
    None {},
    Independent { probability: Probability },
    Bursts { mean: Probability, mean_burst: NonZeroU32 },
    GilbertElliott(GilbertElliott),
}

impl TryFrom<LossText> for Loss {
    type Error = LossError;
    fn try_from(text: LossText) -> Result<Self, LossError> {
        Ok(match text {
            LossText::None {} => Self::None,
            LossText::Independent { probability } => Self::Independent(probability),
            LossText::Bursts { mean, mean_burst } => {
                Self::GilbertElliott(GilbertElliott::with_bursts(mean, mean_burst)?)
            }
            LossText::GilbertElliott(chain) => Self::GilbertElliott(chain),
        })
    }
}

impl From<Loss> for LossText {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::None => Self::None {},
            Loss::Independent(probability) => Self::Independent { probability },
            Loss::GilbertElliott(chain) => Self::GilbertElliott(chain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Purpose;

    /// Fates of `count` packets: true is lost.
    fn fates(loss: Loss, count: usize, seed: u64) -> Vec<bool> {
        let mut chance = Chance::new(seed, Purpose::Loss);
        let mut channel = Channel::Good;
        (0..count).map(|_| channel.loses(&loss, &mut chance)).collect()
    }

    fn bursts(fates: &[bool]) -> Vec<usize> {
        fates.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect()
    }

    fn percent(value: u32) -> Probability {
        Probability::from_ppb(value * 10_000_000)
    }

    #[test]
    fn independent_loss_stays_within_four_standard_deviations() {
        for seed in 1..=5 {
            for ppb in [1_000_000, 10_000_000, 100_000_000, 500_000_000] {
                let probability = Probability::from_ppb(ppb);
                let count = 200_000;
                let lost = fates(Loss::Independent(probability), count, seed)
                    .iter()
                    .filter(|f| **f)
                    .count();
                let (n, p) = (count as f64, probability.as_f64());
                let deviation = (lost as f64 - n * p).abs() / (n * p * (1.0 - p)).sqrt();
                assert!(
                    deviation < 4.0,
                    "seed {seed}, {probability}: {lost} lost, {deviation} deviations"
                );
            }
        }
    }

    #[test]
    fn bursts_have_the_mean_length_and_loss_asked_for() {
        for (mean, burst) in [(1, 1), (1, 8), (5, 20), (10, 3), (45, 2)] {
            let mean_burst = NonZeroU32::new(burst).unwrap();
            let chain = GilbertElliott::with_bursts(percent(mean), mean_burst).unwrap();
            let fates = fates(Loss::GilbertElliott(chain), 2_000_000, 3);
            let runs = bursts(&fates);
            let lost: usize = runs.iter().sum();
            let share = lost as f64 / fates.len() as f64 / percent(mean).as_f64();
            let length = lost as f64 / runs.len() as f64 / f64::from(burst);
            assert!(
                (0.95..1.05).contains(&share),
                "loss {mean} %, burst {burst}: {share} of the mean"
            );
            assert!(
                (0.97..1.03).contains(&length),
                "loss {mean} %, burst {burst}: {length} of the length"
            );
        }
    }

    #[test]
    fn the_mean_of_a_chain_is_known() {
        let eight = NonZeroU32::new(8).unwrap();
        let chain = GilbertElliott::with_bursts(percent(10), eight).unwrap();
        assert!(chain.mean().as_ppb().abs_diff(percent(10).as_ppb()) < 100, "{}", chain.mean());
        let still = GilbertElliott { good_to_bad: Probability::ZERO, ..chain };
        assert_eq!(still.mean(), Probability::ZERO);
        assert_eq!(Loss::Independent(percent(3)).mean(), percent(3));
    }

    #[test]
    fn bursts_that_cannot_be_are_refused() {
        let error = GilbertElliott::with_bursts(percent(51), NonZeroU32::MIN).unwrap_err();
        assert!(error.to_string().contains("lengthen the bursts"), "{error}");
        assert!(GilbertElliott::with_bursts(percent(50), NonZeroU32::MIN).is_ok());
        assert!(GilbertElliott::with_bursts(Probability::ONE, NonZeroU32::MAX).is_err());
    }
}
