//! `skyhaul keygen`: makes a node's private key and says its fingerprint.

use crate::failure::{Exit, Failure};
use skyhaul_quic::Identity;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul keygen`.
#[derive(clap::Args)]
#[command(after_help = "The fingerprint goes into the other end's configuration; the file stays here.

Example:
  skyhaul keygen station.key
  skyhaul keygen station.key --show")]
pub struct Keygen {
    /// Where the private key is written, readable by this user alone. An existing file is left as it is.
    file: PathBuf,
    /// Prints the fingerprint of the key that is in the file, and makes none.
    #[arg(long)]
    show: bool,
}

/// Makes or shows one key; prints its fingerprint.
///
/// # Errors
/// The file exists (or with `--show` does not), cannot be written, or holds no key.
pub fn run(command: &Keygen, out: &mut dyn Write) -> Result<(), Failure> {
    let identity = if command.show { read(&command.file)? } else { make(&command.file)? };
    Ok(writeln!(out, "{}", identity.fingerprint())?)
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

fn make(file: &Path) -> Result<Identity, Failure> {
    let place = file.display().to_string();
    let identity = Identity::generate()
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    let mut target =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(|source| {
            let help = match source.kind() {
                ErrorKind::AlreadyExists => "choose another name, or see its fingerprint with --show",
                _ => "give a path in an existing folder that this user may write to",
            };
            Failure::io("the key cannot be written", &place, help, source)
        })?;
    target.write_all(identity.to_pem().as_bytes()).and_then(|()| target.sync_all()).map_err(|source| {
        Failure::io("the key cannot be written", &place, "make room, then remove the file", source)
    })?;
    Ok(identity)
}
