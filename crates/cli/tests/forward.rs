//! `skyhaul forward` as its users run it: both ends over loopback with real programs in between, and what it refuses.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "what tests share; what is skipped is said")]
#![allow(clippy::disallowed_methods, reason = "servers of a test wait on sockets, each on a thread")]

mod support;

#[path = "forward/bad_input.rs"]
mod bad_input;
#[path = "forward/database.rs"]
mod database;
#[path = "forward/datagrams.rs"]
mod datagrams;
#[path = "forward/ends.rs"]
mod ends;
#[path = "forward/proxy.rs"]
mod proxy;
#[path = "forward/remote.rs"]
mod remote;
#[path = "forward/settings.rs"]
mod settings;
#[path = "forward/shell.rs"]
mod shell;
#[path = "forward/transparent.rs"]
mod transparent;
#[path = "forward/web.rs"]
mod web;
