//! The sink's end: puts frames in order, and replaces each one that is not there in time with an
//! invalid one.

mod expected;
mod reordering;
mod timing;

use crate::account::{Counters, LossMap};
use crate::frame_time::FrameTime;
use crate::head::{FrameHead, StreamFormat, put_fill};
use crate::hold::{Held, Hold};
use crate::wire::{FrameGroup, StreamEnd, WireError};
use bytes::Bytes;
use expected::ExpectedFrames;
use reordering::Reordering;
use skyhaul_units::{Duration, Instant};
use timing::GroupTiming;

/// The sink's end of a stream.
#[derive(Debug)]
pub struct StreamReceiver {
    format: StreamFormat,
    expected: ExpectedFrames,
    hold: Hold,
    timing: GroupTiming,
    reordering: Reordering,
    /// The number of the next frame that is given out.
    next: u64,
    /// The length of the stream, and since when it is known.
    ended: Option<(u64, Instant)>,
    /// Missing frames in a row, up to the next one.
    run: u64,
    frame_len: usize,
    /// When what was given out last was read, from when the stream began.
    stamp: Duration,
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

/// Bytes of invalid frames that are made at a time, where a frame is not longer.
const FILLED: usize = 64 << 10;

impl StreamReceiver {
    /// Of a stream of `format` whose frames are waited for `lateness` longer than the fastest ones
    /// take.
    pub fn new(format: StreamFormat, lateness: Duration, frames_per_second: Option<u32>) -> Self {
        Self {
            format,
            expected: ExpectedFrames::new(frames_per_second),
            hold: Hold::default(),
            timing: GroupTiming::new(lateness),
            reordering: Reordering::default(),
            next: 0,
            ended: None,
            run: 0,
            frame_len: 0,
            stamp: Duration::ZERO,
            counters: Counters::default(),
            map: LossMap::default(),
        }
    }

    /// A group came.
    ///
    /// # Errors
    /// It has frames that wait already, or lie beyond the stream's end.
    pub fn group(&mut self, now: Instant, group: FrameGroup) -> Result<(), WireError> {
        self.arrive(now, Held { group, repaired: false })
    }

    /// A group came that FEC repaired on its way.
    ///
    /// # Errors
    /// As [`Self::group`].
    pub fn repaired_group(&mut self, now: Instant, group: FrameGroup) -> Result<(), WireError> {
        self.arrive(now, Held { group, repaired: true })
    }

    fn arrive(&mut self, now: Instant, held: Held) -> Result<(), WireError> {
        let group = &held.group;
        let (first, count) = (group.first, u64::from(group.count));
        let end = first + count;
        if self.hold.overlaps(group) || self.is_beyond(end) {
            return Err(WireError::Malformed);
        }
        self.timing.see(now, group.stamp);
        self.expected.learn(self.next, first, &group.recap);
        if let Some(by) = self.reordering.see(now, first, end) {
            self.counters.reordered += count;
            self.counters.reordered_by = self.counters.reordered_by.max(by);
        }
        self.counters.sent = self.counters.sent.max(self.reordering.highest());
        if first < self.next {
            // They were counted as lost when invalid frames were given out for them; any others of
            // it will be.
            let late = (end.min(self.next) - first).min(self.counters.lost);
            self.counters.lost -= late;
            self.counters.late += late;
            return Ok(());
        }
        if self.hold.keep(held).is_err() {
            self.counters.overflowed += count;
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// It has fewer frames than came.
    pub fn end(&mut self, now: Instant, end: &StreamEnd) -> Result<(), WireError> {
        if end.frames < self.reordering.highest() || end.frames < self.next {
            return Err(WireError::Malformed);
        }
        self.expected.learn(self.next, end.frames, &end.recap);
        self.counters.sent = end.frames;
        self.ended.get_or_insert((end.frames, now));
        Ok(())
    }

    /// The next frames, where they are there, or it is time to give out others for them. Those of
    /// RTP are given out at their time, as far apart as their stamps.
    pub fn poll(&mut self, now: Instant) -> Option<SinkFrames> {
        if self.format == StreamFormat::Rtp && self.next_timeout().is_some_and(|due| now < due) {
            return None;
        }
        if let Some(held) = self.hold.take(self.next) {
            return Some(self.give(held));
        }
        let missing = self.missing(now)?;
        (missing > 0).then(|| self.fill(missing))
    }

    /// When it is to be polled, if nothing comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some(group) = self.hold.first() {
            return Some(self.timing.due(group.stamp));
        }
        self.ended
            .filter(|(frames, _)| self.next < *frames)
            .map(|(_, since)| since + self.timing.lateness)
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
        self.timing.take_slowest()
    }

    /// When the newest frame that came was read, from when the stream began.
    pub const fn newest(&self) -> Duration {
        self.timing.newest
    }

    /// Which frames the sink does not have.
    pub fn into_map(mut self) -> (Counters, LossMap) {
        self.counters.runs.add(core::mem::take(&mut self.run));
        (self.counters, self.map)
    }

    fn is_beyond(&self, end: u64) -> bool {
        self.ended.is_some_and(|(frames, _)| end > frames)
    }

    /// How many frames are given up now.
    fn missing(&self, now: Instant) -> Option<u64> {
        let (until, due) = match (self.hold.first(), self.ended) {
            (Some(group), _) => (group.first, self.timing.due(group.stamp)),
            (None, Some((frames, since))) => (frames, since + self.timing.lateness),
            (None, None) => return None,
        };
        (now >= due).then_some(until - self.next)
    }

    fn give(&mut self, held: Held) -> SinkFrames {
        let Held { group, repaired } = held;
        let (first, count) = (group.first, u64::from(group.count));
        self.frame_len = group.frame_len();
        self.stamp = group.stamp;
        if self.format.has_headers() {
            for (at, frame) in group.frames.chunks(self.frame_len).enumerate() {
                let head =
                    FrameHead::read(self.format, frame).expect("frames of a group were read");
                if at == 0 && self.run > 0 && !self.expected.leads_to(first, &head) {
                    self.counters.guessed += self.run.min(self.counters.missing());
                }
                self.expected.take(&head);
            }
        }
        self.next = first + count;
        self.expected.forget_before(self.next);
        self.counters.runs.add(core::mem::take(&mut self.run));
        let counter =
            if repaired { &mut self.counters.repaired } else { &mut self.counters.received };
        *counter += count;
        self.counters.bytes += group.frames.len() as u64;
        SinkFrames { first, count, bytes: group.frames, missing: false, stamp: self.stamp }
    }

    /// Makes the next of `missing` frames, as many as go at a time.
    fn fill(&mut self, missing: u64) -> SinkFrames {
        let (first, mut bytes) = (self.next, Vec::new());
        while self.next - first < missing
            && bytes.len() + self.frame_len <= FILLED.max(self.frame_len)
        {
            let number = self.next;
            if !self.format.has_headers() {
                if self.format == StreamFormat::Datagrams {
                    let end = bytes.len() + self.frame_len;
                    put_fill(&mut bytes, end);
                }
                // Such frames have no place but their number.
                self.map.add(FrameTime {
                    second: number >> 24,
                    number: number as u32 & 0xFF_FFFF,
                    ..FrameTime::ZERO
                });
            } else {
                match self.expected.head_of(number) {
                    Some(head) => {
                        head.put_invalid(&mut bytes);
                        self.frame_len = head.frame_len();
                        self.expected.take(&head);
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
