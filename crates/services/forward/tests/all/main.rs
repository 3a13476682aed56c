//! The integration tests of forwards, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod session;
mod streams;
mod vectors;
