//! What the far end lacks although its path should have brought it long since: it goes on another
//! path.
//!
//! A path tells of a loss after its round trip; a report on a faster path tells sooner. And where a
//! path died in the direction of the data alone, its acknowledgements go on for as long as it had
//! things under way, so that it does not look silent: the reports are the first to show it.

use crate::inflight::Slice;
use crate::path::PathId;
use std::collections::VecDeque;

/// Slices that wait for the path that brings them soonest.
#[derive(Debug, Default)]
pub struct Elsewhere(VecDeque<(PathId, Slice)>);

/// Slices that wait: those of the blocks in one report. Beyond, a slice goes on any path.
const ELSEWHERE_MAX: usize = 8_192;
/// Bytes that the slices take at most.
pub const ELSEWHERE_BYTES_MAX: u64 = (ELSEWHERE_MAX * size_of::<(PathId, Slice)>()) as u64;

impl Elsewhere {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.0.len() < ELSEWHERE_MAX
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        (self.0.len() * size_of::<(PathId, Slice)>()) as u64
    }

    /// A slice waits for `path`.
    pub fn push(&mut self, path: PathId, slice: Slice) {
        self.0.push_back((path, slice));
    }

    /// What a datagram of `path` left of a slice goes next.
    pub fn push_rest(&mut self, path: PathId, rest: Slice) {
        self.0.push_front((path, rest));
    }

    /// The first slice for `path`, or for one of which `is_gone` says that it takes nothing now.
    pub fn take(&mut self, path: PathId, is_gone: impl Fn(PathId) -> bool) -> Option<Slice> {
        let index = self.0.iter().position(|(wanted, _)| *wanted == path || is_gone(*wanted))?;
        self.0.remove(index).map(|(_, slice)| slice)
    }
}
