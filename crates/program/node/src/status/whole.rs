//! The status of a node as a whole.

use super::blocks::BlocksStatus;
use super::model::{CentreStatus, StationStatus};
use super::passes::PassStatus;
use super::serve::ServeStatus;
use super::web::WebStatus;
use serde::{Deserialize, Serialize};

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
}
