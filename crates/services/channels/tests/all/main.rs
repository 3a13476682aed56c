//! The integration tests of channels, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod blocks;
mod vectors;
