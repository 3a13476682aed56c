//! Station and centre: what each is told to do, and the services that do it.

pub mod centre;
pub mod config;
pub mod custody;
pub mod fault;
mod guests;
pub mod latency;
mod life;
pub mod log;
pub mod rdr;
mod services;
pub mod station;
pub mod status;

pub use services::{is_exposed, private_key};
