//! The integration tests of the probe, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod independent;
mod pages;
mod support;
mod virtual_line;
