//! What a drop folder says of itself: its faults in words, and its status before it does anything.

use super::ledger::DropLedgerError;
use super::ways::FolderWay;
use crate::fault::Fault;
use crate::status::FolderStatus;
use skyhaul_config::{FolderEntry, FolderUse};
use std::io;

/// Why the folder cannot be listed.
pub fn unlisted(config: &FolderEntry, error: &io::Error) -> String {
    let help = match error.kind() {
        io::ErrorKind::NotFound => "mount its file system, or make the folder",
        io::ErrorKind::PermissionDenied => "give this user the right to read it",
        _ => "check its file system",
    };
    format!("{}: {error}; {help}; nothing is forgotten", config.path.display())
}

/// Why nothing is handed over.
pub fn unwritten(config: &FolderEntry, error: &io::Error) -> String {
    format!(
        "no file of {} is handed over until its ledger can be written ({error}); free space on the \
        file system of the state folder, or check the disk",
        config.path.display()
    )
}

/// Why the node cannot start with this ledger.
pub fn ledger_fault(config: &FolderEntry, error: &DropLedgerError) -> Fault {
    let sentence = error.to_string();
    let (what, help) = sentence.split_once("; ").unwrap_or((&sentence, "mend the file"));
    Fault::environment(what, format!("folder {}", config.name), help)
}

/// The status of a folder of which nothing is known yet.
pub fn shown(config: &FolderEntry, way: &FolderWay) -> FolderStatus {
    let becomes = match config.r#as {
        FolderUse::Contacts => "contacts",
        FolderUse::Files => "files",
    };
    FolderStatus {
        name: config.name.to_string(),
        path: config.path.display().to_string(),
        to: way.to.clone(),
        becomes: becomes.to_owned(),
        ..FolderStatus::default()
    }
}
