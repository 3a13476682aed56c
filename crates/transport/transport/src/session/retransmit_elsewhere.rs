//! Retransmission on another path.
//!
//! A path reports a loss after its own round trip. A report of the far end on a faster path shows
//! it sooner: it lists symbols that should have arrived. And where a path fails in the direction of
//! the data alone, acknowledgements of earlier datagrams keep coming, so that the path does not
//! look silent: then the reports are the first to show the failure.

use crate::inflight::Slice;
use crate::path::PathId;
use std::collections::VecDeque;

/// Slices queued for the path that brings them soonest.
#[derive(Debug, Default)]
pub struct Elsewhere(VecDeque<(PathId, Slice)>);

/// Slices queued at most: as many as one report can lack. Further ones go on any path.
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

    /// Queues a slice for `path`.
    pub fn push(&mut self, path: PathId, slice: Slice) {
        self.0.push_back((path, slice));
    }

    /// Queues the rest of a slice that did not fit into one datagram; it goes out next.
    pub fn push_rest(&mut self, path: PathId, rest: Slice) {
        self.0.push_front((path, rest));
    }

    /// The first slice for `path`, or for a path that takes nothing now, as `is_gone` tells.
    pub fn take(&mut self, path: PathId, is_gone: impl Fn(PathId) -> bool) -> Option<Slice> {
        let index = self.0.iter().position(|(wanted, _)| *wanted == path || is_gone(*wanted))?;
        self.0.remove(index).map(|(_, slice)| slice)
    }
}
