//! The states that a status shows.

use serde::{Deserialize, Serialize};

/// The state of a contact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContactState {
    /// Data comes in.
    #[default]
    Open,
    /// The last frame has arrived.
    Closed,
    /// Its products are written.
    Done,
    /// Its products could not be made; the reason is among the alarms.
    Failed,
    /// It came through this node before: it is neither processed nor passed on.
    Refused,
}

/// Whether a durable store takes data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreState {
    /// It does.
    #[default]
    Ok,
    /// There is no space: backpressure until there is.
    Full,
    /// The disk failed: backpressure, and it is tried again.
    Failed,
}

/// Whether the line is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineState {
    /// Being set up.
    #[default]
    Connecting,
    /// In use.
    Open,
    /// Down; the station calls again soon.
    Down,
    /// The centre refuses this station, or is not the one configured.
    Refused,
}
