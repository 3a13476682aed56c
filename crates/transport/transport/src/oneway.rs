//! Blocks over a path that has no return: a data diode, a broadcast downlink. Coding only.
//!
//! Nothing is ever heard of what was sent, so everything is decided beforehand: the [`Assumptions`]
//! name the line's rate, the loss to expect and the share of blocks that may stay lost, and the
//! [`Design`] computes from them how many repair symbols each group of symbols gets, exactly. Every
//! block is coded and sent once; that it was [`Sent`](crate::Outcome::Sent) says nothing about its
//! arrival. Blocks, classes, priorities and deadlines are those of a session.
//!
//! - [`OneWaySender`]: blocks in, plain datagrams out; an [`Announcement`] at least once a second
//!   says how far each flow is, so that a receiver that starts late, or lost much, knows what it
//!   will not get.
//! - [`OneWayReceiver`]: plain datagrams in; blocks out, in their flow's order, and [`BlockGap`]s
//!   where something is missing.
//!
//! ```
//! use bytes::Bytes;
//! use skyhaul_transport::oneway::{Assumptions, Design, Event, OneWayReceiver, ReceiverConfig, OneWaySender, SenderConfig};
//! use skyhaul_transport::{Block, FlowId};
//! use skyhaul_units::{Instant, Rate};
//!
//! let assumptions = Assumptions { loss: "5 %".parse()?, ..Assumptions::over(Rate::from_mbps(20)) };
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
//! What it leaves out: sealing against forgery and replay, pacing and sessions that begin anew,
//! which the crate `oneway` adds; and moving the application's rate to the line's, since nothing
//! can be measured here.

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
