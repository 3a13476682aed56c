//! What the test binaries of the program share: the program as a process, nodes and their
//! configuration, recordings, refusals.

#![allow(dead_code, reason = "each program of tests takes the part it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

pub mod browser;
pub mod centres;
pub mod help;
pub mod late;
pub mod many;
pub mod node;
pub mod page;
pub mod patience;
pub mod places;
pub mod ports;
pub mod process;
pub mod quota;
pub mod recordings;
pub mod refusal;
pub mod rung;
pub mod schema;
pub mod site;
pub mod slow_disk;
pub mod user;
