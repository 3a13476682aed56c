//! Blocks given up that the far end must not wait for: it is told until it confirms.

use crate::block::BlockId;
use crate::wire::{AbandonedNotice, NOTICE_MAX};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Abandoned(BTreeMap<BlockId, AbandonedBlock>);

#[derive(Debug)]
struct AbandonedBlock {
    /// What it counts against the far end's limit: zero where it was never begun.
    cost: u64,
    told: Option<Instant>,
}

impl Abandoned {
    pub fn add(&mut self, id: BlockId, cost: u64) {
        self.0.insert(id, AbandonedBlock { cost, told: None });
    }

    pub fn contains(&self, id: BlockId) -> bool {
        self.0.contains_key(&id)
    }

    /// The far end knows of a block. Returns its cost, if it was given up.
    pub fn remove(&mut self, id: BlockId) -> Option<u64> {
        self.0.remove(&id).map(|block| block.cost)
    }

    /// The first blocks, `most` at once.
    pub fn first(&self, most: usize) -> Vec<BlockId> {
        self.0.keys().take(most).copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A notice of the blocks that the far end was not told of for `settle`.
    pub fn notice(&mut self, now: Instant, settle: Duration) -> Option<AbandonedNotice> {
        let due = self.0.iter_mut().filter(|(_, block)| block.is_due(now, settle));
        let given_up: Vec<_> = due
            .take(NOTICE_MAX)
            .map(|(id, block)| {
                block.told = Some(now);
                (id.flow, id.seq.0, block.cost)
            })
            .collect();
        (!given_up.is_empty()).then_some(AbandonedNotice { given_up })
    }

    /// When [`Self::notice`] has something.
    pub fn notice_due(&self, settle: Duration) -> Option<Instant> {
        self.0.values().map(|block| block.due(settle)).min()
    }
}

impl AbandonedBlock {
    fn due(&self, settle: Duration) -> Instant {
        self.told.map_or(Instant::ZERO, |told| told + settle)
    }

    fn is_due(&self, now: Instant, settle: Duration) -> bool {
        self.told.is_none_or(|told| now.since(told) >= settle)
    }
}
