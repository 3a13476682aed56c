//! The sink's end: frames go out in their order, an invalid one in the place of each that is not
//! there in time.

use crate::account::{Counters, LossMap};
use crate::course::{Exception, PathTaken};
use crate::head::{FrameHead, FrameTime, StreamFormat, put_fill};
use crate::hold::{Held, Hold, Transit};
use crate::wire::{FrameGroup, StreamEnd, WireError};
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The sink's end of a stream.
#[derive(Debug)]
pub struct StreamReceiver {
    format: StreamFormat,
    lateness: Duration,
    course: PathTaken,
    hold: Hold,
    transit: Transit,
    /// What was said of frames that have not been given out: at most [`EXCEPTIONS_MAX`].
    exceptions: BTreeMap<u64, Exception>,
    /// The number of the next frame that is given out.
    next: u64,
    /// Behind the highest frame that came.
    highest: u64,
    /// The groups of the last [`SIDE_BY_SIDE`] that were the highest when they came, with when: at
    /// most [`RECENT_MAX`].
    recent: VecDeque<(u64, Instant)>,
    /// The length of the stream, and since when it is known.
    ended: Option<(u64, Instant)>,
    /// Missing frames in a row, up to the next one.
    run: u64,
    frame_len: usize,
    /// Of what was given out, and of what came.
    stamp: Duration,
    newest: Duration,
    slowest: Duration,
    counters: Counters,
    map: LossMap,
}

/// Frames for the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkFrames {
    /// The number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Their bytes; none of lost frames of which nothing is known.
    pub bytes: Bytes,
    /// Whether they stand for frames that are not there.
    pub missing: bool,
    /// When the last that was there was read, from when the stream began.
    pub stamp: Duration,
}

/// Frames of which it is kept what was said, at most.
const EXCEPTIONS_MAX: usize = 1 << 16;
/// Groups are on their way side by side, so that one may be whole before one that was sent before
/// it, without anything having been overtaken on the line: those of 1 ms are gathered, and a host
/// takes what came in one go.
const SIDE_BY_SIDE: Duration = Duration::from_millis(5);
/// Groups remembered for that: more than come meanwhile at 10 Gbit/s.
const RECENT_MAX: usize = 1_024;
/// Bytes of invalid frames that are made at a time, where a frame is not longer.
const FILLED: usize = 64 << 10;

impl StreamReceiver {
    /// Of a stream of `format` whose frames are waited for `lateness` longer than the fastest ones
    /// take.
    pub fn new(format: StreamFormat, lateness: Duration, frames_per_second: Option<u32>) -> Self {
        Self {
            format,
            lateness,
            course: PathTaken::new(frames_per_second),
            hold: Hold::default(),
            transit: Transit::default(),
            exceptions: BTreeMap::new(),
            next: 0,
            highest: 0,
            recent: VecDeque::new(),
            ended: None,
            run: 0,
            frame_len: 0,
            stamp: Duration::ZERO,
            newest: Duration::ZERO,
            slowest: Duration::ZERO,
            counters: Counters::default(),
            map: LossMap::default(),
        }
    }

    /// A group came, repaired on its way or not.
    ///
    /// # Errors
    /// It has frames that wait already, or lie beyond the stream's end.
    pub fn group(
        &mut self,
        now: Instant,
        group: FrameGroup,
        repaired: bool,
    ) -> Result<(), WireError> {
        let (first, count) = (group.first, u64::from(group.count));
        let end = first + count;
        if self.hold.overlaps(&group) || self.is_beyond(end) {
            return Err(WireError::Malformed);
        }
        self.transit.see(now, group.stamp);
        self.newest = self.newest.max(group.stamp);
        self.slowest = self.slowest.max(now.since(self.transit.expected(group.stamp)));
        self.learn(first, &group.recap);
        if first < self.highest && self.is_overtaken(now, first) {
            self.counters.reordered += count;
            self.counters.reordered_by = self.counters.reordered_by.max(self.highest - first);
        } else if end > self.highest {
            self.note_highest(now, first);
        }
        self.highest = self.highest.max(end);
        self.counters.sent = self.counters.sent.max(self.highest);
        if first < self.next {
            // They were counted as lost when invalid frames were given out for them; any others of
            // it will be.
            let late = (end.min(self.next) - first).min(self.counters.lost);
            self.counters.lost -= late;
            self.counters.late += late;
            return Ok(());
        }
        if self.hold.keep(Held { group, repaired }).is_err() {
            self.counters.overflowed += count;
        }
        Ok(())
    }

    /// Whether a group behind this one was there so long ago that both can't have been on their way
    /// side by side.
    fn is_overtaken(&self, now: Instant, first: u64) -> bool {
        // What is not remembered is further back than that.
        let behind = self.recent.iter().find(|(other, _)| *other > first);
        behind.is_none_or(|(_, at)| now.since(*at) > SIDE_BY_SIDE)
    }

    fn note_highest(&mut self, now: Instant, first: u64) {
        let is_old = |at: Instant| now.since(at) > SIDE_BY_SIDE;
        while let Some((_, at)) = self.recent.front()
            && (is_old(*at) || self.recent.len() >= RECENT_MAX)
        {
            self.recent.pop_front();
        }
        self.recent.push_back((first, now));
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// It has fewer frames than came.
    pub fn end(&mut self, now: Instant, end: &StreamEnd) -> Result<(), WireError> {
        if end.frames < self.highest || end.frames < self.next {
            return Err(WireError::Malformed);
        }
        self.learn(end.frames, &end.recap);
        self.counters.sent = end.frames;
        self.ended.get_or_insert((end.frames, now));
        Ok(())
    }

    /// The next frames, where they are there, or it is time to give out others for them.
    pub fn poll(&mut self, now: Instant) -> Option<SinkFrames> {
        if let Some(held) = self.hold.take(self.next) {
            return Some(self.give(held));
        }
        let missing = self.missing(now)?;
        (missing > 0).then(|| self.fill(missing))
    }

    /// When it is to be polled, if nothing comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some(group) = self.hold.first() {
            return Some(self.due(group.stamp));
        }
        self.ended.filter(|(frames, _)| self.next < *frames).map(|(_, since)| since + self.lateness)
    }

    /// Whether everything was given out.
    pub fn is_over(&self) -> bool {
        self.ended.is_some_and(|(frames, _)| self.next >= frames)
    }

    /// What was counted so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How much longer than the fastest one a group took at most, since this was asked the last
    /// time.
    pub fn slowest(&mut self) -> Duration {
        core::mem::take(&mut self.slowest)
    }

    /// When the newest frame that came was read, from when the stream began.
    pub const fn newest(&self) -> Duration {
        self.newest
    }

    /// Which frames the sink does not have.
    pub fn into_map(mut self) -> (Counters, LossMap) {
        self.counters.runs.add(core::mem::take(&mut self.run));
        (self.counters, self.map)
    }

    fn is_beyond(&self, end: u64) -> bool {
        self.ended.is_some_and(|(frames, _)| end > frames)
    }

    fn due(&self, stamp: Duration) -> Instant {
        self.transit.expected(stamp) + self.lateness
    }

    fn learn(&mut self, first: u64, recap: &[(u32, Exception)]) {
        for (back, exception) in recap {
            let number = first.checked_sub(u64::from(*back)).filter(|number| *number >= self.next);
            if let Some(number) = number
                && self.exceptions.len() < EXCEPTIONS_MAX
            {
                self.exceptions.insert(number, *exception);
            }
        }
    }

    /// How many frames are given up now.
    fn missing(&self, now: Instant) -> Option<u64> {
        let (until, due) = match (self.hold.first(), self.ended) {
            (Some(group), _) => (group.first, self.due(group.stamp)),
            (None, Some((frames, since))) => (frames, since + self.lateness),
            (None, None) => return None,
        };
        (now >= due).then_some(until - self.next)
    }

    fn give(&mut self, held: Held) -> SinkFrames {
        let Held { group, repaired } = held;
        let (first, count) = (group.first, u64::from(group.count));
        self.frame_len = group.frame_len();
        self.stamp = group.stamp;
        if self.format != StreamFormat::Datagrams {
            for (at, frame) in group.frames.chunks(self.frame_len).enumerate() {
                let head =
                    FrameHead::read(self.format, frame).expect("frames of a group were read");
                if at == 0 && self.run > 0 && !self.is_expected(first, &head) {
                    self.counters.guessed += self.run.min(self.counters.missing());
                }
                self.course.take(&head);
            }
        }
        self.next = first + count;
        self.exceptions = self.exceptions.split_off(&self.next);
        self.counters.runs.add(core::mem::take(&mut self.run));
        let counter =
            if repaired { &mut self.counters.repaired } else { &mut self.counters.received };
        *counter += count;
        self.counters.bytes += group.frames.len() as u64;
        SinkFrames { first, count, bytes: group.frames, missing: false, stamp: self.stamp }
    }

    /// Whether the course led to `head`: where frames before it were made without knowing, it may
    /// not.
    fn is_expected(&self, number: u64, head: &FrameHead) -> bool {
        let told = self.exceptions.get(&number).and_then(|exception| self.course.of(*exception));
        told.or(self.course.expected()).is_some_and(|expected| expected.is_same(head))
    }

    /// Makes the next of `missing` frames, as many as go at a time.
    fn fill(&mut self, missing: u64) -> SinkFrames {
        let (first, mut bytes) = (self.next, Vec::new());
        while self.next - first < missing
            && bytes.len() + self.frame_len <= FILLED.max(self.frame_len)
        {
            let number = self.next;
            if self.format == StreamFormat::Datagrams {
                let end = bytes.len() + self.frame_len;
                put_fill(&mut bytes, end);
                // Datagrams have no place but their number.
                self.map.add(FrameTime {
                    second: number >> 24,
                    number: number as u32 & 0xFF_FFFF,
                    ..FrameTime::ZERO
                });
            } else {
                let told =
                    self.exceptions.remove(&number).and_then(|exception| self.course.of(exception));
                match told.or_else(|| self.course.expected()) {
                    Some(head) => {
                        head.put_invalid(&mut bytes);
                        self.frame_len = head.frame_len();
                        self.course.take(&head);
                        self.map.add(head.place());
                    }
                    None => self.counters.unmarked += 1,
                }
            }
            self.next += 1;
            if self.next - first >= u64::from(crate::wire::GROUP_MAX) {
                break;
            }
        }
        let count = self.next - first;
        self.run += count;
        self.counters.lost += count;
        SinkFrames { first, count, bytes: bytes.into(), missing: true, stamp: self.stamp }
    }
}

#[cfg(test)]
mod tests;
