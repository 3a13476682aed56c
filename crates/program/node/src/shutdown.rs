//! How a node ends: the flag that all its threads watch, and the fault that ended it.

use crate::alarms::Alarms;
use crate::fault::Fault;
use skyhaul_events::AlarmKind;
use skyhaul_net::Waker;
use skyhaul_units::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Ends all threads of a node together.
#[derive(Debug)]
pub struct Shutdown {
    requested: AtomicBool,
    /// Ends the waits of [`Self::pause`].
    pauses: Pauses,
    /// Ends the wait of the thread that serves the line.
    line: Waker,
    fault: Mutex<Option<Fault>>,
    alarms: Arc<Alarms>,
}

#[derive(Debug, Default)]
struct Pauses {
    lock: Mutex<()>,
    ended: Condvar,
}

impl Shutdown {
    /// Of a node that runs. `line` wakes the thread that serves its line; a fault that ends the
    /// node is raised among `alarms`.
    pub fn new(line: Waker, alarms: Arc<Alarms>) -> Self {
        Self {
            requested: AtomicBool::new(false),
            pauses: Pauses::default(),
            line,
            fault: Mutex::new(None),
            alarms,
        }
    }

    /// Wakes the thread that serves the line.
    pub fn wake_line(&self) {
        self.line.wake();
    }

    /// The flag that ends all threads.
    pub const fn flag(&self) -> &AtomicBool {
        &self.requested
    }

    /// Ends all threads.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        self.pauses.ended.notify_all();
        self.line.wake();
    }

    /// Whether the node ends.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits for `span`, or until the node ends.
    pub fn pause(&self, span: Duration) {
        let guard = self.pauses.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_requested() {
            drop(self.pauses.ended.wait_timeout(guard, span.to_std()));
        }
    }

    /// Ends the node because of `fault`; of several faults the first counts.
    pub fn fail(&self, fault: Fault) {
        // The alarm is raised first: status still answers while the threads end.
        self.alarms.raise(AlarmKind::NodeStops, "the node", &fault.to_string());
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.request();
    }

    /// The fault that ended the node; none after a normal end.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
