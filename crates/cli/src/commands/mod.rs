//! The subcommands, one a file.

mod config;
mod decode;
mod keygen;
mod relay;

use crate::failure::Failure;
use std::io::Write;

/// What the program can do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Checks and explains configuration files.
    #[command(subcommand)]
    Config(config::Config),
    /// Decodes capture files to frames and packets, with the full account.
    Decode(decode::Decode),
    /// Makes a node's private key and prints its fingerprint.
    Keygen(keygen::Keygen),
    /// Relays UDP over an emulated line: rate, delay, loss, queue. Needs no root.
    Relay(relay::Relay),
}

/// Carries out `command`; its result goes to `out`.
///
/// # Errors
/// What could not be done, where, and what to do about it.
pub fn run(command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Config(command) => config::run(command, out),
        Command::Decode(command) => decode::run(&command, out),
        Command::Keygen(command) => keygen::run(&command, out),
        Command::Relay(command) => relay::run(&command, out),
    }
}
