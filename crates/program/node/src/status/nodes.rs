//! Other nodes, as they report themselves.

use serde::{Deserialize, Serialize};
use skyhaul_events::{NodeReport, Severity};

/// A node that this one has sessions with, or had: what it reported last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// What is known of it.
    pub state: NodeSeenState,
    /// Whether there is a session with it.
    #[serde(rename = "connected")]
    pub is_connected: bool,
    /// When its last report came (UTC).
    #[serde(default)]
    pub heard: Option<String>,
    /// Seconds since then.
    #[serde(default)]
    pub age_s: Option<f64>,
    /// When it started (UTC, by the clock of this node).
    #[serde(default)]
    pub started: Option<String>,
    /// Reports that were not taken: they could not be read, or were too many.
    #[serde(default)]
    pub wrong_reports: u64,
    /// The last report; none before the first.
    #[serde(default)]
    pub report: Option<NodeReport>,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeSeenState {
    /// It reported no alarm lately.
    Ok,
    /// It has alarms.
    Alarm,
    /// Its report is old: there is no session with it, or none came.
    Stale,
    /// It has not reported since this node started.
    #[default]
    Unheard,
}

impl NodeSeen {
    /// How bad its worst alarm was when it reported.
    pub fn severity(&self) -> Option<Severity> {
        self.report.as_ref().and_then(NodeReport::severity)
    }
}
