//! Whether competing traffic fills the queue.
//!
//! Our own queue drains when we give way. One that stays long for seconds although we do is filled
//! by traffic that does not give way, and beside it a flow that does starves.

use super::intervals::Interval;
use skyhaul_units::{Duration, Instant, Rate};

/// Since when the queue has been long, and the rate before.
#[derive(Debug, Default)]
pub(super) struct Competition {
    short_at: Instant,
    /// The highest capacity of this period and of the last one.
    best: [Rate; 2],
    period_began: Instant,
}

impl Competition {
    /// From here on the queue is judged.
    pub(super) fn begin(&mut self, now: Instant, capacity: Rate) {
        self.short_at = now;
        self.best[0] = self.best[0].max(capacity);
    }

    /// The line carries this much for us.
    pub(super) fn carries(&mut self, now: Instant, capacity: Rate) {
        if now.since(self.period_began) > PERIOD {
            self.best = [Rate::ZERO, self.best[0]];
            self.period_began = now;
        }
        self.best[0] = self.best[0].max(capacity);
    }

    /// The highest capacity of this and the last period.
    pub(super) fn best(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// Whether a queue longer than `long` has lasted for so long that it is someone else's.
    pub(super) fn is_found(
        &mut self,
        now: Instant,
        interval: &Interval,
        long: Duration,
        rtt: Duration,
    ) -> bool {
        if interval.queueing() <= long {
            self.short_at = now;
        }
        now.since(self.short_at) > PATIENCE.max(rtt * PATIENCE_ROUNDS)
    }
}

/// Length of a period. Competition is found within seconds, so that the best of the last 10 to 20 s
/// is from before it began.
const PERIOD: Duration = Duration::from_secs(10);

/// Our own queue drains within a few round trips: after 2 s and 12 round trips it is not ours.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_ROUNDS: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const RTT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(20);

    fn is_found(competition: &mut Competition, millis: u64, queue: Duration) -> bool {
        let now = Instant::ZERO + Duration::from_millis(millis);
        let mut interval = Interval::beginning(now, ByteCount::ZERO, Rate::ZERO);
        interval.queue = Some(queue);
        competition.is_found(now, &interval, LONG, RTT)
    }

    #[test]
    fn a_queue_must_be_long_for_two_seconds_on_end() {
        let mut competition = Competition::default();
        competition.begin(Instant::ZERO, Rate::from_mbps(10));
        assert!(!is_found(&mut competition, 1_900, LONG * 2));
        assert!(!is_found(&mut competition, 1_950, LONG));
        assert!(!is_found(&mut competition, 3_900, LONG * 2));
        assert!(is_found(&mut competition, 4_000, LONG * 2));
    }

    #[test]
    fn the_best_is_that_of_the_last_ten_to_twenty_seconds() {
        let mut competition = Competition::default();
        competition.begin(Instant::ZERO, Rate::from_mbps(100));
        for second in 1..=30 {
            competition.carries(Instant::ZERO + Duration::from_secs(second), Rate::from_mbps(10));
            let expected = if second < 22 { 100 } else { 10 };
            assert_eq!(competition.best(), Rate::from_mbps(expected), "{second} s");
        }
    }
}
