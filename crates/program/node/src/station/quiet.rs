//! The silence of an input. Time in which the thread did not run, because the process was stopped
//! or its machine moved, does not count, nor does time under backpressure.

use skyhaul_units::{Duration, Instant};

/// The time since the last frame, as far as the thread ran.
#[derive(Debug, Clone, Copy)]
pub struct Quiet {
    lasted: Duration,
    looked: Instant,
}

/// The longest time between two looks of a thread that runs: it waits 20 ms for its input, and
/// handles what it read.
const RUNNING: Duration = Duration::from_millis(100);

impl Quiet {
    /// Begins.
    pub const fn from(now: Instant) -> Self {
        Self { lasted: Duration::ZERO, looked: now }
    }

    /// A frame came.
    pub const fn heard(&mut self, now: Instant) {
        *self = Self::from(now);
    }

    /// Time has passed.
    pub fn pass(&mut self, now: Instant) {
        self.lasted += now.since(self.looked).min(RUNNING);
        self.looked = now;
    }

    /// Leaves out the time since the last look.
    pub const fn leave_out(&mut self, now: Instant) {
        self.looked = now;
    }

    /// The length of the silence.
    pub const fn lasted(&self) -> Duration {
        self.lasted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn only_time_in_which_the_thread_ran_is_silence() {
        let mut quiet = Quiet::from(at(0));
        (1..=50).for_each(|look| quiet.pass(at(20 * look)));
        assert_eq!(quiet.lasted(), Duration::from_secs(1));
        // Stopped for an hour.
        quiet.pass(at(3_601_000));
        assert_eq!(quiet.lasted(), Duration::from_secs(1) + RUNNING);
        // Held back for a minute.
        quiet.leave_out(at(3_661_000));
        quiet.pass(at(3_661_020));
        assert_eq!(quiet.lasted(), Duration::from_secs(1) + RUNNING + Duration::from_millis(20));
        quiet.heard(at(3_661_030));
        assert_eq!(quiet.lasted(), Duration::ZERO);
    }
}
