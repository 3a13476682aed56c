//! The integration tests of the node, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod custody;
mod custody_sim;
mod delivery_sim;
mod many_stations;
mod metrics;
mod reach;
mod relay_sim;
mod relays;
#[path = "../../../../sim/lab/tests/all/rung.rs"]
mod rung;
mod vectors;
