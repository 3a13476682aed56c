//! The block service of a node, without its sockets.
//!
//! Programs on a node's host hand over blocks, and the node sends them in its own session with the
//! peer that they name, under its class tree. [`message`] has what programs and node say to each
//! other. [`Programs`] has the queue of each program: it bounds the memory of each one and of all,
//! serves them in turns, keeps to their rates, gives up what is too late, and knows the fate that
//! each block's program has to hear. Sockets and threads are in `blocks-io`.
//!
//! ```
//! use skyhaul_blocks::{AllowRule, BlockFate, BlockRequest, ProgramLimits, Programs};
//! use skyhaul_units::Instant;
//!
//! let now = Instant::ZERO;
//! let mut programs = Programs::new(ProgramLimits::default());
//! programs.allow(vec![AllowRule::all(1_000)]);
//! let program = programs.admit(1_000)?;
//! programs.offer(now, program, BlockRequest::reliable(1, 0), "telemetry".into())?;
//! let block = programs.next(now, |_| true).ok_or("nothing to send")?;
//! assert_eq!(block.bytes, "telemetry");
//! programs.settle(program, block.number, BlockFate::Delivered);
//! assert_eq!(programs.take_fates(program, 10), [(1, BlockFate::Delivered)]);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod head;
mod hint;
pub mod message;
mod program;
mod programs;
mod rules;

pub use head::{BadBlock, BlockFate, BlockRefusal, BlockRequest};
pub use hint::{HintRequest, ProgramHint};
pub use message::{NodeMessage, ProgramMessage};
pub use program::ProgramCounters;
pub use programs::{AdmissionError, DepartingBlock, ProgramId, Programs};
pub use rules::{AllowRule, ProgramLimits};
