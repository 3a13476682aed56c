//! The integration tests of Level-0 products, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod assembly;
mod expedited;
mod fill;
mod products;
mod readers;
mod support;
