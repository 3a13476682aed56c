//! Blocks on their way to the session.

use super::StreamId;
use crate::carriage::{ClassMap, Way};
use crate::wire::{Message, WINDOWS_MAX, Window};
use bytes::Bytes;
use skyhaul_transport::{Block, Mode};
use skyhaul_units::FlowId;
use std::collections::{BTreeMap, VecDeque};

/// In this order. New windows go first, so that a stream never waits for the blocks of another.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    blocks: VecDeque<Block>,
    /// Limits that the far end does not know yet.
    raised: BTreeMap<StreamId, u64>,
}

impl Outgoing {
    pub fn say(&mut self, id: StreamId, way: Way, message: &Message) {
        self.block(id.flow, way, message.encode(id.number));
    }

    pub fn block(&mut self, flow: FlowId, way: Way, bytes: Bytes) {
        self.blocks.push_back(way.block(flow, bytes));
    }

    pub fn datagram(&mut self, flow: FlowId, way: Way, bytes: Bytes) {
        self.blocks.push_back(way.datagram(flow, bytes));
    }

    pub fn raise(&mut self, id: StreamId, limit: u64) {
        self.raised.insert(id, limit);
    }

    /// The stream is gone: its limit interests nobody.
    pub fn forget(&mut self, id: StreamId) {
        self.raised.remove(&id);
    }

    /// The next block; windows go the `urgent` way.
    pub fn poll(&mut self, urgent: Way) -> Option<Block> {
        if self.raised.is_empty() {
            return self.blocks.pop_front();
        }
        let mut windows = Vec::new();
        while windows.len() < WINDOWS_MAX
            && let Some((StreamId { flow, number }, limit)) = self.raised.pop_first()
        {
            windows.push(Window { flow, stream: number, limit });
        }
        Some(urgent.block(FlowId(0), Message::Windows(windows).encode(0)))
    }

    /// The session had no room for a block just polled.
    pub fn put_back(&mut self, block: Block) {
        self.blocks.push_front(block);
    }

    pub fn change_classes(&mut self, classes: &ClassMap) {
        self.blocks.iter_mut().for_each(|block| block.class = classes.of(block.class));
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.raised.is_empty()
    }

    /// Datagrams that wait for the session.
    pub fn datagrams(&self) -> usize {
        self.blocks.iter().filter(|block| block.mode == Mode::Expendable).count()
    }
}
