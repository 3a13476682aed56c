//! The way of a contact that nodes pass on.

use serde::{Deserialize, Serialize};

/// The way of a contact that nodes pass on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactWay {
    /// The nodes that it came through behind its station; the last one is that from which it came
    /// here, as the store names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<HopStatus>,
    /// The names of the destinations that it is passed on to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
}

/// A node that a contact came through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HopStatus {
    /// The node.
    pub node: String,
    /// The contact's flow there.
    pub flow: u32,
}
