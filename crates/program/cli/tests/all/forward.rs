//! `skyhaul forward` as its users run it: both ends over loopback with real programs in between,
//! and what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what tests share; what is skipped is said"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "servers of a test wait on sockets, each on a thread"
)]

mod bad_input;
mod database;
mod datagrams;
mod ends;
mod proxy;
mod remote;
mod settings;
mod shell;
mod transparent;
mod web;
