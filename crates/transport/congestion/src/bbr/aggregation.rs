//! Aggregation of acknowledgements: links and receivers batch them, and the window must allow for
//! what is acknowledged at once beyond the rate.

use super::Rounds;
use crate::Ack;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The most that was acknowledged beyond what was due, of the last five to ten round trips.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Aggregation {
    /// Of this stretch and of the one before.
    extra: [ByteCount; 2],
    rounds: u32,
    /// Since when, and how much was acknowledged since.
    epoch: Instant,
    acked: ByteCount,
}

impl Aggregation {
    pub(crate) fn update(&mut self, now: Instant, ack: &Ack, rounds: Rounds, rate: Rate) {
        if rounds.began {
            self.rounds += 1;
            if self.rounds >= STRETCH {
                self.rounds = 0;
                self.extra = [ByteCount::ZERO, self.extra[0]];
            }
        }
        let mut due = rate * now.since(self.epoch);
        if self.acked <= due {
            self.epoch = now;
            self.acked = ByteCount::ZERO;
            due = ByteCount::ZERO;
        }
        self.acked += ack.bytes;
        self.extra[0] = self.extra[0].max(self.acked.saturating_sub(due));
    }

    /// What may be in flight for it: no more than 100 ms of the rate.
    pub(crate) fn allowance(&self, rate: Rate) -> ByteCount {
        self.extra[0].max(self.extra[1]).min(rate * LONGEST)
    }
}

/// Round trips of a stretch.
const STRETCH: u32 = 5;
const LONGEST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_batches_is_allowed_for_and_forgotten_in_ten_rounds() {
        let mut aggregation = Aggregation::default();
        let rate = Rate::from_mbps(80);
        let mut rounds = Rounds::default();
        let mut run = |bytes, millis, count| {
            for _ in 0..count {
                rounds.began = true;
                aggregation.epoch = aggregation.epoch.max(Instant::ZERO);
                let now = aggregation.epoch + Duration::from_millis(millis);
                let ack = Ack { bytes: ByteCount::new(bytes), ..Ack::default() };
                aggregation.update(now, &ack, rounds, rate);
            }
            aggregation.allowance(rate)
        };
        // 10,000 bytes a millisecond are the rate: 50,000 at once are 50,000 more than due.
        assert_eq!(run(50_000, 5, 3), ByteCount::new(50_000));
        assert_eq!(run(1_000, 5, 20), ByteCount::new(1_000));
        assert_eq!(run(5_000_000, 5, 1), rate * LONGEST);
    }
}
