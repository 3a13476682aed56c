//! Frames in a stream of bytes that may begin anywhere and may have something else between them.
//!
//! A VDIF header has no marker. The first one counts where another one that goes with it stands
//! where its frame ends; from there on each frame says where the next one is. A Mark 5B header has
//! its sync word, and counts in the same way.

use crate::head::{FrameHead, StreamFormat};
use crate::mark5b::Mark5bHeader;

/// Finds frames in what is pushed.
#[derive(Debug, Clone)]
pub struct FrameFinder {
    format: Option<StreamFormat>,
    bytes: Vec<u8>,
    at: usize,
    /// The header of the frame before, where `at` is the end of that frame.
    before: Option<FrameHead>,
    /// A header of the stream, for where it has to be found again.
    known: Option<FrameHead>,
    skipped: usize,
    ended: bool,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum NextBytes<'a> {
    /// A frame, whole.
    Frame(FrameHead, &'a [u8]),
    /// So many bytes that belong to no frame.
    Skipped(usize),
    /// From here on frames are as long as the second says, not as the first: it is another stream.
    Changed(usize, usize),
}

/// What a place in the bytes is.
enum Look {
    Frame(FrameHead),
    Changed(usize, usize),
    Nothing,
    /// It takes more bytes to tell.
    Wait,
}

impl FrameFinder {
    /// For frames of `format`, or of the one whose frames are found first.
    pub const fn new(format: Option<StreamFormat>) -> Self {
        Self {
            format,
            bytes: Vec::new(),
            at: 0,
            before: None,
            known: None,
            skipped: 0,
            ended: false,
        }
    }

    /// Appends bytes. What was found before is gone.
    pub fn push(&mut self, bytes: &[u8]) {
        self.space(bytes.len()).copy_from_slice(bytes);
    }

    /// Room for `len` bytes behind the others, which the caller fills; [`FrameFinder::cut`] takes
    /// back what it did not.
    pub fn space(&mut self, len: usize) -> &mut [u8] {
        self.bytes.drain(..self.at);
        self.at = 0;
        let filled = self.bytes.len();
        self.bytes.resize(filled + len, 0);
        &mut self.bytes[filled..]
    }

    /// The last `len` bytes were not filled.
    pub fn cut(&mut self, len: usize) {
        self.bytes.truncate(self.bytes.len().saturating_sub(len));
    }

    /// There are no more bytes.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<StreamFormat> {
        self.format.or(self.known.map(|head| head.format()))
    }

    /// The next frame, or what stands before it; `None` where it takes more bytes.
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from it")]
    pub fn next(&mut self) -> Option<NextBytes<'_>> {
        loop {
            match self.look() {
                Look::Frame(head) => {
                    if self.skipped > 0 {
                        return Some(NextBytes::Skipped(core::mem::take(&mut self.skipped)));
                    }
                    let from = self.at;
                    self.at += head.frame_len();
                    (self.before, self.known) = (Some(head), Some(head));
                    return Some(NextBytes::Frame(head, &self.bytes[from..self.at]));
                }
                Look::Changed(from, to) => return Some(NextBytes::Changed(from, to)),
                Look::Nothing => {
                    self.before = None;
                    self.at += 1;
                    self.skipped += 1;
                }
                Look::Wait if self.ended && self.at < self.bytes.len() => {
                    // A piece of a frame, or too little to tell.
                    self.before = None;
                    self.at += 1;
                    self.skipped += 1;
                }
                Look::Wait => {
                    // What was skipped is told as it goes, so that a stream that has no frames
                    // shows.
                    let told = self.skipped >= TOLD || self.ended && self.skipped > 0;
                    return told.then(|| NextBytes::Skipped(core::mem::take(&mut self.skipped)));
                }
            }
        }
    }

    /// What stands at `at`.
    fn look(&self) -> Look {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() || rest.len() < LOOKED && !self.ended {
            return Look::Wait;
        }
        if let Some(before) = self.before {
            return self.behind(&before, rest);
        }
        let formats = match self.format() {
            Some(format) => [Some(format), None],
            None => [Some(StreamFormat::Mark5b), Some(StreamFormat::Vdif)],
        };
        let mut wait = false;
        for format in formats.into_iter().flatten() {
            match self.first(format, rest) {
                Look::Nothing => {}
                Look::Wait => wait = true,
                found => return found,
            }
        }
        if wait { Look::Wait } else { Look::Nothing }
    }

    /// Behind a frame there is another one that goes with it.
    fn behind(&self, before: &FrameHead, rest: &[u8]) -> Look {
        let Ok(head) = FrameHead::read(before.format(), rest) else { return Look::Nothing };
        if goes_with(before, &head) {
            return if rest.len() >= head.frame_len() { Look::Frame(head) } else { Look::Wait };
        }
        // Of another length: the next one says whether it is a header at all.
        match FrameHead::read(before.format(), rest.get(head.frame_len()..).unwrap_or_default()) {
            Ok(next) if confirms(&head, &next) => {
                Look::Changed(before.frame_len(), head.frame_len())
            }
            _ if rest.len() < head.frame_len() + LOOKED && !self.ended => Look::Wait,
            _ => Look::Nothing,
        }
    }

    /// A header counts where the next one confirms it, or where the bytes end with its frame.
    fn first(&self, format: StreamFormat, rest: &[u8]) -> Look {
        let Ok(head) = FrameHead::read(format, rest) else { return Look::Nothing };
        if self.known.is_some_and(|known| !goes_with(&known, &head)) {
            return Look::Nothing;
        }
        match rest.get(head.frame_len()..) {
            Some([]) if self.ended => Look::Frame(head),
            Some(behind) => match FrameHead::read(format, behind) {
                Ok(next) if confirms(&head, &next) => Look::Frame(head),
                _ if behind.len() < LOOKED && !self.ended => Look::Wait,
                _ => Look::Nothing,
            },
            None if self.ended => Look::Nothing,
            None => Look::Wait,
        }
    }
}

fn goes_with(before: &FrameHead, head: &FrameHead) -> bool {
    match (before, head) {
        (FrameHead::Vdif(before), FrameHead::Vdif(header)) => before.goes_with(header),
        (FrameHead::Mark5b(_), FrameHead::Mark5b(_)) => true,
        _ => false,
    }
}

fn confirms(head: &FrameHead, next: &FrameHead) -> bool {
    match (head, next) {
        (FrameHead::Vdif(header), FrameHead::Vdif(next)) => header.confirms(next),
        (FrameHead::Mark5b(_), FrameHead::Mark5b(_)) => true,
        _ => false,
    }
}

/// The longest header, in bytes.
const LOOKED: usize = 32;
const _: () = assert!(Mark5bHeader::LEN <= LOOKED);
/// Bytes skipped before that is told.
const TOLD: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synthesis;

    fn frames(payload: usize, count: usize) -> Vec<u8> {
        let mut synthesis = Synthesis::new(payload, 3, 10).unwrap();
        let mut bytes = Vec::new();
        (0..count).for_each(|_| synthesis.frame(&mut bytes));
        bytes
    }

    /// Frames found, bytes skipped, and a change, of bytes pushed in pieces.
    fn found(bytes: &[u8], piece: usize) -> (usize, usize, Option<(usize, usize)>) {
        let (mut finder, mut count, mut skipped) = (FrameFinder::new(None), 0, 0);
        let mut pieces = bytes.chunks(piece);
        loop {
            match finder.next() {
                Some(NextBytes::Frame(head, frame)) => {
                    assert_eq!(head.frame_len(), frame.len());
                    count += 1;
                }
                Some(NextBytes::Skipped(len)) => skipped += len,
                Some(NextBytes::Changed(from, to)) => return (count, skipped, Some((from, to))),
                None => match pieces.next() {
                    Some(piece) => finder.push(piece),
                    None if finder.ended => return (count, skipped, None),
                    None => finder.end(),
                },
            }
        }
    }

    #[test]
    fn frames_are_found_wherever_the_bytes_begin() {
        let bytes = frames(800, 7);
        for from in [0, 1, 31, 400, 831] {
            let skipped = if from == 0 { 0 } else { 832 - from };
            for piece in [13, 832, 100_000] {
                assert_eq!(
                    found(&bytes[from..], piece),
                    (7 - usize::from(from > 0), skipped, None),
                    "{from}"
                );
            }
        }
    }

    #[test]
    fn what_stands_between_frames_is_skipped() {
        let mut bytes = frames(800, 6);
        bytes.splice(832 * 3..832 * 3, [7; 50]);
        bytes.extend([9; 100]);
        assert_eq!(found(&bytes, 500), (6, 150, None));
        // A frame of which a piece is missing.
        let mut bytes = frames(800, 6);
        bytes.drain(832 * 2 + 100..832 * 2 + 200);
        assert_eq!(found(&bytes, 500), (5, 732, None));
    }

    #[test]
    fn frames_of_another_length_are_told() {
        let mut bytes = frames(800, 4);
        bytes.extend(frames(1_600, 4));
        assert_eq!(found(&bytes, 300), (4, 0, Some((832, 1_632))));
    }

    #[test]
    fn the_format_is_found_by_itself() {
        let mut bytes = Vec::new();
        for number in 0..3_u32 {
            [0xABAD_DEED, number, 0x8211_9801, 0]
                .iter()
                .for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes.resize(bytes.len() + 10_000, number as u8);
        }
        assert_eq!(found(&bytes[5_000..], 4_000), (2, 5_016, None));
        assert_eq!(found(&[0; 5_000], 4_000), (0, 5_000, None));
        assert_eq!(found(&frames(800, 1), 4_000), (1, 0, None));
    }
}
