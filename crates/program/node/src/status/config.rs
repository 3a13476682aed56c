//! How the configuration in force differs from its file.

use serde::{Deserialize, Serialize};

/// The configuration in force, compared with its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// The file.
    pub file: String,
    /// When it was read, as it is in force (UTC).
    pub read: String,
    /// Tables and keys that were read and wait for a restart.
    pub waits: Vec<String>,
    /// Why the node would not take the file as it is now.
    pub error: Option<String>,
    /// Keys that are otherwise in the file now, or only there, or no more.
    pub differences: Vec<ConfigDifference>,
    /// Differences that are not listed.
    pub left_out: u64,
}

/// A key that differs. Values are as they are written, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigDifference {
    /// The key with its table, such as `[[channel]] x input`.
    pub key: String,
    /// The value in force; none: it is not set.
    pub in_force: Option<String>,
    /// The value in the file; none: it is not set.
    pub on_disk: Option<String>,
}
