//! The page of the node.

use serde::{Deserialize, Serialize};

/// The page of the node, and what asks it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebStatus {
    /// Where browsers reach it.
    pub address: String,
    /// Connections now.
    pub connections: u32,
    /// Pages that somebody sees now, and other programs that follow the node.
    pub streams: u32,
    /// People who have logged in.
    #[serde(default)]
    pub sessions: u32,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests whose caller is not known, or may not do so.
    pub unauthorized: u64,
    /// Connections that were closed at once, because there were too many.
    pub refused_connections: u64,
}
