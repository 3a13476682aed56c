//! Whether others fill the queue.
//!
//! A queue that is ours empties when we give way. One that stays long for seconds although we do is
//! filled by others who don't, and beside them giving way means giving up.

use super::intervals::Flight;
use skyhaul_units::{Duration, Instant, Rate};

/// How long the queue has been long, and what we had before.
#[derive(Debug, Default)]
pub(super) struct Company {
    short_at: Instant,
    /// The most carried in this and in the last stretch of [`STRETCH`].
    best: [Rate; 2],
    since: Instant,
}

impl Company {
    /// From here on the queue counts.
    pub(super) fn begin(&mut self, now: Instant, capacity: Rate) {
        self.short_at = now;
        self.best[0] = self.best[0].max(capacity);
    }

    /// The line carries this much for us.
    pub(super) fn carries(&mut self, now: Instant, capacity: Rate) {
        if now.since(self.since) > STRETCH {
            self.best = [Rate::ZERO, self.best[0]];
            self.since = now;
        }
        self.best[0] = self.best[0].max(capacity);
    }

    /// The most carried lately.
    pub(super) fn best(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// Whether a queue longer than `long` has stood for so long that it is someone else's.
    pub(super) fn is_found(
        &mut self,
        now: Instant,
        flight: &Flight,
        long: Duration,
        rtt: Duration,
    ) -> bool {
        if flight.queueing() <= long {
            self.short_at = now;
        }
        now.since(self.short_at) > PATIENCE.max(rtt * PATIENCE_ROUNDS)
    }
}

/// What was carried 10 to 20 s ago was before the others took it.
const STRETCH: Duration = Duration::from_secs(10);

/// A queue of our own is gone after a few round trips.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_ROUNDS: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const RTT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(20);

    fn is_found(company: &mut Company, millis: u64, queue: Duration) -> bool {
        let now = Instant::ZERO + Duration::from_millis(millis);
        let mut flight = Flight::beginning(now, ByteCount::ZERO, Rate::ZERO);
        flight.queue = Some(queue);
        company.is_found(now, &flight, LONG, RTT)
    }

    #[test]
    fn a_queue_must_be_long_for_two_seconds_on_end() {
        let mut company = Company::default();
        company.begin(Instant::ZERO, Rate::from_mbps(10));
        assert!(!is_found(&mut company, 1_900, LONG * 2));
        assert!(!is_found(&mut company, 1_950, LONG));
        assert!(!is_found(&mut company, 3_900, LONG * 2));
        assert!(is_found(&mut company, 4_000, LONG * 2));
    }

    #[test]
    fn the_best_is_that_of_the_last_ten_to_twenty_seconds() {
        let mut company = Company::default();
        company.begin(Instant::ZERO, Rate::from_mbps(100));
        for second in 1..=30 {
            company.carries(Instant::ZERO + Duration::from_secs(second), Rate::from_mbps(10));
            let expected = if second < 22 { 100 } else { 10 };
            assert_eq!(company.best(), Rate::from_mbps(expected), "{second} s");
        }
    }
}
