//! When a subflow takes silence for loss: the retransmission time-out of RFC 6298.

use skyhaul_units::Duration;

/// What round trips have shown, and how often silence has doubled the wait.
#[derive(Debug, Default)]
pub(super) struct Timeout {
    smoothed: Option<Duration>,
    variation: Duration,
    doubled: u32,
}

impl Timeout {
    /// A round trip was measured: the wait is no longer doubled. Time stamps (RFC 7323, the default
    /// of hosts today) measure one with each acknowledgement of something new, segments sent again
    /// included (RFC 6298 3).
    pub fn sample(&mut self, rtt: Duration) {
        self.doubled = 0;
        // RFC 6298 2.2 and 2.3.
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(rtt), rtt / 2);
            return;
        };
        let off = rtt.saturating_sub(smoothed).max(smoothed.saturating_sub(rtt));
        self.variation = self.variation.scaled(3, 4) + off / 4;
        self.smoothed = Some(smoothed.scaled(7, 8) + rtt / 8);
    }

    /// RFC 6298 5.5.
    pub fn double(&mut self) {
        self.doubled = (self.doubled + 1).min(MOST_DOUBLINGS);
    }

    /// The smoothed round trip.
    pub fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(INITIAL)
    }

    /// How long to wait for an acknowledgement.
    pub fn span(&self) -> Duration {
        let calm = self
            .smoothed
            .map_or(INITIAL, |smoothed| smoothed + (self.variation * 4).max(LEAST_VARIATION));
        (calm * (1 << self.doubled)).min(LONGEST)
    }
}

/// RFC 6298 2.1.
pub(super) const INITIAL: Duration = Duration::from_secs(1);
/// RFC 6298 2.4 asks for a time-out of a second at least; Linux takes 200 ms above the round trip,
/// which is kinder.
const LEAST_VARIATION: Duration = Duration::from_millis(200);
/// The least that RFC 6298 2.5 allows as a maximum.
const LONGEST: Duration = Duration::from_secs(60);
/// Beyond this any time-out is [`LONGEST`].
const MOST_DOUBLINGS: u32 = 9;
