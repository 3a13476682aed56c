//! The integration tests of deliveries, in one program.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails or skips says so")]

mod away;
mod cloud_messages;
mod cumulus;
mod delivery_records;
mod public_records;
