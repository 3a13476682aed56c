//! The integration tests of the store, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod custody;
mod real_disk;
#[path = "../../../../sim/lab/tests/all/rung.rs"]
mod rung;
