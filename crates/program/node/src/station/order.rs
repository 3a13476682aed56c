//! What the thread that serves the line is told to do while it runs.

use crate::fault::Fault;
use crate::status::PathHint;
use skyhaul_config::{LinePath, LineSharing};
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something to do.
#[derive(Debug)]
pub enum StationOrder {
    /// Use one more path, which has a name.
    Add(Box<LinePath>),
    /// Use a path no longer.
    Remove(String),
    /// Count with what is known of a path beforehand.
    Hint(String, PathHint),
    /// Use these paths, and share the line so.
    Adopt(Vec<LinePath>, Box<LineSharing>),
}

/// Where the outcome of an order goes.
pub type Done = SyncSender<Result<String, Fault>>;

/// Orders that wait: as many as [`WAITING_MAX`].
#[derive(Debug, Default)]
pub struct Orders(Mutex<VecDeque<(StationOrder, Done)>>);

/// Operators give one at a time.
const WAITING_MAX: usize = 16;
/// A name may have to be looked up for it.
const PATIENCE: Duration = Duration::from_secs(8);

impl Orders {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(StationOrder, Done)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an order over, calls `wake`, and waits for its outcome.
    ///
    /// # Errors
    /// It was refused, or the line's thread does not come to it.
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
