//! The rate limit of a destination, shared by its connections.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::sync::Mutex;

/// A bucket of bytes that fills at a rate. Each connection of a destination holds the same one.
#[derive(Debug)]
pub struct DeliveryPace {
    rate: Rate,
    epoch: std::time::Instant,
    /// Until when what was taken has used up the rate.
    used_until: Mutex<Instant>,
}

impl DeliveryPace {
    /// One that lets through `rate`; at a rate of zero it lets through nothing.
    pub fn new(rate: Rate) -> Self {
        Self { rate, epoch: clock(), used_until: Mutex::new(Instant::from_nanos(0)) }
    }

    /// Takes bytes that go out, and says how long the caller waits before it sends them.
    pub fn take(&self, bytes: ByteCount) -> std::time::Duration {
        let now = Instant::from_nanos(
            u64::try_from(self.epoch.elapsed().as_nanos()).expect("less than 584 years"),
        );
        self.take_at(now, bytes).to_std()
    }

    fn take_at(&self, now: Instant, bytes: ByteCount) -> Duration {
        let mut until = self.used_until.lock().expect("no thread panics with this lock");
        let wait = until.since(now);
        // An idle second is not made up for by a burst.
        *until = (*until).max(now) + self.rate.time_for(bytes).min(LONGEST_WAIT);
        wait.min(LONGEST_WAIT)
    }
}

#[allow(clippy::disallowed_methods, reason = "a rate limit is kept by the host's clock")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Ten seconds: less than any time-out of a far side.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_over_all_who_share_it_and_saves_nothing_up() {
        let pace = DeliveryPace::new(Rate::from_mbps(8));
        let mib = ByteCount::new(1_000_000);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        assert_eq!(pace.take_at(at(5), mib), Duration::ZERO);
        assert_eq!(pace.take_at(at(5), mib), Duration::from_secs(1));
        assert_eq!(pace.take_at(at(6), mib), Duration::from_secs(1));
        assert_eq!(pace.take_at(at(60), mib), Duration::ZERO);
        assert_eq!(pace.take_at(at(60), mib), Duration::from_secs(1));
    }
}
