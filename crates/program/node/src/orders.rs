//! Orders to the thread of a line while it runs.

use crate::fault::Fault;
use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Receives the outcome of an order.
pub type Done = SyncSender<Result<String, Fault>>;

/// Orders that wait: as many as [`WAITING_MAX`].
#[derive(Debug)]
pub struct Orders<T>(Mutex<VecDeque<(T, Done)>>);

/// Operators give one order at a time.
const WAITING_MAX: usize = 16;
/// Programs leave room for operators.
const POSTED_MAX: usize = WAITING_MAX / 2;
/// An order may have to resolve a name.
const PATIENCE: Duration = Duration::from_secs(8);

impl<T> Default for Orders<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Orders<T> {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(T, Done)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an order over, calls `wake`, and waits for its outcome.
    ///
    /// # Errors
    /// It was refused, or the line's thread does not answer in time.
    pub fn give(&self, order: T, wake: impl FnOnce()) -> Result<String, Fault> {
        let late = || {
            let help = "try again; restart the node if the fault persists";
            Fault::environment("the line's thread does not answer", "the line", help)
        };
        let (done, outcome) = sync_channel(1);
        if !self.put(order, done, WAITING_MAX) {
            return Err(late());
        }
        wake();
        outcome.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(late()))
    }

    /// Hands an order over without waiting for its outcome. Returns whether there was room for it;
    /// wake the thread then.
    pub fn post(&self, order: T) -> bool {
        self.put(order, sync_channel(1).0, POSTED_MAX)
    }

    fn put(&self, order: T, done: Done, most: usize) -> bool {
        let mut waiting = self.waiting();
        let has_room = waiting.len() < most;
        if has_room {
            waiting.push_back((order, done));
        }
        has_room
    }

    /// The next one to carry out.
    pub fn next(&self) -> Option<(T, Done)> {
        self.waiting().pop_front()
    }
}
