//! A probability.

use crate::parse::{Form, text_form, write_scaled};

/// A probability in parts per billion, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(WHOLE);

    /// From parts per billion; more than a billion is held at one.
    pub const fn from_ppb(parts: u32) -> Self {
        Self(if parts > WHOLE { WHOLE } else { parts })
    }
    /// From a fraction of counts; zero where nothing was counted.
    pub const fn of(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::ZERO;
        }
        let parts = part as u128 * WHOLE as u128 / whole as u128;
        Self(if parts > WHOLE as u128 { WHOLE } else { parts as u32 })
    }
    /// Parts per billion.
    pub const fn as_ppb(self) -> u32 {
        self.0
    }
    /// The probability of the opposite.
    pub const fn complement(self) -> Self {
        Self(WHOLE - self.0)
    }
    /// 0 to 1, for reports.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }
}

const WHOLE: u32 = 1_000_000_000;

impl core::fmt::Display for Probability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_scaled(f, u64::from(self.0), &[(10_000_000, "%"), (1, "ppb")])
    }
}

const FORM: Form = Form {
    quantity: "probability",
    example: "\"1 %\" (%, ppm, ppb)",
    units: &[("%", 10_000_000), ("percent", 10_000_000), ("ppm", 1_000), ("ppb", 1)],
};
text_form!(Probability, FORM, |parts| Probability::from_ppb(u32::try_from(parts).unwrap_or(WHOLE)));
