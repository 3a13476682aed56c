//! The integration tests over real sockets, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod going_on;
mod tcp;
