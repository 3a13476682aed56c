//! Blocks over paths: symbols, reports, repair, flow control. Sans-IO: time and bytes are arguments.
//!
//! A [`Session`] takes [`Block`]s, cuts them into symbols as paths have room, sends again what a path lost, and
//! gives the far end's blocks out whole, in the order of their flow, once. It keeps no file and knows no QUIC:
//! a [`Path`] carries its datagrams and one ordered control stream.
//!
//! ```
//! use skyhaul_transport::{Session, SessionConfig};
//! use skyhaul_units::Instant;
//! let session = Session::new(SessionConfig::default());
//! assert!(session.next_timeout().is_none());
//! assert!(!session.is_open());
//! # let _ = Instant::ZERO;
//! ```
//!
//! What it leaves out: durable storage and custody (the caller says what it has stored with
//! [`Session::receipt`]), choice among several paths, and deadlines.

mod block;
mod classes;
mod drive;
mod inflight;
mod path;
mod ranges;
mod receive;
pub mod repair;
pub mod schedule;
mod send;
mod session;
mod stats;
pub mod wire;

pub use block::{Block, BlockTiming, MAX_BLOCK, Received, cost};
pub use classes::{
    ClassConfig, ClassCounters, ClassError, ClassId, ClassTree, ClassesConfig, MAX_CLASSES, MAX_LEAVES,
};
pub use drive::drive;
pub use path::{DownReason, Estimate, Path, PathEvent, PathId, Token};
pub use session::{CloseReason, Event, SendError, Session, SessionConfig};
pub use skyhaul_units::{FlowId, Seq};
pub use stats::Stats;
pub use wire::{PROTOCOL_VERSION, Resume};
