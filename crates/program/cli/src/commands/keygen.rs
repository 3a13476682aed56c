//! `skyhaul keygen`: makes a node's private key and prints its fingerprint.

use super::one_way::read_key;
use skyhaul_exit::{Exit, Failure};
use skyhaul_identity::OneWayKey;
use skyhaul_quic::Identity;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul keygen`.
#[derive(clap::Args)]
#[command(after_help = "\
        The fingerprint goes into the configuration of the other end. The file stays on this \
        machine.

Example:
  skyhaul keygen station.key
  skyhaul keygen station.key --show
  skyhaul keygen pass.key --one-way")]
pub struct Keygen {
    /// The file for the private key. Only this user can read it. An existing file is not
    /// overwritten.
    file: PathBuf,
    /// Prints the fingerprint of an existing key, and makes none.
    #[arg(long)]
    show: bool,
    /// Makes a key that both ends of a path without return share. Copy the file to the other end
    /// over a secure channel.
    #[arg(long)]
    one_way: bool,
}

/// Makes or shows one key; prints its fingerprint.
///
/// # Errors
/// The file exists (or with `--show` does not), cannot be written, or holds no key.
pub fn run(command: &Keygen, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &*command.file;
    let fingerprint = match (command.one_way, command.show) {
        (false, true) => read(file)?.fingerprint().to_string(),
        (true, true) => read_key(file)?.fingerprint(),
        (false, false) => {
            let identity = Identity::generate().map_err(|error| no_key(&error))?;
            write(file, &identity.to_pem())?;
            identity.fingerprint().to_string()
        }
        (true, false) => {
            let key = OneWayKey::generate().map_err(|error| no_key(&error))?;
            write(file, &key.to_text())?;
            key.fingerprint()
        }
    };
    Ok(writeln!(out, "{fingerprint}")?)
}

fn no_key(error: &dyn core::fmt::Display) -> Failure {
    Failure::from_sentence(Exit::Environment, &error.to_string())
}

fn read(file: &Path) -> Result<Identity, Failure> {
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| {
        Failure::io(
            "the key cannot be read",
            &place,
            "give the path of a key made by `skyhaul keygen`",
            source,
        )
    })?;
    Identity::from_pem(&text)
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()).at(&place))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let place = file.display().to_string();
    let mut target =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(
            |source| {
                let help = match source.kind() {
                    ErrorKind::AlreadyExists => {
                        "choose another name, or show its fingerprint with --show"
                    }
                    _ => "give a path in an existing folder that this user can write to",
                };
                Failure::io("the key cannot be written", &place, help, source)
            },
        )?;
    target.write_all(text.as_bytes()).and_then(|()| target.sync_all()).map_err(|source| {
        Failure::io("the key cannot be written", &place, "free space, then remove the file", source)
    })
}
