//! What the thread of the line is ordered to do while it runs.

use super::paths::StationPaths;
use crate::forecasts::GivenHint;
use skyhaul_config::{Destination, LinePath, LineSharing, StationConfig};

/// An order.
#[derive(Debug)]
pub enum StationOrder {
    /// Add a path, which has a name.
    Add(Box<LinePath>),
    /// Remove a path.
    Remove(String),
    /// Take a forecast for a path of this name.
    Hint(String, GivenHint),
    /// Use these destinations, with their paths and their sharing of the line.
    Adopt(Box<LineChange>),
}

/// What changes on the line.
#[derive(Debug)]
pub struct LineChange {
    /// The configuration that is in force then.
    pub config: StationConfig,
    /// The destinations that are new, each with its opened paths.
    pub added: Vec<AddedDestination>,
}

/// A destination that is new.
#[derive(Debug)]
pub struct AddedDestination {
    /// Its name.
    pub name: String,
    /// Its paths.
    pub paths: StationPaths,
}

/// What changes at one uplink.
#[derive(Debug)]
pub struct UplinkChange {
    /// The name of its destination.
    pub name: String,
    /// Its paths.
    pub paths: Vec<LinePath>,
    /// How contacts are sent there.
    pub sharing: LineSharing,
}

impl LineChange {
    /// What each uplink gets, in the order of the configuration.
    pub fn uplinks(config: &StationConfig) -> Vec<UplinkChange> {
        let change = |(nth, destination): (usize, &Destination)| UplinkChange {
            name: destination.name().to_owned(),
            paths: config.paths_to(destination.name()),
            sharing: config.sharing(nth),
        };
        config.destinations.iter().enumerate().map(change).collect()
    }
}
