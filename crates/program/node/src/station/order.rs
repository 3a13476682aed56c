//! Orders to the thread of the line while it runs.

use crate::fault::Fault;
use crate::status::PathHint;
use skyhaul_config::{LinePath, LineSharing};
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
    /// Use these paths and this sharing of the line, one for each destination, in the order of the
    /// configuration.
    Adopt(Vec<UplinkChange>),
}

/// What changes at one uplink.
#[derive(Debug)]
pub struct UplinkChange {
    /// Its paths.
    pub paths: Vec<LinePath>,
    /// How contacts are sent there.
    pub sharing: LineSharing,
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
