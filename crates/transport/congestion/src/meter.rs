//! Measurements of a path: round-trip times and loss.

use skyhaul_units::{Duration, Instant, Probability};

/// Running figures of one path.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    smoothed: Option<Duration>,
    variation: Duration,
    /// Smallest round trip of the current and of the previous period.
    least: [Option<Duration>; 2],
    period_began: Instant,
    arrived: u64,
    lost: u64,
}

impl Meter {
    /// Takes one round-trip time (RFC 9002 5.3, without the far end's delay, which is small here).
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        if now.since(self.period_began) >= PERIOD {
            self.least = [None, self.least[0]];
            self.period_began = now;
        }
        self.least[0] = Some(self.least[0].map_or(rtt, |least| least.min(rtt)));
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                let off = rtt.saturating_sub(smoothed) + smoothed.saturating_sub(rtt);
                self.variation = (self.variation * 3 + off) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    /// A packet arrived.
    pub fn arrived(&mut self) {
        self.arrived += 1;
        self.age();
    }

    /// A packet was lost.
    pub fn lost(&mut self) {
        self.lost += 1;
        self.age();
    }

    /// Halves the counts, so that the share is that of the last few thousand.
    fn age(&mut self) {
        if self.arrived + self.lost >= MEMORY {
            self.arrived /= 2;
            self.lost /= 2;
        }
    }

    /// Smoothed round-trip time, or what is assumed before the first sample (RFC 9002 6.2.2).
    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(Duration::from_millis(333))
    }

    /// Mean deviation of the round-trip time.
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// Smallest round trip of the last ten to twenty seconds.
    pub fn least(&self) -> Duration {
        self.least.into_iter().flatten().min().unwrap_or_else(|| self.smoothed())
    }

    /// Share of packets lost.
    pub fn loss(&self) -> Probability {
        Probability::of(self.lost, self.arrived + self.lost)
    }
}

/// 10 s: long enough to hold an empty queue, short enough to follow a change of route.
const PERIOD: Duration = Duration::from_secs(10);

/// The loss share is over 4,096 to 8,192 packets: at 1 % that is known to a tenth.
const MEMORY: u64 = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_share_follows_the_last_few_thousand() {
        let mut meter = Meter::default();
        (0..10_000).for_each(|_| meter.lost());
        (0..30_000).for_each(|_| meter.arrived());
        assert!(meter.loss() < Probability::of(5, 100), "{}", meter.loss());
        (0..40_000).for_each(|n| if n % 10 == 0 { meter.lost() } else { meter.arrived() });
        assert!(
            meter.loss() > Probability::of(8, 100) && meter.loss() < Probability::of(12, 100),
            "{}",
            meter.loss()
        );
    }

    #[test]
    fn the_least_round_trip_forgets_an_old_route() {
        let mut meter = Meter::default();
        meter.sample(Instant::ZERO, Duration::from_millis(100));
        for second in 1..=25 {
            meter.sample(Instant::ZERO + Duration::from_secs(second), Duration::from_millis(300));
        }
        assert_eq!(meter.least(), Duration::from_millis(300));
    }
}
