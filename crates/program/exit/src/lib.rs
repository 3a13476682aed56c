//! How a command ends when it cannot do what it was asked: one sentence and an exit code.
//!
//! ```
//! use skyhaul_exit::{Exit, Failure};
//! let failure = Failure::new(Exit::Usage, "the rate is zero", "give a rate above zero");
//! assert_eq!(failure.to_string(), "error: the rate is zero; help: give a rate above zero");
//! assert_eq!(failure.exit() as u8, 2);
//! ```
//!
//! Crates below the program turn their own errors into a [`Failure`], so that each command reports
//! them in the same way. This crate prints nothing and ends no process: the program does both.

mod failure;

pub use failure::{Exit, Failure};
