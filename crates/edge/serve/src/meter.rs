//! How much of something may be used in a time: a virtual schedule (as ATM's GCRA, ITU-T I.371).

use skyhaul_units::{Duration, Instant};

/// A quantity in a period. What was not used is saved up to `burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UseMeter {
    quantity: u64,
    period: Duration,
    burst: Duration,
    /// When all that was used is paid for.
    paid: Instant,
}

impl UseMeter {
    /// A meter of which nothing was used.
    pub const fn new(quantity: u64, period: Duration, burst: Duration) -> Self {
        Self { quantity, period, burst, paid: Instant::ZERO }
    }

    /// The same with another quantity; what was used stays used.
    pub fn changed(mut self, now: Instant, quantity: u64) -> Self {
        let unpaid = self.paid.since(now).as_nanos();
        let scaled = u128::from(unpaid) * u128::from(self.quantity) / u128::from(quantity.max(1));
        self.paid = now + Duration::from_nanos(scaled.min(u128::from(CENTURY_NS)) as u64);
        self.quantity = quantity;
        self
    }

    /// How long to wait until something may be used.
    pub fn wait(&self, now: Instant) -> Duration {
        self.paid.since(now).saturating_sub(self.burst)
    }

    /// Uses so much, whether it may or not: what is too much is waited for afterwards.
    pub fn charge(&mut self, now: Instant, count: u64) {
        let nanos = u128::from(count) * u128::from(self.period.as_nanos())
            / u128::from(self.quantity.max(1));
        // A century: no sum of two overflows.
        let nanos = nanos.min(u128::from(CENTURY_NS)) as u64;
        self.paid = self.paid.max(now) + Duration::from_nanos(nanos);
    }
}

const CENTURY_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_after_the_burst() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut meter = UseMeter::new(1_000, Duration::from_secs(1), Duration::from_millis(200));
        assert_eq!(meter.wait(at(0)), Duration::ZERO);
        meter.charge(at(0), 200);
        assert_eq!(meter.wait(at(0)), Duration::ZERO);
        meter.charge(at(0), 300);
        assert_eq!(meter.wait(at(0)), Duration::from_millis(300));
        assert_eq!(meter.wait(at(300)), Duration::ZERO);
        // An idle hour saves no more than the burst.
        meter.charge(at(3_600_000), 700);
        assert_eq!(meter.wait(at(3_600_000)), Duration::from_millis(500));
        meter.charge(at(3_600_000), u64::MAX);
        meter.charge(at(3_600_000), u64::MAX);
        assert!(meter.wait(at(3_600_000)) > Duration::from_secs(86_400));
    }

    #[test]
    fn what_was_used_of_a_quantity_counts_of_another_one() {
        let now = Instant::ZERO + Duration::from_secs(5);
        let mut meter = UseMeter::new(100, Duration::from_secs(10), Duration::from_secs(10));
        meter.charge(now, 150);
        assert_eq!(meter.wait(now), Duration::from_secs(5));
        assert_eq!(meter.changed(now, 50).wait(now), Duration::from_secs(20));
        assert_eq!(meter.changed(now, 300).wait(now), Duration::ZERO);
        let mut unlimited = meter.changed(now, u64::MAX);
        unlimited.charge(now, 1 << 50);
        assert_eq!(unlimited.wait(now), Duration::ZERO);
    }
}
