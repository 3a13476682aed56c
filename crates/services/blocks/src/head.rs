//! What a program says of a block, and what became of it.

use skyhaul_units::Duration;

/// What a program says of a block that it hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// Its number: 1 for the program's first block, and one more for each further one.
    pub number: u64,
    /// The flow that it belongs to, 0 to 1,021.
    pub flow: u32,
    /// Its class, by the place in the list that the node gave; none for the default one.
    pub class: Option<u16>,
    /// 0 is the most important.
    pub priority: u8,
    /// How long from now it is worth anything; none is for ever.
    pub deadline: Option<Duration>,
    /// The number of a block without which it is worth nothing.
    pub depends_on: Option<u64>,
    /// It is worth something even where that one is given up.
    pub useful_alone: bool,
    /// It is given up at its deadline, and given out as soon as it is whole.
    pub expendable: bool,
    /// A copy goes on each path.
    pub redundant: bool,
}

/// Flows of a program's session, from 0.
pub const FLOWS: u32 = 1_022;

impl BlockRequest {
    /// A block that must arrive, in its flow's order.
    pub const fn reliable(number: u64, flow: u32) -> Self {
        Self {
            number,
            flow,
            class: None,
            priority: skyhaul_transport::PRIORITY_NORMAL,
            deadline: None,
            depends_on: None,
            useful_alone: false,
            expendable: false,
            redundant: false,
        }
    }

    /// A block that is given up at its deadline.
    pub const fn expendable(number: u64, flow: u32, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), expendable: true, ..Self::reliable(number, flow) }
    }
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFate {
    /// The far end has it whole.
    Delivered,
    /// Its deadline passed first, or that of a block which it depends on.
    Expired,
    /// The session did not take it, or a block which it depends on.
    Cancelled,
    /// It was sent where nothing returns.
    Sent,
    /// The node did not take it.
    Refused(BlockRefusal),
}

/// Why the node does not take a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockRefusal {
    /// It has no bytes, or too many.
    #[error("a block has 1 to 16777215 bytes")]
    Length,
    /// The program may not use its class.
    #[error("this program may not send in that class; write it in `classes` of [[blocks.allow]]")]
    Class,
    /// Its flow is beyond those of a session.
    #[error("a flow is a number from 0 to 1021")]
    Flow,
    /// It is expendable and has no deadline.
    #[error("an expendable block needs a deadline")]
    Deadline,
    /// It depends on a block that does not come before it.
    #[error("a block depends on one that was handed over before it")]
    Dependency,
    /// Its descriptor is no sealed memory of its length.
    #[error("the descriptor is not memory of the block's length, sealed against any change")]
    Descriptor,
}

/// A program breaks the rules of the socket: its connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBlock {
    /// Its number is not the next one.
    #[error("block {number} came where block {expected} was due")]
    Number {
        /// The number.
        number: u64,
        /// The one that was due.
        expected: u64,
    },
    /// The program was sent away.
    #[error("this program has no session any more")]
    Gone,
}

impl BlockRefusal {
    /// Every cause, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Length, Self::Class, Self::Flow, Self::Deadline, Self::Dependency, Self::Descriptor];
}
