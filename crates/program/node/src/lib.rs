//! Station and centre: their configuration, the threads that capture, send, store and process data,
//! and their status.

mod address_family;
mod alarms;
pub mod centre;
pub mod custody;
pub mod fault;
mod guests;
pub mod latency;
pub mod log;
pub mod rdr;
mod services;
mod shutdown;
pub mod station;
pub mod status;

pub use services::{is_exposed, private_key};
