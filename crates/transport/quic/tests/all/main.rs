//! The integration tests of paths over QUIC, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod black_hole;
mod farewell;
mod handshake;
mod joining;
mod nodes;
mod pair;
#[path = "../../../../sim/lab/tests/all/rung.rs"]
mod rung;
mod traffic;
mod versions;
