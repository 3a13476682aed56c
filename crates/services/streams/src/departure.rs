//! The source's end: puts frames into groups, one block each.

use crate::head::FrameHead;
use crate::media_clock::MediaTime;
use crate::sequence::{Exception, FrameSequence};
use crate::wire::{GROUP_MAX, GroupHead, Message, RECAP_MAX, StreamEnd, finish_group};
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// How frames are gathered to groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameGrouping {
    /// Bytes of a group, at most, where a frame is not longer: what is lost is lost by groups, and
    /// small ones cost headers.
    pub bytes: usize,
    /// How long a group is gathered, at most.
    pub wait: Duration,
}

impl Default for FrameGrouping {
    /// 64 KiB are half a millisecond at 1 Gbit/s; slower streams wait 1 ms, which no line shows.
    fn default() -> Self {
        Self { bytes: 64 << 10, wait: Duration::from_millis(1) }
    }
}

/// A group that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The block.
    pub bytes: Bytes,
    /// Frames in it.
    pub frames: u64,
    /// When the first of them was there.
    pub since: Instant,
    /// What a frame of video is to others.
    pub role: Option<FrameRole>,
}

/// Which frame of video needs which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameRole {
    /// Its number in the stream.
    pub number: u64,
    /// The number of the frame without which it is worth nothing.
    pub needs: Option<u64>,
    /// A decoder can begin with it.
    pub is_key: bool,
    /// Frames behind it may need it.
    pub is_needed: bool,
}

/// The source's end of a stream.
#[derive(Debug)]
pub struct Departure {
    packing: FrameGrouping,
    began: Instant,
    course: FrameSequence,
    /// Frames that were not to be expected: what was said of the last ones, oldest first. Bounded
    /// by [`KEPT_MAX`].
    recap: VecDeque<(u64, Exception, Instant)>,
    next: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    message: Vec<u8>,
    frame_len: usize,
    count: u16,
    since: Instant,
}

impl Departure {
    /// A stream that begins at `began`, with the frames of a thread in a second where they are
    /// known beforehand.
    pub fn new(began: Instant, packing: FrameGrouping, frames_per_second: Option<u32>) -> Self {
        let course = FrameSequence::new(frames_per_second);
        Self { packing, began, course, recap: VecDeque::new(), next: 0, open: None }
    }

    /// The next frame, with its header where the format has one; at most [`crate::FRAME_MAX`]
    /// bytes, and not none. Gives the group that it completes.
    pub fn frame(
        &mut self,
        now: Instant,
        head: Option<&FrameHead>,
        bytes: &[u8],
    ) -> Option<Parcel> {
        let fits = self.open.as_ref().is_some_and(|open| {
            open.frame_len == bytes.len()
                && open.count < GROUP_MAX
                && open.message.len() + bytes.len() <= self.packing.bytes
        });
        let full = if fits { None } else { self.flush() };
        if let Some(head) = head {
            if let Some(exception) = self.course.exception(head) {
                self.recap.push_back((self.next, exception, now));
                if self.recap.len() > KEPT_MAX {
                    self.recap.pop_front();
                }
            }
            self.course.take(head);
        }
        let mut open = self.open.take().unwrap_or_else(|| self.begin(now, bytes.len()));
        open.message.extend_from_slice(bytes);
        open.count += 1;
        self.open = Some(open);
        self.next += 1;
        full
    }

    /// When the open group is to be sent, whatever comes.
    pub fn due(&self) -> Option<Instant> {
        self.open.as_ref().map(|open| open.since + self.packing.wait)
    }

    /// Gives the open group.
    pub fn flush(&mut self) -> Option<Parcel> {
        let mut open = self.open.take()?;
        finish_group(&mut open.message, open.count);
        let (frames, since) = (open.count.into(), open.since);
        Some(Parcel { bytes: open.message.into(), frames, since, role: None })
    }

    /// A frame that goes in a group of its own, under its own time; behind the last group, which
    /// was flushed.
    pub fn single(&mut self, time: MediaTime, role: FrameRole, bytes: &[u8]) -> Parcel {
        let mut message = Vec::with_capacity(bytes.len() + 64);
        let head = GroupHead { first: self.next, stamp: time.stamp, frame_len: bytes.len() };
        head.put(&[], &mut message);
        message.extend_from_slice(bytes);
        finish_group(&mut message, 1);
        self.next += 1;
        Parcel { bytes: message.into(), frames: 1, since: time.since, role: Some(role) }
    }

    /// The last message, behind the last group, which was flushed; `unsent` frames were dropped
    /// before they were sent.
    pub fn end(&self, unsent: u64) -> Message {
        Message::End(StreamEnd { frames: self.next, unsent, recap: self.told() })
    }

    /// Frames so far.
    pub const fn frames(&self) -> u64 {
        self.next
    }

    /// What is known of the order of the frames.
    pub const fn course(&self) -> &FrameSequence {
        &self.course
    }

    fn begin(&mut self, now: Instant, frame_len: usize) -> Open {
        while self.recap.front().is_some_and(|(_, _, at)| now.since(*at) > KEPT) {
            self.recap.pop_front();
        }
        let mut message = Vec::with_capacity(self.packing.bytes.max(frame_len + RECAP_MAX + 64));
        let head = GroupHead { first: self.next, stamp: now.since(self.began), frame_len };
        head.put(&self.told(), &mut message);
        Open { message, frame_len, count: 0, since: now }
    }

    /// The newest first: where not all have room, the others were told before.
    fn told(&self) -> Vec<(u32, Exception)> {
        let told = self.recap.iter().rev().map(|(at, exception, _)| (self.next - at, *exception));
        told.filter_map(|(back, exception)| Some((u32::try_from(back).ok()?, exception))).collect()
    }
}

/// How long it is told what was not to be expected: longer than a line is out, in most cases.
const KEPT: Duration = Duration::from_secs(60);
/// Frames of which it is told, at most: what has room in a group at least.
const KEPT_MAX: usize = RECAP_MAX / 7;
