//! One service's share of a session's send buffer.
//!
//! Services hand over all that a session takes. Without shares, one that has much would fill the
//! buffer, and the others would wait for its reports. What exceeds a share waits in the service.

use skyhaul_transport::BlockId;
use std::collections::BTreeMap;

use skyhaul_units::ByteCount;

/// A part of a session's send buffer.
#[derive(Debug)]
pub struct Share {
    /// None: all of the buffer, which bounds it then.
    most: Option<u64>,
    held: u64,
    /// Blocks without an outcome so far, with their cost: bounded by `most`.
    open: BTreeMap<BlockId, u64>,
}

impl Share {
    /// The whole buffer.
    pub const fn whole() -> Self {
        Self { most: None, held: 0, open: BTreeMap::new() }
    }

    /// So much of the buffer.
    pub const fn of(most: ByteCount) -> Self {
        Self { most: Some(most.as_u64()), held: 0, open: BTreeMap::new() }
    }

    /// The cost of blocks that may be handed over now.
    pub fn room(&self) -> u64 {
        self.most.map_or(u64::MAX, |most| most.saturating_sub(self.held))
    }

    /// The cost of blocks that the session holds; not counted if the share is the whole buffer.
    pub const fn held(&self) -> u64 {
        self.held
    }

    /// The session took a block.
    pub fn took(&mut self, block: BlockId, cost: u64) {
        if self.most.is_some() {
            self.open.insert(block, cost);
            self.held += cost;
        }
    }

    /// The outcome of a block is known.
    pub fn settled(&mut self, block: BlockId) {
        if let Some(cost) = self.open.remove(&block) {
            self.held -= cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{FlowId, Seq};

    fn block(seq: u64) -> BlockId {
        BlockId { flow: FlowId(7), seq: Seq(seq) }
    }

    #[test]
    fn a_share_is_full_until_blocks_have_an_outcome() {
        let mut share = Share::of(ByteCount::new(100));
        share.took(block(0), 60);
        share.took(block(1), 40);
        assert_eq!(share.room(), 0);
        share.settled(block(0));
        assert_eq!(share.room(), 60);
        // A block that is settled twice, or is not of the share, changes nothing.
        share.settled(block(0));
        share.settled(block(9));
        assert_eq!(share.room(), 60);
        // A block may be larger than what is left: then no further one is taken.
        share.took(block(2), 500);
        assert_eq!(share.room(), 0);
        share.settled(block(2));
        share.settled(block(1));
        assert_eq!(share.room(), 100);
    }

    #[test]
    fn a_service_alone_on_a_session_is_bounded_by_the_session() {
        let mut share = Share::whole();
        share.took(block(0), 1 << 40);
        assert_eq!((share.room(), share.open.len()), (u64::MAX, 0));
    }
}
