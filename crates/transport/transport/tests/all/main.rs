//! The integration tests of the transport, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by failing"
)]

mod hints;
mod pair;
mod random;
#[path = "../../../../sim/lab/tests/all/rung.rs"]
mod rung;
mod sessions;
mod sessions_greeting;
mod share;
mod states;
mod support;
mod vectors;
