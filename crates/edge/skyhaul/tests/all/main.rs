//! The integration tests of the library, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod conference;
mod hints;
mod refusals;
