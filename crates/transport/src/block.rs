//! Blocks, and when what happened to them.

use bytes::Bytes;
use skyhaul_units::{FlowId, Instant, Seq, Utc};

/// The smallest unit an application hands over; useless in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The series it belongs to.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
    /// What it carries: 1 byte to [`MAX_BLOCK`].
    pub bytes: Bytes,
}

/// A block that arrived whole, in the order of its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The block.
    pub block: Block,
    /// When what happened.
    pub timing: BlockTiming,
}

/// When a received block was where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTiming {
    /// Its first symbol left the far end, by the far end's clock.
    pub sent: Utc,
    /// The last symbol that came as first sent, not as a repetition.
    pub last_original: Instant,
    /// It was whole.
    pub complete: Instant,
    /// Every block before it was whole too, and it was given out.
    pub delivered: Instant,
    /// Whether a repeated symbol was needed.
    pub repaired: bool,
}

/// The largest block in bytes: offsets have 24 bits on the wire.
pub const MAX_BLOCK: usize = (1 << 24) - 1;

/// What a block of `len` bytes costs against flow control, in bytes: its length and the book-keeping, so that many
/// small blocks cannot take more memory than the window says.
pub const fn cost(len: usize) -> u64 {
    len as u64 + 256
}
