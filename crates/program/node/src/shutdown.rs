//! How a node ends: the flag that all its threads watch, and the fault that ended it.

use crate::alarms::Alarms;
use crate::fault::Fault;
use skyhaul_events::AlarmKind;
use skyhaul_net::{LastWord, LeftSocket, Waker};
use skyhaul_units::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Ends all threads of a node together.
#[derive(Debug)]
pub struct Shutdown {
    requested: AtomicBool,
    /// The node goes on in another process.
    goes_on: AtomicBool,
    /// The sockets that wait for calls, for that.
    sockets: Mutex<Vec<LeftSocket>>,
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
            goes_on: AtomicBool::new(false),
            sockets: Mutex::default(),
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

    /// Far ends are to be told, when all threads end, that the node goes on in another process.
    pub fn go_on(&self) {
        self.goes_on.store(true, Ordering::Relaxed);
    }

    /// What far ends are told.
    pub fn last_word(&self) -> LastWord {
        match self.goes_on.load(Ordering::Relaxed) {
            true => LastWord::GoesOn,
            false => LastWord::Stops,
        }
    }

    /// The thread of the line leaves its sockets for the other process.
    pub fn leave(&self, sockets: Vec<LeftSocket>) {
        *self.sockets.lock().unwrap_or_else(PoisonError::into_inner) = sockets;
    }

    /// What it left, once it has ended.
    pub fn take_sockets(&self) -> Vec<LeftSocket> {
        std::mem::take(&mut self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
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
