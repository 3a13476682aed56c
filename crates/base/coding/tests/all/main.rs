//! The integration tests of the codes, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod batch;
mod draw;
mod libfec;
mod reed_solomon;
