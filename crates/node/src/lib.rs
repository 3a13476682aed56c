//! Station and centre: what each is told to do, and the services that do it.

pub mod config;
