//! Orders to the thread of the line while it runs.

use super::paths::StationPaths;
use crate::fault::Fault;
use crate::status::PathHint;
use skyhaul_config::{Destination, LinePath, LineSharing, StationConfig};
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An order.
#[derive(Debug)]
pub enum StationOrder {
    /// Add a path, which has a name.
    Add(Box<LinePath>),
    /// Remove a path.
    Remove(String),
    /// Take a forecast for a path.
    Hint(String, PathHint),
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

/// Receives the outcome of an order.
pub type Done = SyncSender<Result<String, Fault>>;

/// Orders that wait: as many as [`WAITING_MAX`].
#[derive(Debug, Default)]
pub struct Orders(Mutex<VecDeque<(StationOrder, Done)>>);

/// Operators give one order at a time.
const WAITING_MAX: usize = 16;
/// An order may have to resolve a name.
const PATIENCE: Duration = Duration::from_secs(8);

impl Orders {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(StationOrder, Done)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an order over, calls `wake`, and waits for its outcome.
    ///
    /// # Errors
    /// It was refused, or the line's thread does not answer in time.
    pub fn give(&self, order: StationOrder, wake: impl FnOnce()) -> Result<String, Fault> {
        let late = || {
            let help = "try again; restart the station if the fault persists";
            Fault::environment("the line's thread does not answer", "the line", help)
        };
        let (done, outcome) = sync_channel(1);
        let mut waiting = self.waiting();
        if waiting.len() == WAITING_MAX {
            return Err(late());
        }
        waiting.push_back((order, done));
        drop(waiting);
        wake();
        outcome.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(late()))
    }

    /// The next one to carry out.
    pub fn next(&self) -> Option<(StationOrder, Done)> {
        self.waiting().pop_front()
    }
}
