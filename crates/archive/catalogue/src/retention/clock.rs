//! Finds a clock that has jumped, before it makes items old.

use core::fmt;
use skyhaul_units::{Duration, Utc};

/// The clock as looks at the items have seen it. A node looks every few minutes while it runs, and
/// its clock does not jump then; at its start it finds out how far the clock has gone.
#[derive(Debug)]
pub struct RetentionClock {
    /// The time of the last look at which the clock was believed.
    looked: Option<Utc>,
}

/// A clock that is far ahead of the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJump {
    /// The time of the last look.
    pub from: Utc,
    /// The time by the clock now.
    pub to: Utc,
}

/// A node may be off for so long without an alarm: a week's works on the power supply.
const OFF: Duration = Duration::from_secs(7 * 86_400);
const DAY_NS: u64 = 86_400_000_000_000;

impl RetentionClock {
    /// The last look was at this time; of a node that never looked, its newest item is as good.
    pub const fn new(looked: Option<Utc>) -> Self {
        Self { looked }
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// The clock has jumped ahead. It is believed again when it is back, or when an operator
    /// confirms it.
    pub fn look(&mut self, now: Utc) -> Result<(), ClockJump> {
        match self.looked {
            Some(from) if now.since(from) > OFF => Err(ClockJump { from, to: now }),
            _ => {
                self.confirm(now);
                Ok(())
            }
        }
    }

    /// An operator says that the clock is right.
    pub const fn confirm(&mut self, now: Utc) {
        self.looked = Some(now);
    }
}

impl fmt::Display for ClockJump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.to.since(self.from).as_nanos() / DAY_NS;
        write!(
            f,
            "the clock is {days} days ahead of the last look, from {} to {}",
            self.from, self.to
        )
    }
}
