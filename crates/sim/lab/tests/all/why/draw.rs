//! Numbers by chance, from a seed.

use skyhaul_units::{Duration, Rate};

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(0x1234_5678_9abc_def1))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From 0 to 1, the latter excluded.
    pub fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.part()
    }

    /// Evenly over the orders of magnitude.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub fn millis(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_micros((self.between(low, high) * 1e3) as u64)
    }

    pub fn mbps(&mut self, low: f64, high: f64) -> Rate {
        Rate::from_bps((self.scale(low, high) * 1e6) as u64)
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.bits() as usize % of.len()]
    }
}
