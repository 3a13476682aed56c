//! The blocks of one flow that the sender holds.

use super::outgoing::{BlockStage, OutgoingBlock};
use super::retransmit_times::RetransmitTimes;
use skyhaul_units::{Duration, Instant, Seq};
use std::collections::{BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub struct OutgoingFlow {
    /// Sequence number of the first block held.
    pub first: u64,
    pub blocks: VecDeque<OutgoingBlock>,
    /// Cost of all blocks ever taken.
    pub taken: u64,
    /// No block before this one is at [`BlockStage::Waiting`]. Brought up to date by
    /// [`Self::skip_begun`] only: between its calls it may lag.
    pub unbegun: u64,
    /// Blocks that depend on one of another flow.
    pub foreign: BTreeSet<u64>,
    retransmitted: RetransmitTimes,
}

impl OutgoingFlow {
    pub fn starting_at(seq: Seq) -> Self {
        Self { first: seq.0, unbegun: seq.0, ..Self::default() }
    }

    /// Sequence number of the next block.
    pub fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }

    pub fn block(&self, seq: u64) -> Option<&OutgoingBlock> {
        self.blocks.get(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    pub fn block_mut(&mut self, seq: u64) -> Option<&mut OutgoingBlock> {
        self.blocks.get_mut(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// Moves [`Self::unbegun`] to the first block of which nothing was sent.
    pub fn skip_begun(&mut self) {
        while self.block(self.unbegun).is_some_and(|block| block.stage != BlockStage::Waiting) {
            self.unbegun += 1;
        }
    }

    /// A block is retransmitted. Returns for how long nothing before it was.
    pub fn pause_before(&mut self, now: Instant, seq: Seq) -> Duration {
        let before = self.retransmitted.before(seq);
        self.retransmitted.add(seq, now);
        before.map_or(Duration::MAX, |before| now.since(before))
    }

    /// Removes the resolved blocks before the first open one, or before the first that `keep`
    /// holds. Returns how many.
    pub fn drop_resolved(&mut self, keep: impl Fn(u64) -> bool) -> u64 {
        let before = self.first;
        while self.blocks.front().is_some_and(|block| !block.is_open()) && !keep(self.first) {
            self.blocks.pop_front();
            self.first += 1;
            self.foreign.remove(&(self.first - 1));
        }
        self.unbegun = self.unbegun.max(self.first);
        self.first - before
    }
}
