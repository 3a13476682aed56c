//! The status of a node as a whole.

use super::blocks::BlocksStatus;
use super::model::{CentreStatus, StationStatus};
use super::nodes::NodeSeen;
use super::passes::PassStatus;
use super::serve::ServeStatus;
use super::web::WebStatus;
use serde::{Deserialize, Serialize};
use skyhaul_events::AlarmStatus;

/// The status of a node: one part for what it sends, one for what it receives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// What it captures and sends; none without a destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station: Option<StationStatus>,
    /// What it receives and makes of it; none where it listens on no address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<CentreStatus>,
    /// The programs at its block service; none without a `[blocks]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksStatus>,
    /// What its server of products does; none without a `[serve]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<ServeStatus>,
    /// What its page does; none without a `[web]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebStatus>,
    /// Planned passes of a day behind and ahead, in the order of their start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<PassStatus>,
    /// Other nodes as they report themselves, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSeen>,
}

impl NodeStatus {
    /// All alarms that stand, the worst first, and those that others explain last; of a relay,
    /// those of both parts.
    pub(crate) fn standing_alarms(&self) -> Vec<&AlarmStatus> {
        let mut all: Vec<&AlarmStatus> = Vec::new();
        let parts = [
            self.station.as_ref().map(|part| &part.alarms),
            self.centre.as_ref().map(|part| &part.alarms),
        ];
        for alarm in parts.into_iter().flatten().flatten() {
            if !all.iter().any(|known| known.kind == alarm.kind && known.subject == alarm.subject) {
                all.push(alarm);
            }
        }
        all.sort_by_key(|alarm| (alarm.caused_by.is_some(), std::cmp::Reverse(alarm.severity)));
        all
    }

    /// The alarms that no other one explains.
    pub(crate) fn unexplained_alarms(&self) -> usize {
        self.standing_alarms().iter().filter(|alarm| alarm.caused_by.is_none()).count()
    }
}
