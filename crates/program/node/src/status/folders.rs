//! Folders whose files are handed over.

use serde::{Deserialize, Serialize};

/// A folder whose files are handed over, each once. One that goes to several destinations has a
/// status for each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderStatus {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// The destination, where the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What its files become: `contacts` or `files`.
    pub becomes: String,
    /// Its state.
    pub state: FolderState,
    /// The file that is being handed over; the first of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Files that are to be handed over, as of the last look.
    pub waiting: u64,
    /// Files handed over since the node started.
    pub handed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files set aside since the node started, because they could not be read.
    pub set_aside: u64,
    /// Files that left the folder before this destination had them, because the file system was
    /// full, since the node started.
    #[serde(default)]
    pub gave_way: u64,
    /// Files in the ledger.
    pub remembered: u64,
    /// Why it cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state of a folder whose files are handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderState {
    /// It has not been looked at, or files wait to be whole.
    #[default]
    Waiting,
    /// A file is being handed over.
    Busy,
    /// All files that it has were handed over, as of the last look.
    Done,
    /// It cannot go on for the reason given, and is tried again.
    Failed,
}
