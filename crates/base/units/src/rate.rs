//! A rate of data.

use crate::parse::{Form, text_form, write_scaled};
use crate::{ByteCount, Duration};
use core::ops::{Div, Mul};

/// A rate of data in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Standstill.
    pub const ZERO: Self = Self(0);

    /// From bits per second.
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }
    /// From megabits per second.
    pub const fn from_mbps(megabits_per_second: u64) -> Self {
        Self(megabits_per_second.saturating_mul(1_000_000))
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The rate that moves `bytes` in `span`; zero for an empty span.
    pub const fn over(bytes: ByteCount, span: Duration) -> Self {
        if span.as_nanos() == 0 {
            return Self::ZERO;
        }
        let bps = bytes.as_u64() as u128 * 8_000_000_000 / span.as_nanos() as u128;
        Self(if bps > u64::MAX as u128 { u64::MAX } else { bps as u64 })
    }
    /// How long `bytes` take at this rate; the longest span at standstill.
    pub const fn time_for(self, bytes: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = bytes.as_u64() as u128 * 8_000_000_000 / self.0 as u128;
        Duration::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
    }
    /// This rate × `numerator` ÷ `denominator`, saturating.
    pub const fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let product = self.0 as u128 * numerator as u128 / denominator as u128;
        Self(if product > u64::MAX as u128 { u64::MAX } else { product as u64 })
    }
}

impl Mul<Duration> for Rate {
    type Output = ByteCount;
    /// What passes in `span`, rounded down.
    fn mul(self, span: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
impl Div<Rate> for ByteCount {
    type Output = Duration;
    fn div(self, rate: Rate) -> Duration {
        rate.time_for(self)
    }
}

impl core::fmt::Display for Rate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let scales =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        write_scaled(f, self.0, &scales)
    }
}

const FORM: Form = Form {
    quantity: "rate",
    example: "\"93 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)",
    units: &[
        ("bit/s", 1),
        ("bit", 1),
        ("bps", 1),
        ("kbit/s", 1_000),
        ("kbit", 1_000),
        ("kbps", 1_000),
        ("mbit/s", 1_000_000),
        ("mbit", 1_000_000),
        ("mbps", 1_000_000),
        ("gbit/s", 1_000_000_000),
        ("gbit", 1_000_000_000),
        ("gbps", 1_000_000_000),
    ],
};
text_form!(Rate, FORM, Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_times_time_is_an_amount_and_back() {
        let line = Rate::from_mbps(93);
        let amount = line * Duration::from_millis(160);
        assert_eq!(amount, ByteCount::new(1_860_000));
        assert_eq!(amount / line, Duration::from_millis(160));
        assert_eq!(Rate::over(amount, Duration::from_millis(160)), line);
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        assert_eq!(Rate::ZERO.time_for(ByteCount::new(1)), Duration::MAX);
        assert_eq!(Rate::over(ByteCount::new(1), Duration::ZERO), Rate::ZERO);
        assert_eq!(Rate::from_bps(u64::MAX) * Duration::MAX, ByteCount::new(u64::MAX));
        assert_eq!(Rate::from_bps(u64::MAX).scaled(3, 2).as_bps(), u64::MAX);
    }
}
