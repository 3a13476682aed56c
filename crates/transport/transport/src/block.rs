//! Blocks, and when what happened to them.

use crate::classes::ClassId;
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId, Instant, Seq, Utc};

/// The smallest unit an application hands over; useless in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The series it belongs to. Its place there is the next one.
    pub flow: FlowId,
    /// The node of the class tree that it is sent under.
    pub class: ClassId,
    /// 0 is the most important.
    pub priority: u8,
    /// How long from now it is worth anything at the far end; `None` is for ever.
    pub deadline: Option<Duration>,
    /// A block without which it is worth nothing, handed over before it.
    pub depends_on: Option<BlockId>,
    /// It is worth something even where the block that it depends on is given up.
    pub useful_alone: bool,
    /// What happens when it is late or its flow has a gap.
    pub mode: Mode,
    /// A copy goes on each path.
    pub redundant: bool,
    /// What it carries: 1 byte to [`MAX_BLOCK`].
    pub bytes: Bytes,
}

impl Block {
    /// A block that must arrive, in its flow's order, however long that takes.
    pub fn reliable(flow: FlowId, bytes: Bytes) -> Self {
        Self {
            flow,
            class: ClassId::default(),
            priority: PRIORITY_NORMAL,
            deadline: None,
            depends_on: None,
            useful_alone: false,
            mode: Mode::Reliable,
            redundant: false,
            bytes,
        }
    }

    /// A block that is given up after `deadline`, and given out as soon as it is whole, whatever
    /// came before it.
    pub fn expendable(flow: FlowId, deadline: Duration, bytes: Bytes) -> Self {
        Self { deadline: Some(deadline), mode: Mode::Expendable, ..Self::reliable(flow, bytes) }
    }
}

/// The priority of blocks that name none: in the middle of what one octet of importance needs.
pub const PRIORITY_NORMAL: u8 = 1;

/// What happens to a block when it is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is delivered in the order of its flow, after its deadline too: the deadline only says how
    /// urgent it is.
    #[default]
    Reliable,
    /// It is delivered as soon as it is whole, or expires at its deadline.
    Expendable,
}

/// A block's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// Its flow.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
}

/// What became of a block that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The far end has it whole.
    Delivered,
    /// Its deadline passed first, or that of a block which it depends on.
    Expired,
    /// The application took it back, or a block which it depends on.
    Cancelled,
    /// It and its repair were sent over a path without return: whether it arrived is not known
    /// here. Only
    /// [`crate::oneway`] says so.
    Sent,
}

/// A block that arrived whole: in the order of its flow where it is [`Mode::Reliable`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Which block.
    pub id: BlockId,
    /// Its bytes.
    pub bytes: Bytes,
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
    /// Whether a repeated or repair symbol was needed.
    pub repaired: bool,
}

/// The largest block in bytes: offsets have 24 bits on the wire.
pub const MAX_BLOCK: usize = (1 << 24) - 1;

/// What a block of `len` bytes costs against flow control, in bytes: its length and the
/// book-keeping, so that many small blocks cannot take more memory than the window says.
pub const fn cost(len: usize) -> u64 {
    len as u64 + 256
}
