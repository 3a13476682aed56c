//! A node's threads live and end together: the stop flag, what needs attention, and why the node
//! cannot go on.

use crate::fault::Fault;
use skyhaul_net::Waker;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What all threads of a node look at.
#[derive(Debug)]
pub struct Life {
    stop: AtomicBool,
    stopping: (Mutex<()>, Condvar),
    /// Ends the wait of the thread that serves the line.
    line: Waker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What is wrong, by what it is about, with the newest reason.
    alarms: BTreeMap<String, String>,
    failure: Option<Fault>,
}

impl Life {
    /// Of a node that runs; `line` wakes the thread that serves its line.
    pub fn new(line: Waker) -> Self {
        let state = Mutex::new(State::default());
        Self { stop: AtomicBool::new(false), stopping: Default::default(), line, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread that serves the line.
    pub fn wake_line(&self) {
        self.line.wake();
    }

    /// The flag that ends all threads.
    pub const fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Ends all threads.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stopping.1.notify_all();
        self.line.wake();
    }

    /// Whether the node ends.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for `span`, less where the node ends.
    pub fn pause(&self, span: Duration) {
        let guard = self.stopping.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopping() {
            drop(self.stopping.1.wait_timeout(guard, span.to_std()));
        }
    }

    /// Ends the node for this reason; the first one given counts.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state();
        // Whoever asks for the status while the threads end is told, too.
        state.alarms.insert("the node stops".to_owned(), fault.to_string());
        state.failure.get_or_insert(fault);
        drop(state);
        self.stop();
    }

    /// Why the node ended, where it did not end as told.
    pub fn failure(&self) -> Option<Fault> {
        self.state().failure.clone()
    }

    /// Something needs attention: what, and the newest reason.
    pub fn alarm(&self, what: &str, reason: &str) {
        let before = self.state().alarms.insert(what.to_owned(), reason.to_owned());
        if before.as_deref() != Some(reason) {
            tracing::warn!("{what}: {reason}");
        }
    }

    /// It is well again; whether it was not.
    pub fn clear_alarm(&self, what: &str) -> bool {
        let was_on = self.state().alarms.remove(what).is_some();
        if was_on {
            tracing::info!("{what}: cleared");
        }
        was_on
    }

    /// What needs attention now, a sentence each.
    pub fn alarms(&self) -> Vec<String> {
        self.state().alarms.iter().map(|(what, reason)| format!("{what}: {reason}")).collect()
    }
}
