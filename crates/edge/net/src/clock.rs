//! The process's clock: the only source of real time.

use skyhaul_units::{Duration, Instant, Utc};

/// A monotonic clock that starts at zero, tied to calendar time once, at its start: its time stamps
/// never go back, even if the system's calendar clock is set while the program runs.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: std::time::Instant,
    utc_at_start: Utc,
}

impl Clock {
    /// Starts at zero now.
    #[allow(clippy::disallowed_methods, reason = "the edge is where clocks are read")]
    pub fn start() -> Self {
        let mut clock = Self { start: std::time::Instant::now(), utc_at_start: Utc::from_nanos(0) };
        let since_1970 = || {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
        };
        let (at, calendar) = at_once(|| clock.now(), since_1970);
        let nanos = calendar.as_nanos().saturating_sub(u128::from(at.as_nanos()));
        clock.utc_at_start = Utc::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        clock
    }

    /// Time since the start.
    #[allow(clippy::disallowed_methods, reason = "the edge is where clocks are read")]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Calendar time.
    pub fn utc(&self) -> Utc {
        self.utc_of(self.now())
    }

    /// The calendar time of a reading.
    pub fn utc_of(&self, instant: Instant) -> Utc {
        self.utc_at_start + instant.since(Instant::ZERO)
    }

    /// Calendar time at zero.
    pub const fn utc_at_start(&self) -> Utc {
        self.utc_at_start
    }

    /// The standard library's reading at zero, for libraries that use it.
    pub const fn std_start(&self) -> std::time::Instant {
        self.start
    }

    /// How long from now until `due`.
    pub fn until(&self, due: Instant) -> Duration {
        due.since(self.now())
    }
}

/// Reads two clocks at one moment. If the thread does not run for a while between the two readings,
/// they are that far apart: it reads again, and returns the readings that were closest together.
pub fn at_once<T>(mut now: impl FnMut() -> Instant, mut other: impl FnMut() -> T) -> (Instant, T) {
    let mut read = || {
        let (before, other, after) = (now(), other(), now());
        (after.since(before), (after, other))
    };
    let mut closest = read();
    for _ in 1..READINGS {
        if closest.0 <= CLOSE {
            break;
        }
        let again = read();
        if again.0 < closest.0 {
            closest = again;
        }
    }
    closest.1
}

/// Readings that are this close are taken at once: three readings take a tenth of this on a slow
/// machine.
const CLOSE: Duration = Duration::from_micros(5);

/// It is unlikely that a thread is interrupted so many times one after the other.
const READINGS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_between_two_readings_is_not_taken_for_a_difference() {
        let micros = [0, 334_000, 400_000, 400_001, 500_000];
        let mut readings = micros.into_iter().map(|at| Instant::from_nanos(at * 1_000));
        let mut others = 10..;
        let read = at_once(|| readings.next().unwrap(), || others.next().unwrap());
        assert_eq!(read, (Instant::from_nanos(400_001_000), 11));
    }

    #[test]
    fn of_pauses_every_time_the_shortest_counts() {
        let pauses = [900, 800, 30, 700, 600, 500, 400, 300];
        let mut now = 0;
        let ends: Vec<u64> = pauses.iter().flat_map(|pause| [1_000, *pause]).collect();
        let mut steps = ends.into_iter();
        let mut others = 0..;
        let read = at_once(
            || {
                now += steps.next().unwrap();
                Instant::from_nanos(now * 1_000)
            },
            || others.next().unwrap(),
        );
        assert_eq!(read.1, 2);
    }
}
