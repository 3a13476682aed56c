//! Blocks on their way to the session.

use crate::carriage::{ClassMap, Way};
use bytes::Bytes;
use skyhaul_transport::{Block, Mode};
use skyhaul_units::FlowId;
use std::collections::VecDeque;

/// In this order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    blocks: VecDeque<Block>,
}

impl Outgoing {
    pub fn block(&mut self, flow: FlowId, way: Way, bytes: Bytes) {
        self.blocks.push_back(way.block(flow, bytes));
    }

    pub fn datagram(&mut self, flow: FlowId, way: Way, bytes: Bytes) {
        self.blocks.push_back(way.datagram(flow, bytes));
    }

    /// The next block.
    pub fn poll(&mut self) -> Option<Block> {
        self.blocks.pop_front()
    }

    /// The session had no room for a block just polled.
    pub fn put_back(&mut self, block: Block) {
        self.blocks.push_front(block);
    }

    pub fn change_classes(&mut self, classes: &ClassMap) {
        self.blocks.iter_mut().for_each(|block| block.class = classes.of(block.class));
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Datagrams that wait for the session.
    pub fn datagrams(&self) -> usize {
        self.blocks.iter().filter(|block| block.mode == Mode::Expendable).count()
    }
}
