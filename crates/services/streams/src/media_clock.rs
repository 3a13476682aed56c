//! The time stamps of a media stream as times of reading.
//!
//! A sender stamps frames by a clock of its own, with jitter between the stamp and the arrival.
//! [`MediaClock`] finds when a frame would have come had it been among the fastest: from then on
//! its lateness counts.

use crate::transit::Transit;
use skyhaul_units::{Duration, Instant};

/// The clock of one source, in ticks.
#[derive(Debug)]
pub struct MediaClock {
    ticks_per_second: u32,
    /// A frame that is further from the others in time is a new beginning.
    jump: Duration,
    began: Instant,
    /// A number of ticks, and the stamp that stands for it.
    origin: Option<(u64, Duration)>,
    last: Duration,
    transit: Transit,
}

/// When a frame belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaTime {
    /// From when the stream began, by the source's clock; never before that of an earlier frame.
    pub stamp: Duration,
    /// When it would have come, had it been among the fastest.
    pub since: Instant,
}

/// Jitter of a source below this is no new beginning, however short the bound on lateness is.
const JUMP_LEAST: Duration = Duration::from_millis(500);

impl MediaClock {
    /// The clock of a stream that begins at `began`, whose frames are worth nothing once they are
    /// later than the fastest ones by `lateness`.
    pub fn new(began: Instant, ticks_per_second: u32, lateness: Duration) -> Self {
        Self {
            ticks_per_second: ticks_per_second.max(1),
            jump: lateness.max(JUMP_LEAST),
            began,
            origin: None,
            last: Duration::ZERO,
            transit: Transit::default(),
        }
    }

    /// A frame of this number of ticks came whole now.
    ///
    /// Frames go out in the order in which they came. A picture that is shown before one that came
    /// earlier (a B picture) therefore has the stamp of that one.
    pub fn see(&mut self, now: Instant, ticks: u64) -> MediaTime {
        let stamp = self.stamp(ticks).filter(|stamp| self.is_near(now, *stamp));
        let stamp = stamp.unwrap_or_else(|| self.begin_anew(now, ticks)).max(self.last);
        self.last = stamp;
        self.transit.see(now, stamp);
        MediaTime { stamp, since: self.transit.expected(stamp) }
    }

    /// `None` before the first frame, and where it lies before the stream's beginning.
    fn stamp(&self, ticks: u64) -> Option<Duration> {
        let (origin, stamp) = self.origin?;
        let away = (i128::from(ticks) - i128::from(origin)) * 1_000_000_000;
        let nanos = i128::from(stamp.as_nanos()) + away / i128::from(self.ticks_per_second);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    fn is_near(&self, now: Instant, stamp: Duration) -> bool {
        let expected = self.transit.expected(stamp);
        now.since(expected).max(expected.since(now)) <= self.jump
    }

    /// The frame is among the fastest, whatever its time stamp is.
    fn begin_anew(&mut self, now: Instant, ticks: u64) -> Duration {
        let stamp = match self.origin {
            None => now.since(self.began),
            Some(_) => self.transit.stamp_of(now),
        };
        self.origin = Some((ticks, stamp.max(self.last)));
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Frames of 90 ticks a millisecond: when each came and its time stamp, both in milliseconds.
    fn times(clock: &mut MediaClock, frames: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut time = |(came, stamp): &(u64, u64)| {
            let MediaTime { stamp, since } = clock.see(at(*came), (1 << 32) + stamp * 90);
            (stamp.as_millis(), since.since(Instant::ZERO).as_millis())
        };
        frames.iter().map(&mut time).collect()
    }

    #[test]
    fn a_frame_that_comes_late_counts_from_when_the_fastest_would_have_come() {
        let mut clock = MediaClock::new(at(1_000), 90_000, ms(200));
        let found = times(&mut clock, &[(1_010, 0), (1_090, 40), (1_086, 80), (1_130, 120)]);
        assert_eq!(found, [(10, 1_010), (50, 1_050), (90, 1_086), (130, 1_126)]);
    }

    #[test]
    fn pictures_out_of_order_have_the_stamp_of_those_before_them() {
        let mut clock = MediaClock::new(at(0), 90_000, ms(200));
        let found = times(&mut clock, &[(0, 0), (120, 120), (130, 40), (140, 80), (240, 240)]);
        let stamps: Vec<u64> = found.iter().map(|(stamp, _)| *stamp).collect();
        assert_eq!(stamps, [0, 120, 120, 120, 240]);
        assert!(found.iter().all(|(stamp, since)| stamp == since), "{found:?}");
    }

    #[test]
    fn a_jump_of_the_time_stamps_is_a_new_beginning_without_a_gap() {
        for to in [0, 9_000_000, 100] {
            let mut clock = MediaClock::new(at(0), 90_000, ms(200));
            let frames = [(0, 5_000), (40, 5_040), (80, to), (120, to + 40)];
            let found = times(&mut clock, &frames);
            assert_eq!(found, [(0, 0), (40, 40), (80, 80), (120, 120)], "to {to}");
        }
    }

    #[test]
    fn after_a_pause_of_the_reader_the_frames_that_waited_come_at_once() {
        let mut clock = MediaClock::new(at(0), 90_000, ms(200));
        let mut frames: Vec<(u64, u64)> = (0..10).map(|n| (n * 40, n * 40)).collect();
        frames.extend((10..60).map(|n| (2_400, n * 40)));
        frames.extend((60..70).map(|n| (n * 40, n * 40)));
        let found = times(&mut clock, &frames);
        assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{found:?}");
        let behind = found.iter().zip(&frames).map(|((_, since), (came, _))| came - since);
        assert!(behind.skip(60).all(|behind| behind == 0), "the last ones are in time again");
    }
}
