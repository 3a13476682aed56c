//! The integration tests of frames and captures, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod bare;
mod changes;
mod expected;
mod parity;
mod pauses;
mod runs;
mod select;
mod symbols;
