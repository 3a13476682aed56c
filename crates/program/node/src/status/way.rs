//! The way of a contact that nodes pass on.

use super::model::ContactReceived;
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

impl ContactReceived {
    /// Its name in accounts: the station, and its flow there.
    pub fn name(&self) -> String {
        format!("{}-{}", self.station, self.flow)
    }

    /// The name space and the flow under which the store has it.
    pub fn stored(&self) -> (&str, u32) {
        let sender = self.way.via.last();
        sender.map_or((&self.station, self.flow), |hop| (&hop.node, hop.flow))
    }
}
