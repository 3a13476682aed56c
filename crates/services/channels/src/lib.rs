//! Application channels multiplexed onto one session.
//!
//! The [`Multiplexer`] gives each channel a slot of flows and flow-control windows. Port forwarding
//! has it for connections (crate `forward`), [`BlockChannels`] for programs' blocks. A session that
//! carries several services has a [`FlowRange`] for each, and each service has a [`Share`] of the
//! send buffer. Sockets and threads are in `channels-io`.

mod blocks;
mod flow_range;
mod multiplexer;
mod share;

pub use blocks::{
    BLOCK_WINDOW, BlockChannels, BlockEvent, BlockPeerError, CHANNELS_MAX, FLOWS_OF_PROGRAM,
};
pub use flow_range::{FIRST_GUEST, FlowRange};
pub use multiplexer::{
    Answer, Carries, ChannelEvent, ChannelKey, ChannelPeerError, ChannelRules, Counted,
    Multiplexer, SessionEnd, WindowRules, wire,
};
pub use share::Share;
