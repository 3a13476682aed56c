//! `skyhaul one-way`: files and streams over a path without return.

pub mod account;
pub mod line;
mod plan;
mod receive;
mod send;
pub mod socket;
mod source;
mod store;

use skyhaul_exit::{Exit, Failure};
use skyhaul_identity::OneWayKey;
use std::io::Write;
use std::path::Path;

/// What `skyhaul one-way` can do.
#[derive(clap::Subcommand)]
pub enum OneWay {
    /// Computes the FEC repair that a line needs, its cost and the remaining loss. Sends nothing.
    Plan(plan::PlanCommand),
    /// Receives files and lists their missing parts, until interrupted. Never sends a datagram.
    Receive(receive::Receive),
    /// Sends files or standard input, once or several times. Receives no answer.
    Send(send::Send),
}

/// Carries out `command`; its result goes to `out`.
///
/// # Errors
/// A key, file or address cannot be used; no repair reaches what is asked for; something of a file
/// is missing.
pub fn run(command: OneWay, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        OneWay::Plan(command) => plan::run(&command, out),
        OneWay::Receive(command) => receive::run(&command, out),
        OneWay::Send(command) => send::run(&command, out),
    }
}

/// The key that both ends have.
///
/// # Errors
/// The file cannot be read, or holds none.
pub fn read_key(file: &Path) -> Result<OneWayKey, Failure> {
    let place = file.display().to_string();
    let text = skyhaul_node::private_key(file).map_err(|source| {
        let help = match skyhaul_node::is_exposed(&source) {
            true => format!("chmod 600 {place}; make a new key if another user may have read it"),
            false => "give the path of a key made by `skyhaul keygen --one-way`".to_owned(),
        };
        Failure::io("the key cannot be read", &place, &help, source)
    })?;
    OneWayKey::from_text(&text)
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()).at(&place))
}
