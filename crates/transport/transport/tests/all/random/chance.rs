//! Random choices that repeat.

/// Splitmix64 (Steele, Lea and Flood 2014): any seed is as good as any other.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is above zero.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// In so many of a thousand cases.
    pub const fn happens(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A source of its own.
    pub const fn split(&mut self) -> Self {
        Self(self.next())
    }
}
