//! The integration tests of frames and captures, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod bare;
mod changes;
mod expected;
mod parity;
mod pauses;
#[path = "../../../../sim/lab/tests/all/rung.rs"]
mod rung;
mod runs;
mod select;
mod symbols;
