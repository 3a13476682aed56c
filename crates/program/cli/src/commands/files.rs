//! `skyhaul cp`, `skyhaul sync` and `skyhaul files serve`: files to and from a far node, complete,
//! verified, and resumed after interruptions.

pub mod copy;
mod course;
pub mod mirror;
mod receipts;
mod screen;
mod serve;
mod spec;

use skyhaul_exit::Failure;
use skyhaul_transport::SessionConfig;
use skyhaul_units::ByteCount;
use std::io::Write;

/// What `skyhaul files` can do.
#[derive(clap::Subcommand)]
pub enum FilesCommand {
    /// Serves a folder to nodes that copy files to or from it, until interrupted.
    Serve(serve::Serve),
}

/// Carries out `command`.
///
/// # Errors
/// The address, keys or folder cannot be used.
pub fn run(command: &FilesCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        FilesCommand::Serve(serve) => serve::run(serve, out),
    }
}

/// What a session of files keeps: windows for 1 Gbit/s at 660 ms and more.
fn session() -> SessionConfig {
    SessionConfig {
        receive_window: ByteCount::mib(256),
        send_buffer: ByteCount::mib(128),
        ..SessionConfig::default()
    }
}

/// Events that wait for the screen: a few thousand files' worth.
const EVENTS: usize = 4096;
