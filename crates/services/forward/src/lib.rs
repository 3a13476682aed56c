//! Applications' connections over one session: what the two ends say to each other, and who may
//! connect where.
//!
//! Each connection is a stream. A [`Mux`] keeps the streams of one session: it gives the blocks to
//! send, and makes events of those that came. Each stream has flows of its own in the session, so
//! that what one lost holds back no other, and a window, so that one whose reader is slow holds
//! back itself alone. A stream may carry datagrams instead, each of which is given up when it is
//! late. [`socks`] is what applications say that name their targets themselves. [`Target`] says
//! where the far end connects,
//! [`Allow`] where it may. Sans-IO: it reads no clock and opens no socket.
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
mod mux;
pub mod socks;
mod spec;
mod target;
pub mod wire;

pub use allow::{Allow, AllowError};
pub use carriage::{Carriage, DATAGRAM_DEADLINE, Lane};
pub use mux::{
    Event, INITIAL_CREDIT, ListenRequests, Mux, OpenError, PeerError, Role, STREAMS_MAX, StreamId,
    WINDOW_MAX,
};
pub use spec::{Entrance, Forward, Local, SpecError, What};
pub use target::{Target, TargetError};
pub use wire::{ConnectRefusal, Listen};
