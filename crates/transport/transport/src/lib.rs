//! Blocks over paths: symbols, reports, repair, scheduling, flow control. Sans-IO: time and bytes
//! are arguments.
//!
//! A [`Session`] takes [`Block`]s with their priorities and deadlines, cuts them into symbols as
//! paths have room, sends again what a path lost or computes repair for it ahead, and gives the far
//! end's blocks out whole, once. It keeps no file and knows no QUIC: a [`Path`] carries its
//! datagrams and one ordered control stream.
//!
//! ```
//! use skyhaul_transport::{Session, SessionConfig};
//! let session = Session::new(SessionConfig::default());
//! assert!(session.next_timeout().is_none());
//! assert!(!session.is_open());
//! ```
//!
//! What it leaves out: durable storage and custody (the caller says what it has stored with
//! [`ControlStream::receipt`]), and how fast a path may send (its congestion controller says).

mod block;
mod classes;
mod drive;
mod inflight;
mod line_share;
pub mod oneway;
mod path;
mod ranges;
mod reassembly;
pub mod repair;
pub mod schedule;
mod send;
mod session;
mod stats;
pub mod wire;

pub use block::{
    Block, BlockId, BlockTiming, MAX_BLOCK, Mode, Outcome, PRIORITY_NORMAL, Received, cost,
};
pub use classes::{
    ClassConfig, ClassCounters, ClassError, ClassId, ClassTree, ClassesConfig, MAX_CLASSES,
    MAX_LEAVES,
};
pub use drive::{drive, give_out, take_in};
pub use line_share::{LINE_PATHS_MAX, LINE_SESSIONS_MAX, LineShare, LineShareError, LineUse};
pub use path::{
    DownReason, Estimate, GOES_ON, PAYLOAD_MIN, Path, PathEvent, PathId, PathOptions, PathState,
    Token,
};
pub use schedule::{
    Candidate, Earliest, Fifo, Forecast, LineEstimate, Outlook, Policy, PolicyConfig, SendOrder,
    Strict, Urgency, UrgencyConfig, Worth, can_arrive, forecast, forecast_by,
};
pub use session::{
    BlockSender, CloseReason, ControlStream, Event, Hint, Opening, PathStats, PathStatus,
    SendError, Session, SessionConfig, SessionPaths, SessionSharing, Supply, WaitMeter, Waits,
};
pub use skyhaul_units::{BlockMark, FlowId, Held, Seq, SpoolId, SpoolIdentity, SpoolOpening};
pub use stats::{ReceivedStats, SentStats, Stats};
pub use wire::{Custody, PROTOCOL_VERSION, ProtocolVersions, RefusalCause, Resume, SPOOLS_MAX};
