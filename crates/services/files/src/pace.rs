//! Limits the sending rate.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// A rate limiter: tells when bytes may be sent. Unused rate is lost, except [`Pace::BURST`].
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    rate: Rate,
    /// When the bytes so far are through at this rate.
    free: Instant,
}

impl Pace {
    /// How far behind the rate a sender may catch up.
    pub const BURST: Duration = Duration::from_millis(50);

    /// At most `rate`, from `now` on.
    pub const fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, free: now }
    }

    /// Takes `bytes`; how long to wait before they go.
    pub fn take(&mut self, now: Instant, bytes: ByteCount) -> Duration {
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(Self::BURST.as_nanos()));
        let from = self.free.max(earliest);
        self.free = from + self.rate.time_for(bytes);
        from.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_goes_than_the_rate_and_a_burst() {
        let rate = Rate::from_mbps(8);
        let mut pace = Pace::new(rate, Instant::ZERO);
        let mut now = Instant::ZERO + Duration::from_secs(10);
        let begun = now;
        for _ in 0..100 {
            now = now + pace.take(now, ByteCount::new(100_000));
        }
        // 9.9 MB have gone before the last; 50 ms of them at once.
        assert_eq!(now.since(begun), Duration::from_millis(9_850));
    }
}
