//! Wakes the Level-0 thread when the store has more.

use skyhaul_units::Duration;
use std::sync::{Condvar, Mutex, PoisonError};

/// Whether the store has data that the Level-0 thread has not looked for yet.
#[derive(Debug)]
pub struct StoreNews {
    has_more: Mutex<bool>,
    changed: Condvar,
}

impl Default for StoreNews {
    /// There is: what an earlier run left.
    fn default() -> Self {
        Self { has_more: Mutex::new(true), changed: Condvar::new() }
    }
}

impl StoreNews {
    /// Wakes the thread that waits.
    pub fn notify(&self) {
        *self.has_more.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until the store has more, at most `span`.
    pub fn wait(&self, span: Duration) {
        let guard = self.has_more.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(guard, span.to_std(), |has_more| !*has_more);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}
