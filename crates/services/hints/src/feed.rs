//! A feed of one path: cuts bytes into lines, keeps what the newest says until it is stale, and
//! counts what is no line.

use crate::line::{FeedLine, FeedLineError, LINE_MAX};
use crate::map::{FeedMap, FeedValues};
use skyhaul_units::{Duration, Instant};

/// The feed of one path.
#[derive(Debug)]
pub struct PathFeed {
    map: FeedMap,
    stale_after: Duration,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The end of a line that is too long has not come.
    skips: bool,
    last: Option<NewestLine>,
    counters: FeedCounters,
    garbage: Option<FeedGarbage>,
    /// When garbage was handed out last.
    told_at: Option<Instant>,
}

/// What the newest line says.
#[derive(Debug, Clone)]
struct NewestLine {
    values: FeedValues,
    /// When a line said so first.
    since: Instant,
    /// When the newest line came.
    at: Instant,
    text: String,
}

/// What a feed says of its path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedHint {
    /// The rate and the loss.
    pub values: FeedValues,
    /// Since when it says so.
    pub since: Instant,
    /// Until when that holds if no further line comes.
    pub until: Instant,
}

/// The lines of a feed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedCounters {
    /// Lines that were read.
    pub lines: u64,
    /// Of those, the ones for which neither the line nor the table gives a rate or a loss.
    pub unmapped: u64,
    /// Lines that were refused.
    pub garbage: u64,
}

/// Lines that were refused since this was told last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedGarbage {
    /// How many.
    pub count: u64,
    /// Why the first of them was.
    pub error: FeedLineError,
}

/// Garbage is told at most once in this time.
const TELL: Duration = Duration::from_secs(60);

impl PathFeed {
    /// A feed whose lines mean what `map` says, each for at most `stale_after`.
    pub const fn new(map: FeedMap, stale_after: Duration) -> Self {
        Self {
            map,
            stale_after,
            partial: Vec::new(),
            skips: false,
            last: None,
            counters: FeedCounters { lines: 0, unmapped: 0, garbage: 0 },
            garbage: None,
            told_at: None,
        }
    }

    /// Takes bytes as they come; a line ends with a line feed.
    pub fn take(&mut self, now: Instant, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, is_whole) = match part.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (part, false),
            };
            if !self.skips {
                // One byte beyond the most is enough to know that it is too long.
                let room = (LINE_MAX + 2).saturating_sub(self.partial.len());
                self.partial.extend_from_slice(&content[..content.len().min(room)]);
                if self.partial.len() > LINE_MAX + 1 {
                    self.partial.clear();
                    self.skips = true;
                    self.refuse(FeedLineError::Long);
                }
            }
            if is_whole {
                if !core::mem::take(&mut self.skips) {
                    let line = core::mem::take(&mut self.partial);
                    self.line(now, line.strip_suffix(b"\r").unwrap_or(&line));
                    self.partial = line;
                }
                self.partial.clear();
            }
        }
    }

    /// The source ended: a line without an end is none.
    pub fn ended(&mut self) {
        self.partial.clear();
        self.skips = false;
    }

    /// Takes one line, without its end.
    pub fn line(&mut self, now: Instant, bytes: &[u8]) {
        let line = match FeedLine::parse(bytes) {
            Ok(line) if line.is_empty() => return,
            Ok(line) => line,
            Err(error) => return self.refuse(error),
        };
        self.counters.lines += 1;
        let values = self.map.values(&line);
        self.counters.unmapped += u64::from(values == FeedValues::default());
        let goes_on = self
            .last
            .as_ref()
            .filter(|last| last.values == values && now < last.at + self.stale_after);
        let since = goes_on.map_or(now, |last| last.since);
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        self.last = Some(NewestLine { values, since, at: now, text });
    }

    fn refuse(&mut self, error: FeedLineError) {
        self.counters.garbage += 1;
        self.garbage.get_or_insert(FeedGarbage { count: 0, error }).count += 1;
    }

    /// What holds now; none where the feed is stale, or its newest line says nothing of the path.
    pub fn hint(&self, now: Instant) -> Option<FeedHint> {
        let last = self.last.as_ref().filter(|last| last.values != FeedValues::default())?;
        let until = last.at + self.stale_after;
        (now < until).then_some(FeedHint { values: last.values, since: last.since, until })
    }

    /// When the newest line came.
    pub fn newest_at(&self) -> Option<Instant> {
        self.last.as_ref().map(|last| last.at)
    }

    /// The newest line.
    pub fn newest(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.text.as_str())
    }

    /// The lines so far.
    pub const fn counters(&self) -> FeedCounters {
        self.counters
    }

    /// Lines that were refused, for the log: at most once a minute.
    pub fn take_garbage(&mut self, now: Instant) -> Option<FeedGarbage> {
        if self.told_at.is_some_and(|told| now < told + TELL) {
            return None;
        }
        let garbage = self.garbage.take()?;
        self.told_at = Some(now);
        Some(garbage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::FeedRow;
    use proptest::prelude::*;
    use skyhaul_units::Rate;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn feed() -> PathFeed {
        let row = FeedRow {
            when: "snr>=8".parse().unwrap(),
            rate: Some(Rate::from_mbps(40)),
            loss: None,
        };
        PathFeed::new(FeedMap::new(vec![row]), Duration::from_secs(5))
    }

    #[test]
    fn what_the_newest_line_says_holds_until_it_is_stale() {
        let mut feed = feed();
        feed.take(at(1_000), b"snr=9\r\nsn");
        feed.take(at(2_000), b"r=10\n");
        let hint = feed.hint(at(2_000)).unwrap();
        assert_eq!((hint.since, hint.until), (at(1_000), at(7_000)));
        assert!(feed.hint(at(6_999)).is_some() && feed.hint(at(7_000)).is_none());
        feed.take(at(8_000), b"snr=9\n");
        assert_eq!(feed.hint(at(8_000)).unwrap().since, at(8_000), "it was stale in between");
        feed.take(at(8_500), b"snr=1\n");
        assert_eq!((feed.hint(at(8_500)), feed.newest()), (None, Some("snr=1")));
        assert_eq!(feed.counters(), FeedCounters { lines: 4, unmapped: 1, garbage: 0 });
    }

    #[test]
    fn garbage_is_counted_told_once_a_minute_and_changes_nothing() {
        let mut feed = feed();
        feed.take(at(0), b"snr=9\n");
        for _ in 0..1_000 {
            feed.take(at(100), &[b'x'; 5_000]);
        }
        feed.take(at(200), b"\n\xff\xff\nsnr\n# a remark\n\n");
        assert_eq!(feed.counters(), FeedCounters { lines: 1, unmapped: 0, garbage: 3 });
        assert!(feed.partial.capacity() <= 4 * LINE_MAX, "{}", feed.partial.capacity());
        assert!(feed.hint(at(300)).is_some());
        let told = feed.take_garbage(at(300)).unwrap();
        assert_eq!((told.count, told.error), (3, FeedLineError::Long));
        feed.take(at(400), b"nothing\n");
        assert_eq!(feed.take_garbage(at(60_299)), None);
        assert_eq!(feed.take_garbage(at(60_300)).unwrap().count, 1);
    }

    #[test]
    fn a_line_that_a_source_did_not_end_is_not_glued_to_the_next() {
        let mut feed = feed();
        feed.take(at(0), b"snr=1");
        feed.ended();
        feed.take(at(10), b"snr=9\n");
        assert_eq!(feed.newest(), Some("snr=9"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            lines in proptest::collection::vec("[ -~]{0,30}", 0..20),
            cuts in proptest::collection::vec(1usize..50, 1..50),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (mut whole, mut pieces) = (feed(), feed());
            whole.take(at(0), text.as_bytes());
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                pieces.take(at(0), piece);
                rest = behind;
            }
            prop_assert_eq!(whole.counters(), pieces.counters());
            prop_assert_eq!(whole.newest(), pieces.newest());
        }
    }
}
