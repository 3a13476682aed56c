//! Duplicates of symbols for further paths: of blocks whose sender asked for redundancy.

use crate::inflight::Slice;
use crate::path::PathId;
use std::collections::{BTreeMap, VecDeque};

/// Slices that were sent on one path, and wait for another.
#[derive(Debug, Default)]
pub struct Duplicates(BTreeMap<PathId, VecDeque<Slice>>);

/// Slices that wait for one path; more are not duplicated.
const WAITING_MAX: usize = 8_192;

impl Duplicates {
    /// `slice` is to be sent on `path` too.
    pub fn add(&mut self, path: PathId, slice: Slice) {
        let slices = self.0.entry(path).or_default();
        if slices.len() < WAITING_MAX {
            slices.push_back(slice);
        }
    }

    pub fn pop(&mut self, path: PathId) -> Option<Slice> {
        self.0.get_mut(&path).and_then(VecDeque::pop_front)
    }

    /// `path` is no longer used.
    pub fn drop_path(&mut self, path: PathId) {
        self.0.remove(&path);
    }
}
