//! A run over time, in few readings: its rate without its start, and the round trip under load.

use skyhaul_transport::PathId;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// Readings of a run, one a second or fewer.
#[derive(Debug, Default)]
pub struct Readings {
    /// At most [`READINGS_MAX`], at about equal distances.
    delivered: Vec<(Instant, ByteCount)>,
    /// Readings that are skipped between two that are kept.
    skips: u32,
    skipped: u32,
    /// Sum of each path's round trips, and how many.
    round_trips: BTreeMap<PathId, (Duration, u32)>,
}

impl Readings {
    /// The bytes delivered up to `now`.
    pub fn read(&mut self, now: Instant, delivered: ByteCount) {
        if self.skipped < self.skips {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        self.delivered.push((now, delivered));
        if self.delivered.len() == READINGS_MAX {
            let mut place = 0;
            self.delivered.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.skips = self.skips * 2 + 1;
        }
    }

    /// A path's round trip while data goes.
    pub fn round_trip(&mut self, path: PathId, rtt: Duration) {
        let (sum, count) = self.round_trips.entry(path).or_default();
        *sum += rtt;
        *count += 1;
    }

    /// A path's mean round trip; `None` for runs so short that there was no reading.
    pub fn mean_round_trip(&self, path: PathId) -> Option<Duration> {
        self.round_trips
            .get(&path)
            .filter(|(_, count)| *count > 0)
            .map(|(sum, count)| *sum / u64::from(*count))
    }

    /// The rate over the later half of the run that began at `began` and delivered `all` by `end`;
    /// `None` for runs without a reading near their middle.
    pub fn steady(&self, began: Instant, end: Instant, all: ByteCount) -> Option<Rate> {
        let middle = began + end.since(began) / 2;
        let (at, before) = self.delivered.iter().find(|(at, _)| *at >= middle && *at < end)?;
        (end.since(*at) >= SHORTEST)
            .then(|| Rate::over(all.saturating_sub(*before), end.since(*at)))
    }
}

/// A run of any length has at most this many readings, and at least half as many once it is long.
const READINGS_MAX: usize = 128;

/// A rate over less would rest on a few reports.
const SHORTEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_half_counts_for_any_length_of_a_run() {
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        for length in [4, 100, 3_000] {
            let mut course = Readings::default();
            // Nothing in the first third.
            let delivered = |second: u64| ByteCount::new(second.saturating_sub(length / 3) * 1_000);
            (1..length).for_each(|second| course.read(at(second), delivered(second)));
            let steady = course.steady(at(0), at(length), delivered(length));
            assert_eq!(steady, Some(Rate::from_bps(8_000)), "{length}");
            assert!(course.delivered.len() < READINGS_MAX);
        }
        assert_eq!(Readings::default().steady(at(0), at(9), ByteCount::new(1)), None);
    }

    #[test]
    fn a_round_trip_is_the_mean_of_those_under_load() {
        let mut course = Readings::default();
        for millis in [10, 30] {
            course.round_trip(PathId(1), Duration::from_millis(millis));
        }
        assert_eq!(course.mean_round_trip(PathId(1)), Some(Duration::from_millis(20)));
        assert_eq!(course.mean_round_trip(PathId(2)), None);
    }
}
