//! Windows in segments, in fixed point: controllers that add a hundredth of a segment for each
//! acknowledgement then use integers, and replay exactly.

use skyhaul_units::ByteCount;

/// A number of segments, in steps of 2^-24.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Segments(u64);

impl Segments {
    pub(crate) const MAX: Self = Self(u64::MAX);
    /// What every increase is made of.
    pub(crate) const ONE: Self = Self::whole(1);
    /// RFC 9002 7.2: the smallest window.
    pub(crate) const MIN: Self = Self::whole(2);
    /// RFC 6928: the first window.
    pub(crate) const INITIAL: Self = Self::whole(10);

    pub(crate) const fn whole(segments: u64) -> Self {
        Self(segments.saturating_mul(1 << FRACTION))
    }

    /// `bytes` in segments.
    pub(crate) const fn of(bytes: ByteCount, segment: ByteCount) -> Self {
        let size = if segment.as_u64() == 0 { 1 } else { segment.as_u64() };
        Self::from_u128(((bytes.as_u64() as u128) << FRACTION) / size as u128)
    }

    /// From steps of 2^-24, saturating.
    pub(crate) const fn from_u128(steps: u128) -> Self {
        Self(if steps > u64::MAX as u128 { u64::MAX } else { steps as u64 })
    }

    /// Steps of 2^-24.
    pub(crate) const fn steps(self) -> u64 {
        self.0
    }

    /// Whole segments, rounded down.
    pub(crate) const fn count(self) -> u64 {
        self.0 >> FRACTION
    }

    /// So many segments of a size.
    pub(crate) const fn bytes(self, segment: ByteCount) -> ByteCount {
        let bytes = (self.0 as u128 * segment.as_u64() as u128) >> FRACTION;
        ByteCount::new(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }

    /// This × `numerator` ÷ `denominator`, saturating.
    pub(crate) const fn scaled(self, numerator: u64, denominator: u64) -> Self {
        Self::from_u128(self.0 as u128 * numerator as u128 / denominator as u128)
    }

    /// This × `other`, saturating.
    pub(crate) const fn times(self, other: Self) -> Self {
        Self::from_u128((self.0 as u128 * other.0 as u128) >> FRACTION)
    }

    /// This ÷ `other`, saturating; the largest value where `other` is zero.
    pub(crate) const fn over(self, other: Self) -> Self {
        if other.0 == 0 {
            return Self::MAX;
        }
        Self::from_u128(((self.0 as u128) << FRACTION) / other.0 as u128)
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Multiples of an amount, saturating.
pub(crate) trait Multiple {
    /// `factor` times as much.
    fn times(self, factor: u64) -> Self;
    /// This × `numerator` ÷ `denominator`.
    fn scaled(self, numerator: u64, denominator: u64) -> Self;
}

impl Multiple for ByteCount {
    fn times(self, factor: u64) -> Self {
        Self::new(self.as_u64().saturating_mul(factor))
    }

    fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let product =
            u128::from(self.as_u64()) * u128::from(numerator) / u128::from(denominator.max(1));
        Self::new(u64::try_from(product).unwrap_or(u64::MAX))
    }
}

/// Bits behind the point: a window of 2^40 segments still fits, and the smallest decrease in use
/// (2^-30 of 1,000 segments) is 15 steps.
pub(crate) const FRACTION: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_kept_and_the_ends_saturate() {
        let segment = ByteCount::new(1_500);
        let third = Segments::ONE.over(Segments::whole(3));
        assert_eq!(third.scaled(3, 1).plus(Segments(1)), Segments::ONE);
        assert_eq!(
            Segments::of(ByteCount::new(2_250), segment).bytes(segment),
            ByteCount::new(2_250)
        );
        assert_eq!(Segments::whole(5).times(Segments::whole(7)).count(), 35);
        assert_eq!(Segments::MAX.times(Segments::MAX), Segments::MAX);
        assert_eq!(Segments::ONE.over(Segments::default()), Segments::MAX);
        assert_eq!(Segments::of(ByteCount::new(u64::MAX), ByteCount::ZERO), Segments::MAX);
        assert_eq!(Segments::default().minus(Segments::ONE), Segments::default());
    }
}
