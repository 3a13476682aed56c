//! Port forwarding over one session: the protocol between the two ends, and the rules for who may
//! connect where.
//!
//! Each connection is a stream, which is a channel of the [`skyhaul_channels::Multiplexer`].
//! [`ForwardStreams`] has the streams of one session: it gives the blocks to send, and turns
//! received ones into events. Each stream has a flow of its own in each direction, so that its
//! losses delay no other stream, and a flow-control window, so that a slow reader holds back only
//! its own stream. A stream may carry datagrams instead, each of which is
//! given up when it is late. In [`socks`], applications name their targets themselves. A [`Target`]
//! is what the far end connects to, [`Allow`] a rule that permits it. Sans-IO: it reads no clock
//! and opens no socket.
//!
//! ```
//! use skyhaul_forward::{Allow, Target};
//! let allow: Allow = "10.0.0.0/8:6000-6010".parse()?;
//! let target: Target = "10.1.2.3:6001".parse()?;
//! assert!(allow.permits(&target, Some("10.1.2.3".parse()?)));
//! assert!(!allow.permits(&target, Some("127.0.0.1".parse()?)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allow;
mod carriage;
pub mod socks;
mod spec;
mod streams;
mod target;
pub mod wire;

pub use allow::{Allow, AllowError};
pub use carriage::{Carriage, DATAGRAM_DEADLINE, Lane};
pub use spec::{Entrance, Forward, Local, SpecError, What};
pub use streams::{
    Event, ForwardStreams, INITIAL_CREDIT, ListenRequests, OpenError, PeerError, STREAMS_MAX,
    WINDOW_MAX,
};
pub use target::{Target, TargetError};
pub use wire::{ConnectRefusal, Listen};
