//! The integration tests of compression, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod anything;
mod real;
