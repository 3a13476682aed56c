//! How long the fastest items take between two clocks that need not agree.

use skyhaul_units::{Duration, Instant};

/// How long the fastest items take: the least of the last [`Transit::SPAN`] to twice that, so that
/// clocks which run at different speeds are followed.
#[derive(Debug, Default)]
pub(crate) struct Transit {
    window: Option<(Instant, i64)>,
    before: Option<i64>,
}

impl Transit {
    /// Clocks 50 millionths apart move by half a millisecond in it.
    const SPAN: Duration = Duration::from_secs(10);

    /// An item with `stamp` came now.
    pub fn see(&mut self, now: Instant, stamp: Duration) {
        let took = nanos(now).saturating_sub(stamp.as_nanos().cast_signed());
        match &mut self.window {
            Some((since, least)) if now.since(*since) < Self::SPAN => *least = took.min(*least),
            window => {
                self.before = window.map(|(_, least)| least);
                *window = Some((now, took));
            }
        }
    }

    /// When an item with `stamp` comes that is among the fastest.
    pub fn expected(&self, stamp: Duration) -> Instant {
        let at = stamp.as_nanos().cast_signed().saturating_add(self.least());
        Instant::from_nanos(at.max(0).cast_unsigned())
    }

    /// The stamp of an item that comes now and is among the fastest.
    pub fn stamp_of(&self, now: Instant) -> Duration {
        let stamp = nanos(now).saturating_sub(self.least());
        Duration::from_nanos(stamp.max(0).cast_unsigned())
    }

    fn least(&self) -> i64 {
        self.window.map(|(_, least)| least).into_iter().chain(self.before).min().unwrap_or(0)
    }
}

const fn nanos(at: Instant) -> i64 {
    at.as_nanos().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_last_seconds_counts_and_no_stamp_is_too_large() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let ms = Duration::from_millis;
        let mut transit = Transit::default();
        transit.see(at(1_050), ms(0));
        transit.see(at(1_040), ms(20));
        assert_eq!(transit.expected(ms(100)), at(1_120));
        assert_eq!(transit.stamp_of(at(1_120)), ms(100));
        for second in 1..=30 {
            transit.see(at(1_060 + 1_000 * second), ms(1_000 * second));
        }
        assert_eq!(transit.expected(ms(100)), at(1_160), "the clocks differ in speed");
        for stamp in [u64::MAX, 1 << 63, (1 << 63) - 1] {
            transit.see(Instant::ZERO, Duration::from_nanos(stamp));
            let _ = transit.expected(Duration::from_nanos(stamp));
        }
    }
}
