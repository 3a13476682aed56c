//! The integration tests of the lab, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod adaptive;
mod comparison;
mod deadlines;
mod destinations;
mod goodput;
mod lanes;
mod overload;
mod pair;
mod paths;
mod repeats;
mod response;
mod rival;
mod rung;
mod scenarios;
mod shared;
mod thin;
mod why;
