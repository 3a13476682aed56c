//! Blocks that are useless without another one, and the failures that reach those which come later.

use crate::block::{BlockId, Outcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub struct Dependents {
    /// By the open block on which they depend.
    waiting: BTreeMap<BlockId, BTreeSet<BlockId>>,
    /// The blocks given up last, for dependents that are handed over later.
    failed: VecDeque<(BlockId, Outcome)>,
}

/// Blocks given up that are remembered. A dependent that is handed over after so many more failures
/// counts as useful alone.
const FAILED_MAX: usize = 4_096;

impl Dependents {
    pub fn add(&mut self, needed: BlockId, dependent: BlockId) {
        self.waiting.entry(needed).or_default().insert(dependent);
    }

    pub fn of(&self, needed: BlockId) -> impl Iterator<Item = BlockId> {
        self.waiting.get(&needed).into_iter().flatten().copied()
    }

    /// `dependent` is resolved, and waits no longer.
    pub fn remove(&mut self, needed: BlockId, dependent: BlockId) {
        if let Some(dependents) = self.waiting.get_mut(&needed) {
            dependents.remove(&dependent);
        }
    }

    /// `needed` is resolved. Returns the blocks that depended on it.
    pub fn take(&mut self, needed: BlockId) -> BTreeSet<BlockId> {
        self.waiting.remove(&needed).unwrap_or_default()
    }

    /// Remembers that a block was given up.
    pub fn failed(&mut self, id: BlockId, outcome: Outcome) {
        self.failed.push_back((id, outcome));
        if self.failed.len() > FAILED_MAX {
            self.failed.pop_front();
        }
    }

    /// Why a block was given up, if it was one of the last.
    pub fn failure_of(&self, id: BlockId) -> Option<Outcome> {
        self.failed.iter().find(|(failed, _)| *failed == id).map(|(_, outcome)| *outcome)
    }

    /// Blocks that wait for another one.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.values().map(BTreeSet::len).sum()
    }
}
