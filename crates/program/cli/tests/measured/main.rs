//! Tests that measure lines and hosts in real time and judge the figures. They have a binary of
//! their own, and `scripts/test` runs eight at a time: beside all process tests, they would measure
//! the load of the machine. One of them (`why --tcp`) looks for the TCP connections of its
//! own process; no other test in this binary has any.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

#[path = "../support/mod.rs"]
mod support;

mod causes;
mod compare;
mod emulator;
mod page_many;
mod paths;
mod probe_drops;
mod probe_line;
mod probe_routes;
mod upgrade;
mod why;
mod why_disk;
mod why_node;
