//! Predicts the header of each next frame, so that a lost frame can be replaced.

use crate::head::FrameHead;
use crate::sequence::{Exception, FrameSequence};
use std::collections::BTreeMap;

/// The header of each next frame.
#[derive(Debug)]
pub(super) struct ExpectedFrames {
    sequence: FrameSequence,
    /// What was said of frames that have not been given out: at most [`EXCEPTIONS_MAX`].
    exceptions: BTreeMap<u64, Exception>,
}

/// Frames of which it is kept what was said, at most.
const EXCEPTIONS_MAX: usize = 1 << 16;

impl ExpectedFrames {
    pub const fn new(frames_per_second: Option<u32>) -> Self {
        Self { sequence: FrameSequence::new(frames_per_second), exceptions: BTreeMap::new() }
    }

    /// Keeps what a group that begins with the frame `first` says of frames before it; frames
    /// before `next` have been given out.
    pub fn learn(&mut self, next: u64, first: u64, recap: &[(u32, Exception)]) {
        for (back, exception) in recap {
            let number = first.checked_sub(u64::from(*back)).filter(|number| *number >= next);
            if let Some(number) = number
                && self.exceptions.len() < EXCEPTIONS_MAX
            {
                self.exceptions.insert(number, *exception);
            }
        }
    }

    /// Whether the sequence leads to `head` as frame `number`: where frames before it were made
    /// without knowing theirs, it may not.
    pub fn leads_to(&self, number: u64, head: &FrameHead) -> bool {
        let told = self.exceptions.get(&number).and_then(|exception| self.sequence.of(*exception));
        told.or(self.sequence.expected()).is_some_and(|expected| expected.is_same(head))
    }

    /// The header of the lost frame `number`, which is the next one; `None` before the first.
    pub fn head_of(&mut self, number: u64) -> Option<FrameHead> {
        let told = self.exceptions.remove(&number);
        let told = told.and_then(|exception| self.sequence.of(exception));
        told.or_else(|| self.sequence.expected())
    }

    /// The next frame was this one.
    pub fn take(&mut self, head: &FrameHead) {
        self.sequence.take(head);
    }

    /// Frames before `next` have been given out.
    pub fn forget_before(&mut self, next: u64) {
        self.exceptions = self.exceptions.split_off(&next);
    }
}
