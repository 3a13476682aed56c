//! Chance on a plain path: one generator for each end, and the chain that makes losses come in
//! bursts.

use core::num::NonZeroU32;
use skyhaul_link::GilbertElliott;
use skyhaul_units::Probability;

/// Xorshift64 (Marsaglia 2003).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn happens(&mut self, probability: Probability) -> bool {
        if probability == Probability::ZERO {
            return false;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % u64::from(Probability::ONE.as_ppb()) < u64::from(probability.as_ppb())
    }
}

/// Which datagrams are lost.
#[derive(Debug)]
pub enum Losses {
    Alone(Probability),
    Bursts { chain: GilbertElliott, is_bad: bool },
}

impl Losses {
    /// Where no chain has so much loss in bursts so short, losses know nothing of each other.
    pub fn new(mean: Probability, mean_burst: NonZeroU32) -> Self {
        match GilbertElliott::with_bursts(mean, mean_burst) {
            Ok(chain) if mean_burst.get() > 1 => Self::Bursts { chain, is_bad: false },
            _ => Self::Alone(mean),
        }
    }

    pub fn next(&mut self, chance: &mut Chance) -> bool {
        match self {
            Self::Alone(loss) => chance.happens(*loss),
            Self::Bursts { chain, is_bad } => {
                let turn = if *is_bad { chain.bad_to_good } else { chain.good_to_bad };
                *is_bad ^= chance.happens(turn);
                *is_bad
            }
        }
    }
}
