//! A token-bucket policer before the queue: what exceeds a rate by more than a burst is dropped at
//! once, not delayed.
//!
//! Operators sell part of a line so (RFC 2697 with one bucket: what does not conform is dropped).
//! To a sender it is a bottleneck that shows itself by loss alone, with no queue to measure.

use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Instant, Rate};

/// A policer's two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// What passes in the long run, counted in IP packets.
    pub rate: Rate,
    /// What passes at once after a pause. Less than one packet lets nothing pass.
    pub burst: ByteCount,
}

/// The bucket. Its level is kept in billionths of a bit, so no rate is rounded.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    policer: Policer,
    level: u128,
    filled: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(policer: Policer, now: Instant) -> Self {
        Self { policer, level: scaled(policer.burst), filled: now }
    }

    /// Whether a packet of `size` passes; if so it is paid for.
    pub fn passes(&mut self, now: Instant, size: ByteCount) -> bool {
        let gained =
            u128::from(self.policer.rate.as_bps()) * u128::from(now.since(self.filled).as_nanos());
        self.level = self.level.saturating_add(gained).min(scaled(self.policer.burst));
        self.filled = self.filled.max(now);
        let Some(left) = self.level.checked_sub(scaled(size)) else { return false };
        self.level = left;
        true
    }
}

fn scaled(bytes: ByteCount) -> u128 {
    u128::from(bytes.as_u64()) * 8_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::Duration;

    const PACKET: ByteCount = ByteCount::new(1_500);
    const TWELVE: Policer = Policer { rate: Rate::from_mbps(12), burst: ByteCount::new(15_000) };

    /// Packets that pass of those offered every `gap`, over `span`.
    fn passed(policer: Policer, gap: Duration, span: Duration) -> u64 {
        let mut bucket = TokenBucket::new(policer, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut passed = 0;
        while now.since(Instant::ZERO) < span {
            passed += u64::from(bucket.passes(now, PACKET));
            now += gap;
        }
        passed
    }

    #[test]
    fn what_keeps_to_the_rate_passes_whole() {
        assert_eq!(passed(TWELVE, Duration::from_millis(1), Duration::from_secs(10)), 10_000);
    }

    #[test]
    fn what_exceeds_it_is_cut_to_the_rate_and_one_burst() {
        assert_eq!(passed(TWELVE, Duration::from_micros(500), Duration::from_secs(10)), 10_009);
    }

    #[test]
    fn a_pause_earns_one_burst_and_no_more() {
        let mut bucket = TokenBucket::new(TWELVE, Instant::ZERO);
        let mut burst = |at| (0..20).filter(|_| bucket.passes(at, PACKET)).count();
        assert_eq!(burst(Instant::ZERO), 10);
        assert_eq!(burst(Instant::ZERO), 0);
        assert_eq!(burst(Instant::ZERO + Duration::from_secs(3_600)), 10);
    }

    #[test]
    fn a_bucket_smaller_than_a_packet_lets_nothing_pass() {
        let small = Policer { burst: ByteCount::new(1_499), ..TWELVE };
        assert_eq!(passed(small, Duration::from_millis(1), Duration::from_secs(1)), 0);
    }

    proptest! {
        #[test]
        fn never_more_than_rate_and_burst_in_any_pattern(
            mbps in 0u64..1_000,
            burst in 0u64..100_000,
            offers in proptest::collection::vec((0u64..5_000_000, 40u64..9_000), 1..300),
        ) {
            let policer = Policer { rate: Rate::from_mbps(mbps), burst: ByteCount::new(burst) };
            let mut bucket = TokenBucket::new(policer, Instant::ZERO);
            let mut now = Instant::ZERO;
            let mut passed = ByteCount::ZERO;
            for (gap, size) in offers {
                now += Duration::from_nanos(gap);
                if bucket.passes(now, ByteCount::new(size)) {
                    passed += ByteCount::new(size);
                }
                prop_assert!(passed <= policer.rate * now.since(Instant::ZERO) + policer.burst);
            }
        }
    }
}
