//! All blocks that the sender holds, by flow, with the paths to which flows are pinned.

use super::flow::OutgoingFlow;
use super::outgoing::{Now, OutgoingBlock, Outsymbol, Sending, block_of};
use crate::block::{Block, BlockId, Mode, cost};
use crate::inflight::Slice;
use crate::path::PathId;
use crate::session::SendError;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct OutgoingFlows {
    flows: BTreeMap<FlowId, OutgoingFlow>,
    /// Flows that use one path only.
    pins: BTreeMap<FlowId, PathId>,
    /// Blocks taken so far.
    taken: u64,
    /// Cost of the open blocks, and [`RESOLVED_COST`] of each resolved one that is still held.
    held: u64,
}

/// Cost of a resolved block until it is dropped. It counts, so that the send buffer also bounds the
/// flows whose first block stays open, and those of which the far end sends no report.
const RESOLVED_COST: u64 = cost(0);
/// Flows with a state at one time.
const FLOWS_MAX: usize = 1 << 16;

impl OutgoingFlows {
    /// Begins `flow` at `seq`, unless it has begun.
    pub fn start(&mut self, flow: FlowId, seq: Seq) {
        self.flows.entry(flow).or_insert_with(|| OutgoingFlow::starting_at(seq));
    }

    /// Sequence number of the next block of `flow`.
    pub fn next_seq(&self, flow: FlowId) -> Seq {
        Seq(self.flows.get(&flow).map_or(0, OutgoingFlow::end))
    }

    /// Sequence number of the first block of `flow` that is held, or will be.
    pub fn first_held(&self, flow: FlowId) -> u64 {
        self.flows.get(&flow).map_or(0, |flow| flow.first)
    }

    /// Flows with a state.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Cost of all blocks held.
    pub const fn held(&self) -> u64 {
        self.held
    }

    /// Whether `block` can be taken, where blocks have at most `max` bytes and there is room for
    /// `room`.
    pub fn admits(&self, block: &Block, max: usize, room: ByteCount) -> Result<(), SendError> {
        let (len, flow) = (block.bytes.len(), block.flow);
        if len == 0 || len > max {
            return Err(SendError::Length { len, max });
        }
        if block.mode == Mode::Expendable && block.deadline.is_none() {
            return Err(SendError::NoDeadline { flow });
        }
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&flow) {
            return Err(SendError::Flows { flow });
        }
        // An empty buffer takes any block, so that no block can be too large for ever.
        if self.held > 0 && room.as_u64() < cost(len) {
            return Err(SendError::Full { room });
        }
        Ok(())
    }

    /// Adds a block to its flow, which has begun.
    pub fn push(&mut self, now: Instant, block: Block, after: Option<u64>) -> &mut OutgoingBlock {
        self.taken += 1;
        self.held += cost(block.bytes.len());
        let flow = self.flows.entry(block.flow).or_default();
        if block.depends_on.is_some_and(|needed| needed.flow != block.flow) {
            flow.foreign.insert(flow.end());
        }
        let mut outgoing = OutgoingBlock::new(now, block, flow.taken, self.taken);
        outgoing.after = after;
        flow.taken += outgoing.cost();
        let index = flow.blocks.len();
        flow.blocks.push_back(outgoing);
        &mut flow.blocks[index]
    }

    pub fn get(&self, flow: FlowId) -> Option<&OutgoingFlow> {
        self.flows.get(&flow)
    }

    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut OutgoingFlow> {
        self.flows.get_mut(&flow)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut OutgoingFlow)> {
        self.flows.iter_mut().map(|(id, flow)| (*id, flow))
    }

    pub fn block(&self, id: BlockId) -> Option<&OutgoingBlock> {
        self.flows.get(&id.flow)?.block(id.seq.0)
    }

    pub fn block_mut(&mut self, id: BlockId) -> Option<&mut OutgoingBlock> {
        self.flows.get_mut(&id.flow)?.block_mut(id.seq.0)
    }

    /// The block, if its outcome is not known yet.
    pub fn open_block_mut(&mut self, id: BlockId) -> Option<&mut OutgoingBlock> {
        self.block_mut(id).filter(|block| block.is_open())
    }

    /// Frees the bytes of a block whose outcome is known; its entry stays until the blocks before
    /// it are resolved.
    pub fn resolve(&mut self, id: BlockId) {
        if let Some(block) = self.open_block_mut(id) {
            let cost = block.cost();
            block.resolve();
            self.held -= cost - RESOLVED_COST;
        }
    }

    /// Drops the resolved blocks before the first open one of `flow`, or before the first that
    /// `keep` holds.
    pub fn drop_resolved(&mut self, flow: FlowId, keep: impl Fn(BlockId) -> bool) {
        let Some(blocks) = self.flows.get_mut(&flow) else { return };
        let dropped = blocks.drop_resolved(|seq| keep(BlockId { flow, seq: Seq(seq) }));
        self.held -= dropped * RESOLVED_COST;
    }

    /// Lets a flow use one path only, or all again.
    pub fn pin(&mut self, flow: FlowId, path: Option<PathId>) {
        match path {
            Some(path) => self.pins.insert(flow, path),
            None => self.pins.remove(&flow),
        };
    }

    /// The only path that a flow uses.
    pub fn pinned_to(&self, flow: FlowId) -> Option<PathId> {
        self.pins.get(&flow).copied()
    }

    /// Whether a flow uses one path only.
    pub fn is_pinned(&self, flow: FlowId) -> bool {
        self.pins.contains_key(&flow)
    }

    /// A slice is retransmitted. Returns for how long nothing before it in its flow was, whose
    /// arrival would let something be delivered. None where no delivery waits for it, or its flow
    /// is pinned: copies use any path.
    pub fn pause_before(&mut self, now: Instant, slice: &Slice) -> Option<Duration> {
        if self.is_pinned(slice.flow) {
            return None;
        }
        let flow = self.flows.get_mut(&slice.flow)?;
        flow.block(slice.seq.0).filter(|block| block.is_open() && !block.is_expendable())?;
        Some(flow.pause_before(now, slice.seq))
    }

    /// One transmission of the slice was lost. Returns the part of it that must be retransmitted;
    /// `soonest` is when it could arrive.
    pub fn lost(&mut self, slice: Slice, soonest: Instant) -> Option<Slice> {
        let (start, end) =
            self.block_mut(block_of(&slice))?.lost(slice.start, slice.end, soonest)?;
        Some(Slice { start, end, ..slice })
    }

    /// Whether the slice was retransmitted before, and is still needed.
    pub fn was_retransmitted(&self, slice: &Slice) -> bool {
        self.block(block_of(slice)).is_some_and(|block| {
            block.progress.attempts.so_far(slice.start) > 1 && block.needs(slice.start, slice.end)
        })
    }

    /// The part of a slice that fits into one datagram of `payload` bytes. None where the slice is
    /// no longer needed.
    pub fn cut(
        &mut self,
        slice: Slice,
        payload: usize,
        sending: Sending,
        at: Now,
    ) -> Option<Outsymbol> {
        let block =
            self.block_mut(block_of(&slice)).filter(|block| block.needs(slice.start, slice.end))?;
        Some(Outsymbol { redundant: false, ..block.cut(slice, payload, sending, at) })
    }

    /// Cuts a slice that [`Self::lost`] or [`Self::was_retransmitted`] named for a path other than
    /// the one that lost it.
    pub fn cut_rerouted(&mut self, slice: Slice, payload: usize, at: Now) -> Option<Outsymbol> {
        let symbol = self.cut(slice, payload, Sending::Retransmission, at)?;
        let block = self.block(block_of(&slice));
        let sends = block.map(|block| block.progress.attempts.so_far(slice.start));
        Some(Outsymbol { rerouted: true, sends, ..symbol })
    }
}
