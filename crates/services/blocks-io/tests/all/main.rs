//! The block service over real sockets, with a line that leads back to the same service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the two ends of a session wait for each other")]

mod looped;
mod misbehaviour;
mod programs;
mod shortage;
