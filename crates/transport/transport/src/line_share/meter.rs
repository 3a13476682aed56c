//! The rate of a session over the last second.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// Counts bytes in spans of a second, and gives the rate of the last whole one.
#[derive(Debug)]
pub(super) struct RateMeter {
    begun: Instant,
    bytes: ByteCount,
    last: Rate,
}

const SPAN: Duration = Duration::from_secs(1);

impl RateMeter {
    pub(super) const fn new() -> Self {
        Self { begun: Instant::ZERO, bytes: ByteCount::ZERO, last: Rate::ZERO }
    }

    pub(super) fn add(&mut self, now: Instant, bytes: ByteCount) {
        let span = now.since(self.begun);
        if span >= SPAN {
            self.last = Rate::over(self.bytes, span);
            (self.begun, self.bytes) = (now, ByteCount::ZERO);
        }
        self.bytes += bytes;
    }

    /// The rate of the last whole span; after a pause, of the time since.
    pub(super) fn rate(&self, now: Instant) -> Rate {
        let span = now.since(self.begun);
        if span >= SPAN { Rate::over(self.bytes, span) } else { self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_what_was_sent_and_falls_in_a_pause() {
        let mut meter = RateMeter::new();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for step in 0..=3_000 {
            meter.add(at(step), ByteCount::new(1_000));
        }
        assert_eq!(meter.rate(at(3_000)), Rate::from_mbps(8));
        assert!(meter.rate(at(10_000)) < Rate::from_mbps(1), "{}", meter.rate(at(10_000)));
    }
}
