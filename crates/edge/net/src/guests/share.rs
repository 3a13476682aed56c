//! What one service may have in a session's send buffer.
//!
//! Services hand over all that a session takes. One that has much would fill the buffer, and the
//! others would wait for its reports: so each has a share, and what is beyond it waits in the
//! service itself.

use skyhaul_transport::BlockId;
use std::collections::BTreeMap;

use skyhaul_units::ByteCount;

/// A part of a session's send buffer.
#[derive(Debug)]
pub struct Share {
    /// None: all of the buffer, which bounds it then.
    most: Option<u64>,
    held: u64,
    /// Blocks whose fate is open, with their cost: bounded by `most`.
    open: BTreeMap<BlockId, u64>,
}

impl Share {
    /// All of the buffer.
    pub const fn whole() -> Self {
        Self { most: None, held: 0, open: BTreeMap::new() }
    }

    /// So much of it.
    pub const fn of(most: ByteCount) -> Self {
        Self { most: Some(most.as_u64()), held: 0, open: BTreeMap::new() }
    }

    /// What more may be handed over.
    pub fn room(&self) -> u64 {
        self.most.map_or(u64::MAX, |most| most.saturating_sub(self.held))
    }

    /// What the session holds of it; nothing is counted where all of the buffer is given.
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

    /// The session has told what became of a block.
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
    fn a_share_is_full_until_blocks_have_met_their_fate() {
        let mut share = Share::of(ByteCount::new(100));
        share.took(block(0), 60);
        share.took(block(1), 40);
        assert_eq!(share.room(), 0);
        share.settled(block(0));
        assert_eq!(share.room(), 60);
        // Told twice, or of what is none of it: nothing changes.
        share.settled(block(0));
        share.settled(block(9));
        assert_eq!(share.room(), 60);
        // A block may be larger than what was left: nothing more is taken then.
        share.took(block(2), 500);
        assert_eq!(share.room(), 0);
        share.settled(block(2));
        share.settled(block(1));
        assert_eq!(share.room(), 100);
    }

    #[test]
    fn who_has_the_session_alone_is_bounded_by_the_session() {
        let mut share = Share::whole();
        share.took(block(0), 1 << 40);
        assert_eq!((share.room(), share.open.len()), (u64::MAX, 0));
    }
}
