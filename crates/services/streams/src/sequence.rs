//! Predicts the next frame of a stream: the order of the threads, and the header of the next frame
//! of each.
//!
//! Both ends keep one, and see the same frames in the same order. Where a frame is not the expected
//! one, the sending end reports it ([`Exception`]) along with the frames behind it, so that the
//! receiving end knows the header of a lost frame.

use crate::head::{FrameHead, StreamFormat};
use skyhaul_units::wire::ByteReader;

/// Which frame comes next, from the frames so far.
#[derive(Debug, Clone, Default)]
pub struct FrameSequence {
    /// One for each thread of each station, in the order of their first frames.
    slots: Vec<Slot>,
    last: Option<usize>,
    /// Frames of a thread in a second, as given from outside.
    given: Option<u32>,
}

#[derive(Debug, Clone)]
struct Slot {
    head: FrameHead,
    /// Which thread came next the last time.
    next: usize,
    frames_per_second: Option<u32>,
}

/// A frame that is not the one that was to be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// It is of another thread, and that one's next.
    Thread(u16),
    /// It has this header.
    Head(FrameHead),
}

impl FrameSequence {
    /// Threads that are followed, at most: as many as VDIF has. Frames of further ones are expected
    /// nowhere.
    pub const THREADS_MAX: usize = 1024;

    /// Of a stream that has not begun, with the frames of a thread in a second where they are
    /// known.
    pub const fn new(frames_per_second: Option<u32>) -> Self {
        Self { slots: Vec::new(), last: None, given: frames_per_second }
    }

    /// The header of the next frame, as far as the frames so far tell; `None` before the first
    /// one.
    pub fn expected(&self) -> Option<FrameHead> {
        Some(self.next_of(self.slots[self.last?].next))
    }

    /// What has to be said of a frame that comes next: nothing where it is the expected one.
    pub fn exception(&self, head: &FrameHead) -> Option<Exception> {
        if self.expected().is_some_and(|expected| expected.is_same(head)) {
            return None;
        }
        let slot = self.slot(head).filter(|slot| self.next_of(*slot).is_same(head));
        Some(slot.map_or(Exception::Head(*head), |slot| Exception::Thread(slot as u16)))
    }

    /// The header that an exception tells; `None` where there is no such thread.
    pub fn of(&self, exception: Exception) -> Option<FrameHead> {
        match exception {
            Exception::Thread(slot) => {
                (usize::from(slot) < self.slots.len()).then(|| self.next_of(slot.into()))
            }
            Exception::Head(head) => Some(head),
        }
    }

    /// Frames of a thread in a second, as far as is known.
    pub fn frames_per_second(&self) -> Option<u32> {
        self.given.or(self.slots.first().and_then(|slot| slot.frames_per_second))
    }

    /// Threads that were seen.
    pub const fn threads(&self) -> usize {
        self.slots.len()
    }

    /// The next frame was this one.
    pub fn take(&mut self, head: &FrameHead) {
        let slot = match self.slot(head) {
            Some(slot) => slot,
            None if self.slots.len() < Self::THREADS_MAX => {
                let frames_per_second = self.frames_per_second();
                // After the last thread comes the first one again.
                self.slots.push(Slot { head: *head, next: 0, frames_per_second });
                self.slots.len() - 1
            }
            None => return,
        };
        if let Some(last) = self.last {
            self.slots[last].next = slot;
        }
        let Slot { head: known, frames_per_second, .. } = &mut self.slots[slot];
        let (before, place) = (known.place(), head.place());
        if frames_per_second.is_some_and(|rate| place.number >= rate) {
            *frames_per_second = None;
        }
        let wrapped = place.second == before.second + 1 && place.number == 0;
        let counted = Some(before.number + 1).filter(|_| wrapped).max(*frames_per_second);
        *frames_per_second = head.frames_per_second().or(counted);
        *known = *head;
        self.last = Some(slot);
    }

    fn slot(&self, head: &FrameHead) -> Option<usize> {
        let place = head.place();
        let is_of = |slot: &Slot| {
            let of = slot.head.place();
            (of.station, of.thread) == (place.station, place.thread)
        };
        // Most often it is the one that is expected.
        let next =
            self.last.map(|last| self.slots[last].next).filter(|next| is_of(&self.slots[*next]));
        next.or_else(|| self.slots.iter().position(is_of))
    }

    fn next_of(&self, slot: usize) -> FrameHead {
        let Slot { head, frames_per_second, .. } = &self.slots[slot];
        head.next(self.given.or(*frames_per_second))
    }
}

impl Exception {
    /// Appends it, said of the frame that is `back` frames before the group that it stands in.
    pub(crate) fn put(&self, back: u32, out: &mut Vec<u8>) {
        out.extend(back.to_be_bytes());
        match self {
            Self::Thread(slot) => {
                out.push(0);
                out.extend(slot.to_be_bytes());
            }
            Self::Head(head) => {
                out.push(1);
                head.put(out);
            }
        }
    }

    /// Takes what [`Self::put`] appended.
    pub(crate) fn take(fields: &mut ByteReader<'_>, format: StreamFormat) -> Option<(u32, Self)> {
        let back = fields.u32()?;
        match fields.u8()? {
            0 => Some((
                back,
                Self::Thread(
                    fields.u16().filter(|slot| usize::from(*slot) < FrameSequence::THREADS_MAX)?,
                ),
            )),
            1 => {
                let head = FrameHead::read(format, fields.rest()).ok()?;
                let mut put = Vec::new();
                head.put(&mut put);
                fields.take(put.len())?;
                Some((back, Self::Head(head)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synthesis;

    fn heads(threads: u16, rate: u32, count: usize) -> Vec<FrameHead> {
        let mut synthesis = Synthesis::new(8, threads, rate).unwrap();
        let mut head = || {
            let mut bytes = Vec::new();
            synthesis.frame(&mut bytes);
            FrameHead::read(StreamFormat::Vdif, &bytes).unwrap()
        };
        (0..count).map(|_| head()).collect()
    }

    /// The places of frames of which something had to be said.
    fn said(heads: &[FrameHead], given: Option<u32>) -> Vec<usize> {
        let mut sequence = FrameSequence::new(given);
        let mut said = Vec::new();
        for (place, head) in heads.iter().enumerate() {
            if sequence.exception(head).is_some() {
                said.push(place);
            }
            sequence.take(head);
        }
        said
    }

    #[test]
    fn threads_in_turn_are_expected_after_their_first_frames_and_their_first_second() {
        assert_eq!(said(&heads(4, 10, 200), Some(10)), [0, 1, 2, 3]);
        // At the first wrap the rate is learnt, by each thread.
        assert_eq!(said(&heads(4, 10, 200), None), [0, 1, 2, 3, 40, 41, 42, 43]);
        assert_eq!(said(&heads(1, 10, 200), None), [0, 10]);
    }

    #[test]
    fn threads_out_of_turn_are_told_by_their_number() {
        let mut heads = heads(3, 10, 12);
        heads.swap(7, 8);
        let mut sequence = FrameSequence::new(Some(10));
        heads[..7].iter().for_each(|head| sequence.take(head));
        assert_eq!(sequence.exception(&heads[7]), Some(Exception::Thread(2)));
        assert_eq!(sequence.of(Exception::Thread(2)), Some(heads[7]));
        assert_eq!(sequence.of(Exception::Thread(3)), None);
    }

    #[test]
    fn an_exception_is_read_as_it_was_written() {
        for exception in [Exception::Thread(5), Exception::Head(heads(1, 10, 1)[0])] {
            let mut bytes = Vec::new();
            exception.put(77, &mut bytes);
            assert_eq!(
                Exception::take(&mut ByteReader::new(&bytes), StreamFormat::Vdif),
                Some((77, exception))
            );
            let short = &bytes[..bytes.len() - 1];
            assert_eq!(Exception::take(&mut ByteReader::new(short), StreamFormat::Vdif), None);
        }
    }
}
