//! The round trip that the transmissions of a path measure, and how long no news is normal.

use skyhaul_units::{Duration, Instant};

/// Smoothed round-trip time and its mean deviation (RFC 6298 2).
#[derive(Debug, Default)]
pub struct RoundTrip {
    pub smoothed: Duration,
    deviation: Duration,
}

/// Patience before the first measurement: longer than a geostationary round trip with its queue.
const PATIENCE_FIRST: Duration = Duration::from_millis(1_500);
/// The far end may hold an acknowledgement back for 25 ms (RFC 9000 18.2), and a tick of 4 ms at
/// each end.
const ACK_DELAY: Duration = Duration::from_millis(35);

impl RoundTrip {
    pub fn sample(&mut self, rtt: Duration) {
        if self.smoothed == Duration::ZERO {
            self.smoothed = rtt;
            self.deviation = rtt / 2;
            return;
        }
        let off = if rtt > self.smoothed { rtt - self.smoothed } else { self.smoothed - rtt };
        self.deviation = self.deviation.scaled(3, 4) + off / 4;
        self.smoothed = self.smoothed.scaled(7, 8) + rtt / 8;
    }

    /// How long no news is normal: for what nothing sent later can tell of, the last symbols before
    /// a pause.
    fn patience(&self, said: Duration) -> Duration {
        if self.smoothed == Duration::ZERO {
            return PATIENCE_FIRST.max(said.scaled(3, 2) + ACK_DELAY);
        }
        self.smoothed + (self.deviation * 4).max(self.smoothed / 4) + ACK_DELAY
    }
}

/// How long a path may owe an answer before what it owes counts as lost.
#[derive(Debug, Default)]
pub struct Patience {
    pub rtt: RoundTrip,
    /// What the path says that a round trip takes, for as long as none was measured here.
    said: Duration,
    /// How often patience ended since something was last heard to have arrived.
    ended: u32,
    /// When it ended last.
    ended_at: Instant,
}

/// A path that does not answer is tried again after at most 32 times its patience.
const BACKOFF_MAX: u32 = 5;

impl Patience {
    /// How long no news is normal, doubled each time that it ended with no news since (RFC 6298
    /// 5.5).
    pub fn now(&self) -> Duration {
        self.rtt.patience(self.said) * (1 << self.ended)
    }

    /// The path has measured a round trip by itself.
    pub const fn hear(&mut self, rtt: Duration) {
        self.said = rtt;
    }

    /// Something has arrived.
    pub const fn renew(&mut self) {
        self.ended = 0;
    }

    /// It ended for what was sent at `sent`. What was sent before it ended last counts with that.
    pub fn end(&mut self, now: Instant, sent: Instant) {
        if sent >= self.ended_at {
            (self.ended, self.ended_at) = ((self.ended + 1).min(BACKOFF_MAX), now);
        }
    }
}
