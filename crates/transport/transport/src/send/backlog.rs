//! The blocks held, and the queues of those that have something to send. Whatever changes a block's
//! pending bytes goes through here, so that the queues' byte counts stay equal to their sums.

use super::flows::OutgoingFlows;
use super::outgoing::{Now, OutgoingBlock, Outsymbol, block_of};
use super::queues::{QueueKey, Queues};
use crate::block::{Block, BlockId};
use crate::classes::ClassId;
use crate::inflight::Slice;
use crate::ranges::RangeSet;
use skyhaul_units::{Instant, Seq};

#[derive(Debug, Default)]
pub struct SendBacklog {
    pub flows: OutgoingFlows,
    pub queues: Queues,
}

/// Blocks of one flow and priority behind which others wait in queues of their own: each queue is
/// ranked by itself, so this bounds what one flow adds to the ranking. The dependents of further
/// blocks wait in the queue of their flow.
const QUEUES_MAX: usize = 32;

impl SendBacklog {
    /// Adds a block to its flow and queue.
    pub fn push(&mut self, now: Instant, block: Block) -> (BlockId, &mut OutgoingBlock) {
        self.flows.start(block.flow, Seq(0));
        let id = BlockId { flow: block.flow, seq: self.flows.next_seq(block.flow) };
        let after = self.needed_first(&block);
        let outgoing = self.flows.push(now, block, after);
        self.queues.add(outgoing.queue_key(), id.seq.0, outgoing.pending());
        (id, outgoing)
    }

    /// The block of its flow behind which a new block waits, in a queue of its own: once that one
    /// is sent or given up, all blocks of the queue are useful or useless together, whatever else
    /// the flow has.
    fn needed_first(&self, new: &Block) -> Option<u64> {
        let needed =
            new.depends_on.filter(|needed| needed.flow == new.flow && !new.useful_alone)?;
        let after = match self.flows.block(needed) {
            // A reliable block is never given up, and goes in the flow's order.
            Some(needed) if !needed.is_expendable() => return None,
            // Dependents of dependents share the queue of the first.
            Some(block) => block.after.unwrap_or(needed.seq.0),
            None => needed.seq.0,
        };
        let Block { class, priority, flow, .. } = *new;
        let key = QueueKey { class, priority, flow, after: Some(after) };
        self.queues.has_or_fits(key, QUEUES_MAX).then_some(after)
    }

    /// The next symbol of a block, of at most `payload` bytes.
    pub fn next_symbol(&mut self, id: BlockId, payload: usize, at: Now) -> Option<Outsymbol> {
        self.change(id, |block| block.next(id, payload, at)).flatten()
    }

    /// A path acknowledged the slice, or the far end recovered it.
    pub fn arrived(&mut self, now: Instant, slice: Slice) {
        self.change(block_of(&slice), |block| {
            block.progress.acknowledge(now, slice.start, slice.end);
        });
    }

    /// One transmission of the slice was lost. Queues the part of it that must be retransmitted and
    /// returns whether there is one; `soonest` is when it could arrive.
    pub fn retransmit(&mut self, slice: Slice, soonest: Instant) -> bool {
        let lost = self.flows.lost(slice, soonest);
        lost.is_some_and(|lost| {
            self.retransmit_anyway(lost);
            true
        })
    }

    /// Queues the slice for retransmission, even if it is in flight.
    pub fn retransmit_anyway(&mut self, slice: Slice) {
        self.change(block_of(&slice), |block| {
            block.progress.retransmit.insert(slice.start, slice.end);
        });
    }

    /// Nothing of the block is retransmitted: it would be late. FEC repair may still recover it.
    pub fn drop_retransmits(&mut self, id: BlockId) {
        self.change(id, |block| block.progress.retransmit = RangeSet::default());
    }

    /// The outcome of a block is known: nothing more of it is sent.
    pub fn resolve(&mut self, id: BlockId) {
        let Some(block) = self.flows.open_block_mut(id) else { return };
        let (key, pending) = (block.queue_key(), block.pending());
        self.queues.update(key, id.seq.0, pending, 0);
        self.flows.resolve(id);
    }

    /// A block on which this one depends was sent whole: the rank of its queue changes.
    pub fn may_follow_now(&mut self, id: BlockId) {
        if let Some(block) = self.flows.block(id) {
            self.queues.changed(block.queue_key());
        }
    }

    /// Puts each block into the class that `class` returns for its present one.
    pub fn reclass(&mut self, class: impl Fn(ClassId) -> ClassId) {
        self.queues = Queues::default();
        for (_, flow) in self.flows.iter_mut() {
            for (seq, block) in (flow.first..).zip(&mut flow.blocks) {
                block.block.class = class(block.block.class);
                self.queues.update(block.queue_key(), seq, 0, block.pending());
            }
        }
    }

    /// Bytes of a class and priority that were never sent, or are to be retransmitted.
    pub fn waiting(&self, class: ClassId, priority: u8) -> u64 {
        self.queues.bytes_of(class, priority)
    }

    /// Whether a class has blocks with something to send.
    pub fn has_class(&self, class: ClassId) -> bool {
        self.queues.of_class(class).next().is_some()
    }

    /// Whether an expendable block waits at the head of a queue.
    pub fn has_perishable(&self) -> bool {
        self.queues
            .heads()
            .any(|(_, id)| self.flows.block(id).is_some_and(OutgoingBlock::is_expendable))
    }

    /// Applies a change to an open block, and to its queue what that changes of its pending bytes.
    fn change<T>(
        &mut self,
        id: BlockId,
        change: impl FnOnce(&mut OutgoingBlock) -> T,
    ) -> Option<T> {
        let block = self.flows.open_block_mut(id)?;
        let (key, before) = (block.queue_key(), block.pending());
        let result = change(block);
        let after = block.pending();
        self.queues.update(key, id.seq.0, before, after);
        Some(result)
    }
}
