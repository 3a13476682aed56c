//! The times of publication of contacts and their files.

use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant, Utc};

/// Gives each contact and each file a time of its own, later than all earlier ones: who asks for
/// what was published after the last time that it saw misses nothing, and gets nothing twice. Whole
/// milliseconds, because clients of the interface read no more.
#[derive(Debug)]
pub struct SessionTimes {
    clock: Clock,
    last: Utc,
}

impl SessionTimes {
    /// After `last`.
    pub const fn new(clock: Clock, last: Utc) -> Self {
        Self { clock, last }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The time, for people.
    pub fn utc(&self) -> Utc {
        self.clock.utc()
    }

    /// The time of what is published now.
    pub fn published(&mut self) -> Utc {
        let milliseconds = |time: Utc| time.as_micros().div_euclid(1_000);
        let next = Utc::from_micros((milliseconds(self.clock.utc()) + 1) * 1_000);
        let after = self.last + Duration::from_millis(1);
        self.last = next.max(after);
        self.last
    }
}
