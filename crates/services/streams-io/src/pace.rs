//! The pace of a source: when each of its frames is handed over.

use core::str::FromStr;
use skyhaul_streams::{FrameHead, FrameTime};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// How fast a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourcePace {
    /// As it comes; frames that the line has no room for are dropped.
    Live,
    /// As fast as the line carries; no frames are dropped at this end.
    Line,
    /// By the times of the frames.
    Frames,
    /// At this rate.
    Rate(Rate),
}

/// The text is not a pace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pace: give frames, live, line, or a rate such as 1gbit")]
pub struct PaceError(String);

impl FromStr for SourcePace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, PaceError> {
        let rate = |rate: &str| rate.parse::<Rate>().ok().filter(|rate| *rate > Rate::ZERO);
        match text {
            "frames" => Ok(Self::Frames),
            "live" => Ok(Self::Live),
            "line" => Ok(Self::Line),
            other => rate(other).map(Self::Rate).ok_or_else(|| PaceError(other.to_owned())),
        }
    }
}

/// Tells when the next frame is due.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: SourcePace,
    began: Option<Instant>,
    bytes: u64,
    /// By the frames of one thread: where time was set the last time, and how long after that the
    /// last one is due.
    anchor: Option<(FrameTime, Instant)>,
    last: Instant,
    late: Lateness,
}

/// Statistics of the delay of frames behind their due time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lateness {
    pub sum: Duration,
    pub count: u64,
    pub most: Duration,
}

/// Frames that lie further apart than this, or go back, are not waited for: the source has been cut
/// there.
const JUMP: Duration = Duration::from_secs(10);

impl Pacer {
    pub fn new(pace: SourcePace) -> Self {
        let (began, anchor) = (None, None);
        Self { pace, began, bytes: 0, anchor, last: Instant::ZERO, late: Lateness::default() }
    }

    /// When a frame of `len` bytes is due; `None` where it has no time.
    pub fn due(
        &mut self,
        now: Instant,
        head: Option<&FrameHead>,
        len: usize,
        frames_per_second: Option<u32>,
    ) -> Option<Instant> {
        let began = *self.began.get_or_insert(now);
        match self.pace {
            SourcePace::Live | SourcePace::Line => None,
            SourcePace::Rate(rate) => {
                let due = began + rate.time_for(ByteCount::new(self.bytes));
                self.bytes += len as u64;
                Some(due)
            }
            SourcePace::Frames => Some(self.by_frame(now, head?.place(), frames_per_second?)),
        }
    }

    /// The frame was handed over now.
    pub fn handed(&mut self, now: Instant, due: Instant) {
        let late = now.since(due);
        self.late.sum += late;
        self.late.count += 1;
        self.late.most = self.late.most.max(late);
    }

    /// How late frames were.
    pub const fn late(&self) -> Lateness {
        self.late
    }

    /// Frames of the thread that came first set the pace; the others go with them.
    fn by_frame(&mut self, now: Instant, place: FrameTime, frames_per_second: u32) -> Instant {
        let Some((first, began)) = self.anchor else {
            self.anchor = Some((place, now));
            self.last = now;
            return now;
        };
        if (place.station, place.thread) != (first.station, first.thread) {
            return self.last;
        }
        let nanos =
            |number: u32| 1_000_000_000 * i128::from(number) / i128::from(frames_per_second.max(1));
        let seconds = i128::from(place.second) - i128::from(first.second);
        let since = seconds * 1_000_000_000 + nanos(place.number) - nanos(first.number);
        let due = u64::try_from(since).ok().map(|since| began + Duration::from_nanos(since));
        match due.filter(|due| *due >= self.last && due.since(self.last) <= JUMP) {
            Some(due) => self.last = due,
            None => {
                // From here on time is counted anew.
                self.last = self.last.max(now);
                self.anchor = Some((place, self.last));
            }
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_streams::{StreamFormat, Synthesis};

    fn heads(count: usize) -> Vec<FrameHead> {
        let mut synthesis = Synthesis::new(8, 2, 10).unwrap();
        let mut head = || {
            let mut bytes = Vec::new();
            synthesis.frame(&mut bytes);
            FrameHead::read(StreamFormat::Vdif, &bytes).unwrap()
        };
        (0..count).map(|_| head()).collect()
    }

    #[test]
    fn frames_are_due_at_their_times() {
        let mut pacer = Pacer::new(SourcePace::Frames);
        let now = Instant::from_nanos(5_000);
        let due = heads(30)
            .iter()
            .map(|head| pacer.due(now, Some(head), 40, Some(10)).unwrap().since(now))
            .collect::<Vec<_>>();
        let expected = (0..30).map(|at| Duration::from_millis(at / 2 * 100)).collect::<Vec<_>>();
        assert_eq!(due, expected);
    }

    #[test]
    fn a_cut_in_the_source_is_not_waited_for() {
        let mut pacer = Pacer::new(SourcePace::Frames);
        let heads = heads(2_000);
        let now = Instant::ZERO;
        pacer.due(now, Some(&heads[0]), 40, Some(10));
        let later = now + Duration::from_millis(50);
        // 60 s further on, and back again.
        assert_eq!(pacer.due(later, Some(&heads[1_200]), 40, Some(10)), Some(later));
        assert_eq!(
            pacer.due(later, Some(&heads[1_202]), 40, Some(10)),
            Some(later + Duration::from_millis(100))
        );
        let after = later + Duration::from_millis(200);
        assert_eq!(pacer.due(after, Some(&heads[0]), 40, Some(10)), Some(after));
    }

    #[test]
    fn paces_are_read_as_they_are_written() {
        let rate = SourcePace::Rate(Rate::from_mbps(8));
        for (text, pace) in [
            ("live", SourcePace::Live),
            ("line", SourcePace::Line),
            ("frames", SourcePace::Frames),
            ("8mbit", rate),
        ] {
            assert_eq!(text.parse(), Ok(pace));
        }
        for text in ["", "x", "0mbit", "-1"] {
            assert!(
                text.parse::<SourcePace>().unwrap_err().to_string().contains("is not a pace: "),
                "{text}"
            );
        }
    }

    #[test]
    fn a_rate_counts_bytes() {
        let mut pacer = Pacer::new(SourcePace::Rate(Rate::from_bps(8_000)));
        let due = [1_000, 500, 1].map(|len| pacer.due(Instant::ZERO, None, len, None).unwrap());
        assert_eq!(due.map(Instant::as_nanos), [0, 1_000_000_000, 1_500_000_000]);
    }
}
