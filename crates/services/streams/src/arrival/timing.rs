//! The delay of groups, and the time-out of missing frames.

use crate::transit::Transit;
use skyhaul_units::{Duration, Instant};

/// When groups come, and how long a frame is waited for.
#[derive(Debug)]
pub(super) struct GroupTiming {
    transit: Transit,
    /// How much longer than the fastest groups one is waited for.
    pub lateness: Duration,
    /// When the newest frame that came was read, from when the stream began.
    pub newest: Duration,
    /// How much longer than the fastest one a group took at most.
    slowest: Duration,
}

impl GroupTiming {
    pub fn new(lateness: Duration) -> Self {
        Self {
            transit: Transit::default(),
            lateness,
            newest: Duration::ZERO,
            slowest: Duration::ZERO,
        }
    }

    /// A group with `stamp` came now.
    pub fn see(&mut self, now: Instant, stamp: Duration) {
        self.transit.see(now, stamp);
        self.newest = self.newest.max(stamp);
        self.slowest = self.slowest.max(now.since(self.transit.expected(stamp)));
    }

    /// Until when frames before one with `stamp` are waited for.
    pub fn due(&self, stamp: Duration) -> Instant {
        self.transit.expected(stamp) + self.lateness
    }

    /// How much longer than the fastest one a group took at most, since this was asked the last
    /// time.
    pub fn take_slowest(&mut self) -> Duration {
        core::mem::take(&mut self.slowest)
    }
}
