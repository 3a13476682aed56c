//! The integration tests of paths over TCP, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod handshake;
mod misbehaviour;
mod pair;
mod traffic;
mod vectors;
