//! Planned passes, and what has become of them.

use super::seconds;
use serde::{Deserialize, Serialize};
use skyhaul_passes::{PassState, ShownPass};

/// A planned pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassStatus {
    /// What the plan calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The mission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission: Option<String>,
    /// The node that captures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station: Option<String>,
    /// The input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// When it is to begin (UTC).
    pub start: String,
    /// When it is to end (UTC).
    pub end: String,
    /// How high the spacecraft rises, in degrees, where the node computed the pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u8>,
    /// What has become of it.
    pub state: PassState,
    /// When its first frame came (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<String>,
    /// The contacts that came of it.
    #[serde(default)]
    pub contacts: Vec<String>,
}

impl From<ShownPass> for PassStatus {
    fn from(shown: ShownPass) -> Self {
        let ShownPass { planned, state, contacts, locked } = shown;
        Self {
            name: planned.name,
            mission: planned.mission,
            station: planned.station,
            channel: planned.channel,
            start: seconds(planned.start),
            end: seconds(planned.end),
            peak: planned.peak,
            state,
            locked: locked.map(seconds),
            contacts,
        }
    }
}
