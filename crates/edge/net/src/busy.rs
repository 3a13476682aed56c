//! The time that a thread spends in calls of one kind, such as those to a disk.

use crate::clock::Clock;
use skyhaul_units::{Duration, Instant};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts the time that one thread spends in certain calls. Other threads may read it during a
/// call.
#[derive(Debug)]
pub struct BusyClock {
    clock: Clock,
    time: Mutex<BusyTime>,
}

#[derive(Debug, Default)]
struct BusyTime {
    over: Duration,
    /// Beginning of the call in progress.
    since: Option<Instant>,
}

impl BusyTime {
    fn until(&self, now: Instant) -> Duration {
        self.over + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

impl BusyClock {
    /// No calls yet.
    pub fn new(clock: Clock) -> Self {
        Self { clock, time: Mutex::default() }
    }

    /// Makes a call whose time counts. For one thread only.
    pub fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        self.time().since = Some(self.clock.now());
        let outcome = call();
        let (now, mut time) = (self.clock.now(), self.time());
        *time = BusyTime { over: time.until(now), since: None };
        outcome
    }

    /// The time so far, including a call in progress.
    pub fn so_far(&self) -> Duration {
        self.time().until(self.clock.now())
    }

    fn time(&self) -> MutexGuard<'_, BusyTime> {
        // A thread that panicked with the lock left two valid numbers.
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_while_they_go_on_and_nothing_in_between_does() {
        let clock = Clock::start();
        let busy = BusyClock::new(clock);
        assert_eq!(busy.so_far(), Duration::ZERO);
        let wait = || {
            let (begun, before) = (clock.now(), busy.so_far());
            while clock.now().since(begun) < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            busy.so_far().saturating_sub(before)
        };
        assert_eq!(wait(), Duration::ZERO, "no call goes on");
        assert!(busy.during(wait) >= Duration::from_millis(2), "read within the call");
        let over = busy.so_far();
        assert!(over >= Duration::from_millis(2));
        assert_eq!((wait(), busy.so_far()), (Duration::ZERO, over));
    }
}
