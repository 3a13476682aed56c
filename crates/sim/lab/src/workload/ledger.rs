//! What was handed over and what arrived when.

use super::arrivals::Arrivals;
use super::due::Due;
use skyhaul_transport::BlockId;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::BTreeMap;

/// Everything that one end handed over. Bounded by the scenario.
#[derive(Debug, Default)]
pub struct HandedOver {
    flows: BTreeMap<FlowId, FlowRecords>,
}

#[derive(Debug, Default)]
struct FlowRecords {
    /// By place.
    blocks: Vec<BlockRecord>,
    refused: u64,
}

/// One block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// When it was handed over.
    pub at: Instant,
    /// Its size.
    pub size: ByteCount,
    /// By when it had to arrive.
    pub deadline: Option<Instant>,
    /// 0 is the most important.
    pub priority: u8,
    /// The block without which it is worth nothing.
    pub needs: Option<BlockId>,
    /// That one was not taken.
    pub in_vain: bool,
    /// When the far end's application got it.
    pub arrived: Option<Instant>,
}

impl BlockRecord {
    /// Whether it arrived in time.
    pub fn is_on_time(&self) -> bool {
        !self.in_vain
            && self.arrived.is_some_and(|at| self.deadline.is_none_or(|deadline| at <= deadline))
    }

    /// From hand-over to arrival.
    pub fn latency(&self) -> Option<Duration> {
        self.arrived.map(|at| at.since(self.at))
    }
}

impl HandedOver {
    pub(super) fn offered(&mut self, id: BlockId, at: Instant, due: &Due, priority: u8) {
        let deadline = due.deadline.map(|span| at + span);
        let record = BlockRecord {
            at,
            size: due.size,
            deadline,
            priority,
            needs: due.needs,
            in_vain: false,
            arrived: None,
        };
        self.flows.entry(id.flow).or_default().blocks.push(record);
    }

    pub(super) fn offered_in_vain(&mut self, id: BlockId, at: Instant, due: &Due, priority: u8) {
        self.offered(id, at, due, priority);
        if let Some(record) = self.flows.get_mut(&id.flow).and_then(|flow| flow.blocks.last_mut()) {
            record.in_vain = true;
        }
    }

    pub(super) fn refused(&mut self, flow: FlowId) {
        self.flows.entry(flow).or_default().refused += 1;
    }

    /// A block arrived at the far end's application.
    pub fn arrived(&mut self, id: BlockId, at: Instant) {
        let place = usize::try_from(id.seq.0).unwrap_or(usize::MAX);
        if let Some(record) =
            self.flows.get_mut(&id.flow).and_then(|flow| flow.blocks.get_mut(place))
        {
            record.arrived.get_or_insert(at);
        }
    }

    /// Takes in all that arrived.
    pub fn settle(&mut self, arrivals: &Arrivals) {
        for (id, at) in arrivals.blocks() {
            self.arrived(*id, *at);
        }
    }

    /// One block.
    pub fn record(&self, id: BlockId) -> Option<&BlockRecord> {
        self.flows.get(&id.flow)?.blocks.get(usize::try_from(id.seq.0).ok()?)
    }

    /// Whether a block arrived in time, and so did the one that it needs.
    pub fn is_of_use(&self, record: &BlockRecord) -> bool {
        let needed = record.needs.and_then(|needed| self.record(needed));
        record.is_on_time() && needed.is_none_or(BlockRecord::is_on_time)
    }

    /// The blocks of one flow.
    pub fn of(&self, flow: FlowId) -> &[BlockRecord] {
        self.flows.get(&flow).map_or(&[], |flow| &flow.blocks)
    }

    /// All blocks.
    pub fn records(&self) -> impl Iterator<Item = (FlowId, &BlockRecord)> {
        self.flows.iter().flat_map(|(id, flow)| flow.blocks.iter().map(|record| (*id, record)))
    }

    /// Blocks that the session did not take.
    pub fn refused_count(&self) -> u64 {
        self.flows.values().map(|flow| flow.refused).sum()
    }

    /// Bytes that arrived in an interval.
    pub fn bytes_within(&self, flow: FlowId, from: Instant, to: Instant) -> ByteCount {
        let within = |record: &&BlockRecord| record.arrived.is_some_and(|at| from <= at && at < to);
        ByteCount::new(self.of(flow).iter().filter(within).map(|record| record.size.as_u64()).sum())
    }

    /// Latencies of the blocks that arrived, the shortest first.
    pub fn latencies(&self) -> Vec<Duration> {
        let mut found: Vec<Duration> =
            self.records().filter_map(|(_, record)| record.latency()).collect();
        found.sort_unstable();
        found
    }
}
