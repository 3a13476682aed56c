//! The keys of a node, and what it knows of those of others.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of a node and of others. Keys are fingerprints, times are UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyReport {
    /// The key that connections use.
    pub key: String,
    /// Since when.
    pub since: String,
    /// The change that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextKeyStatus>,
    /// The other nodes of the configuration.
    pub peers: Vec<PeerKeyStatus>,
    /// Keys that are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<RevokedKeyStatus>,
}

/// A change of the key that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextKeyStatus {
    /// The next key.
    pub key: String,
    /// The one before.
    pub former: String,
    /// Which is used.
    pub stage: RotationStage,
    /// Since when.
    pub since: String,
    /// What each node has noted.
    pub noted: BTreeMap<String, RotationStage>,
    /// The nodes that have not noted the present stage.
    pub waits_for: Vec<String>,
    /// Why it cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
}

/// How far a change of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RotationStage {
    /// The former key is used, and the next one is known.
    Staged,
    /// The next key is used.
    Switched,
}

/// The keys of another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerKeyStatus {
    /// Its name.
    pub name: String,
    /// Its keys that are accepted, the newest first.
    pub accepted: Vec<String>,
    /// Its keys that were in use before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_use: Vec<String>,
}

/// A key that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedKeyStatus {
    /// The key.
    pub key: String,
    /// Why.
    pub reason: String,
    /// When it was revoked.
    pub at: String,
    /// The node whose key it is, or was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}
