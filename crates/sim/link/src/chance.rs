//! Seeded chance: one independent ChaCha8 stream for each purpose.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use skyhaul_units::{Duration, Probability};

/// A stream of chance. Each purpose has its own, so that adding jitter to a scenario does not
/// change which packets are lost in it.
#[derive(Debug, Clone)]
pub(crate) struct Chance(ChaCha8Rng);

/// What a stream decides: its ChaCha8 stream number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Loss = 0,
    Jitter = 1,
    Reordering = 2,
}

impl Chance {
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(purpose as u64);
        Self(generator)
    }

    /// True with `probability`, exact to 2^-64. Draws once, whatever the probability.
    pub fn happens(&mut self, probability: Probability) -> bool {
        let draw = u128::from(self.0.next_u64()) * u128::from(Probability::ONE.as_ppb());
        draw < u128::from(probability.as_ppb()) << 64
    }

    /// A whole number of nanoseconds, uniform in `0..=longest`.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let values = u128::from(longest.as_nanos()) + 1;
        let nanos = (u128::from(self.0.next_u64()) * values) >> 64;
        Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_and_impossible_are_exact() {
        let mut chance = Chance::new(7, Purpose::Loss);
        for _ in 0..10_000 {
            assert!(chance.happens(Probability::ONE));
            assert!(!chance.happens(Probability::ZERO));
        }
    }

    #[test]
    fn uniform_values_reach_both_ends_and_stay_inside() {
        let mut chance = Chance::new(7, Purpose::Jitter);
        let longest = Duration::from_nanos(3);
        let mut seen = [0u32; 4];
        for _ in 0..4_000 {
            seen[chance.up_to(longest).as_nanos() as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(chance.up_to(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn purposes_draw_differently_and_seeds_repeat() {
        let draws = |seed, purpose| {
            let mut chance = Chance::new(seed, purpose);
            core::array::from_fn::<_, 4, _>(|_| chance.up_to(Duration::MAX))
        };
        assert_eq!(draws(1, Purpose::Loss), draws(1, Purpose::Loss));
        assert_ne!(draws(1, Purpose::Loss), draws(1, Purpose::Jitter));
        assert_ne!(draws(1, Purpose::Loss), draws(2, Purpose::Loss));
    }
}
