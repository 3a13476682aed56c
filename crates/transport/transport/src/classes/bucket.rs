//! A token bucket that is kept as a point in time, so that asking it is one comparison.
//!
//! A level that grows at a known rate is represented by the instant at which it passes zero: before
//! it the bucket is in debt, after it there is credit, up to a bound. Spending moves the instant by
//! the time that the bytes take at the rate; the remainder of that division is kept, so that no
//! rate is rounded. (The virtual scheduling form of the generic cell rate algorithm, ITU-T I.371.)

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// A token bucket that may go into debt: a datagram is sent whole, and paid for later.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    /// Above zero.
    rate: Rate,
    /// How long credit is saved while there is no data.
    depth: Duration,
    /// How long it is saved while data waits for a turn; at least `depth`.
    patience: Duration,
    /// When the level is zero.
    zero_at: Instant,
    /// Spent beyond `zero_at`, in billionths of a bit: less than one nanosecond's worth.
    rest: u64,
}

impl Bucket {
    /// A bucket without credit or debt at the clock's zero, filled at `rate` up to `burst`; `None`
    /// for a rate of zero.
    pub(crate) fn new(rate: Rate, burst: Option<ByteCount>) -> Option<Self> {
        let depth = burst.map_or(DEPTH, |burst| rate.time_for(burst));
        let empty = Self { rate, depth, patience: depth, zero_at: Instant::ZERO, rest: 0 };
        (rate > Rate::ZERO).then_some(empty)
    }

    /// The same, but with credit of up to `bytes` while data waits for a turn.
    pub(crate) fn keeping(self, bytes: ByteCount) -> Self {
        Self { patience: self.rate.time_for(bytes).max(self.depth), ..self }
    }

    /// Whether there is no debt at `now`.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.zero_at <= now
    }

    /// When the debt is paid.
    #[cfg(test)]
    pub(crate) fn opens_at(&self) -> Instant {
        self.zero_at
    }

    /// When the credit is worth `span` if nothing is spent before.
    pub(crate) fn saves(&self, span: Duration) -> Instant {
        self.zero_at + span
    }

    /// When to serve one that waits for it: a tick after it opened, but well before credit is lost.
    pub(crate) fn serve_at(&self) -> Instant {
        self.zero_at + TICK.min(self.depth / 2)
    }

    /// Somebody wants what nobody wanted until `now`: only a burst of it is still there.
    pub(crate) fn wanted(&mut self, now: Instant) {
        self.keep(now, self.depth);
    }

    /// Takes out `bytes` at `now`.
    pub(crate) fn spend(&mut self, now: Instant, bytes: ByteCount) {
        self.keep(now, self.patience);
        let rate = self.rate.as_bps();
        let small =
            bytes.as_u64().checked_mul(SCALE).and_then(|spent| spent.checked_add(self.rest));
        let nanos = if let Some(spent) = small {
            self.rest = spent % rate;
            spent / rate
        } else {
            let spent = u128::from(bytes.as_u64()) * u128::from(SCALE) + u128::from(self.rest);
            self.rest = u64::try_from(spent % u128::from(rate)).unwrap_or(0);
            u64::try_from(spent / u128::from(rate)).unwrap_or(u64::MAX)
        };
        self.zero_at += Duration::from_nanos(nanos);
    }

    /// Fills at `rate` (above zero) from `now` on. Debt and credit stay what they are in bytes, but
    /// for the bound.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        if rate == self.rate || rate == Rate::ZERO {
            return;
        }
        self.keep(now, self.patience);
        let (old, new) = (self.rate.as_bps(), rate.as_bps());
        self.zero_at = if self.zero_at > now {
            now + self.zero_at.since(now).scaled(old, new)
        } else {
            now - now.since(self.zero_at).scaled(old, new)
        };
        self.rest = 0;
        self.rate = rate;
        self.keep(now, self.patience);
    }

    /// Forgets credit older than `span`.
    fn keep(&mut self, now: Instant, span: Duration) {
        let earliest = now - span;
        if self.zero_at < earliest {
            self.zero_at = earliest;
            self.rest = 0;
        }
    }
}

/// Billionths of a bit in a byte: bits per second times nanoseconds come in billionths of a bit.
const SCALE: u64 = 8_000_000_000;

/// Credit gathered where no burst is configured: a busy machine serves a sender this late.
pub(super) const DEPTH: Duration = Duration::from_millis(20);

/// Who waits for a bucket is served once a tick, not once a datagram: wake-ups cost more than
/// datagrams.
const TICK: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: Rate) -> Bucket {
        Bucket::new(rate, None).unwrap()
    }

    #[test]
    fn odd_rates_are_not_rounded() {
        // 7 bit/s never divides: 700 bytes one by one take exactly 800 s.
        let mut bucket = bucket(Rate::from_bps(7));
        for _ in 0..700 {
            bucket.spend(Instant::ZERO, ByteCount::new(1));
        }
        assert_eq!(bucket.opens_at(), Instant::from_nanos(800_000_000_000));
        assert_eq!(bucket.rest, 0);
    }

    #[test]
    fn credit_is_bounded_and_debt_is_not_forgotten() {
        let mut bucket = Bucket::new(Rate::from_mbps(8), Some(ByteCount::new(3_000))).unwrap();
        let later = Instant::from_nanos(60_000_000_000);
        bucket.spend(later, ByteCount::new(3_000));
        assert_eq!(bucket.opens_at(), later);
        bucket.spend(later, ByteCount::new(1_000_000));
        assert_eq!(bucket.opens_at(), later + Duration::from_secs(1));
    }

    #[test]
    fn credit_is_kept_longer_for_one_that_waits() {
        let bucket = bucket(Rate::from_mbps(8)).keeping(ByteCount::new(100_000));
        let later = Instant::from_nanos(60_000_000_000);
        let (mut waiting, mut idle) = (bucket.clone(), bucket);
        waiting.spend(later, ByteCount::ZERO);
        assert_eq!(waiting.opens_at(), later - Duration::from_millis(100));
        idle.wanted(later);
        idle.spend(later, ByteCount::ZERO);
        assert_eq!(idle.opens_at(), later - DEPTH);
    }

    #[test]
    fn a_change_of_rate_keeps_debt_and_credit_in_bytes() {
        let mut bucket = bucket(Rate::from_mbps(8));
        bucket.spend(Instant::ZERO, ByteCount::new(10_000));
        assert_eq!(bucket.opens_at(), Instant::ZERO + Duration::from_millis(10));
        bucket.set_rate(Instant::ZERO, Rate::from_mbps(80));
        assert_eq!(bucket.opens_at(), Instant::ZERO + Duration::from_millis(1));
        let later = Instant::ZERO + Duration::from_millis(2);
        bucket.set_rate(later, Rate::from_mbps(160));
        assert_eq!(bucket.opens_at(), later - Duration::from_micros(500));
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        assert!(Bucket::new(Rate::ZERO, None).is_none());
        let mut slow = bucket(Rate::from_bps(1));
        slow.spend(Instant::FAR_FUTURE, ByteCount::new(u64::MAX));
        slow.set_rate(Instant::ZERO, Rate::from_bps(u64::MAX));
        let mut fast = bucket(Rate::from_bps(u64::MAX));
        fast.spend(Instant::FAR_FUTURE, ByteCount::new(u64::MAX));
        fast.set_rate(Instant::FAR_FUTURE, Rate::from_bps(1));
        assert_eq!(slow.serve_at().max(fast.serve_at()), Instant::FAR_FUTURE);
    }

    proptest! {
        #[test]
        fn any_series_of_spendings_is_paid_for_to_the_nanosecond(
            bps in 1u64..10_000_000_000,
            sizes in proptest::collection::vec(1u64..65_536, 1..100),
        ) {
            let mut bucket = bucket(Rate::from_bps(bps));
            for size in &sizes {
                bucket.spend(Instant::ZERO, ByteCount::new(*size));
            }
            let all = u128::from(sizes.iter().sum::<u64>()) * u128::from(SCALE) / u128::from(bps);
            prop_assert_eq!(u128::from(bucket.opens_at().as_nanos()), all);
        }
    }
}
