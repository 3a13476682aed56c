//! Blocks over a path without return: a data diode, a broadcast downlink. FEC repair only.
//!
//! No feedback comes back, so everything is decided beforehand: the [`Assumptions`] state the
//! line's rate, the expected loss and the share of blocks that may stay lost, and the [`Design`]
//! computes from them the exact number of repair symbols for each group. Every block is coded and
//! sent once; the outcome [`Sent`](crate::Outcome::Sent) says nothing about its arrival. Blocks,
//! classes, priorities and deadlines are those of a session.
//!
//! - [`OneWaySender`]: blocks in, plain datagrams out; an [`Announcement`] at least once a second
//!   states the progress of each flow, so that a receiver that starts late, or lost much, knows
//!   what is missing.
//! - [`OneWayReceiver`]: plain datagrams in; blocks out, in their flow's order, and [`BlockGap`]s
//!   where something is missing.
//!
//! ```
//! use bytes::Bytes;
//! use skyhaul_transport::oneway::{Assumptions, Design, Event};
//! use skyhaul_transport::oneway::{OneWayReceiver, OneWaySender, ReceiverConfig, SenderConfig};
//! use skyhaul_transport::{Block, FlowId};
//! use skyhaul_units::{Instant, Rate};
//!
//! let line = Assumptions::over(Rate::from_mbps(20));
//! let assumptions = Assumptions { loss: "5 %".parse()?, ..line };
//! let mut sender = OneWaySender::new(Design::new(&assumptions)?, SenderConfig::default());
//! let mut receiver = OneWayReceiver::new(ReceiverConfig::default());
//! let now = Instant::ZERO;
//! sender.send(now, Block::reliable(FlowId(0), Bytes::from_static(b"one block")))?;
//! sender.finish();
//! let mut number = 0;
//! while let Some(datagram) = sender.poll(now) {
//!     number += 1;
//!     // The second one, which is the block itself, is lost.
//!     if number != 2 {
//!         receiver.datagram(now, datagram);
//!     }
//! }
//! let found = std::iter::from_fn(|| receiver.poll_event()).find_map(|event| match event {
//!     Event::Block(block) => Some(block),
//!     _ => None,
//! });
//! assert_eq!(found.map(|block| block.bytes), Some(Bytes::from_static(b"one block")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It leaves out sealing against forgery and replay, pacing, and restarted sessions, which the
//! crate `oneway` adds; and congestion control, since nothing can be measured here.

mod design;
mod flow;
mod interleave;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod wire;

pub use design::{Assumptions, Design, DesignError};
pub use receive::{BlockGap, Event, LossCause, OneWayReceiver, ReceiverConfig, ReceiverCounters};
pub use send::{OneWaySender, SenderConfig, SenderCounters};
pub use wire::{Announcement, BlockSlice, FLOWS_TOLD, Message, PieceHeader};
