//! Application channels: a program's blocks, in a session of its own or in one that a node owns.
//!
//! An [`AppChannel`] is one conversation with a program at another node. An [`AppClient`] has
//! sockets and sessions of its own. On a station or a centre, [`Tenants`] multiplexes channels,
//! files, streams and forwards onto the session that carries the contacts
//! ([`skyhaul_channels::BlockChannels`]).

mod carried;
mod channel;
mod channel_driver;
mod channel_error;
mod client;
mod hint;
mod hinting;
mod path_choice;
mod polled;
mod session_bell;
mod shared_channel;
mod shared_session;
mod state;
mod tenants;

pub use carried::{CarriedChannel, CarriedChannels};
pub use channel::{AppChannel, IncomingBlock, Sent};
pub use channel_error::AppChannelError;
pub use client::{AppClient, ClientSetup, ClientStartError};
pub use hint::{HintError, OwnHint};
pub use path_choice::PathChoice;
pub use polled::{ChannelPhase, PolledBlock, PolledChannel};
pub use shared_session::{ChannelService, IncomingChannels};
pub use tenants::{
    BLOCKS_SHARE, FILES_SHARE, FORWARDS_SHARE, STREAMS_SHARE, SessionPeer, TakenChannels, Tenants,
};
