//! Orders to a running emulation, and its answers.

use crate::status::{EmulatedDirection, Status};
use serde::{Deserialize, Serialize};
use skyhaul_link::LinkConfig;

/// An order to a running emulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EmulatorOrder {
    /// Report what the links did.
    Status,
    /// Give one direction of a link another configuration from now on.
    Set {
        /// The link's name.
        link: String,
        /// Which direction.
        direction: EmulatedDirection,
        /// All of it; its plan starts now.
        config: Box<LinkConfig>,
    },
    /// End, and remove what was set up.
    End,
}

/// The answer to an order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderAnswer {
    /// It is done.
    Done,
    /// What the links did.
    Status(Box<Status>),
    /// It cannot be done, and why.
    Refused(String),
}
