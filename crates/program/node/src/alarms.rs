//! The alarms of a node: what an operator must act on now.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The alarms that are raised, by subject, each with its newest reason.
#[derive(Debug, Default)]
pub struct Alarms {
    raised: Mutex<BTreeMap<String, String>>,
}

impl Alarms {
    fn raised(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the alarm about `subject`, or replaces its reason. Logs what differs from before.
    pub fn raise(&self, subject: &str, reason: &str) {
        if self.set(subject, reason) {
            tracing::warn!("{subject}: {reason}");
        }
    }

    /// As [`Self::raise`], without a log line. Returns whether anything changed.
    pub fn set(&self, subject: &str, reason: &str) -> bool {
        let before = self.raised().insert(subject.to_owned(), reason.to_owned());
        before.as_deref() != Some(reason)
    }

    /// Clears the alarm about `subject`. Returns whether it was raised.
    pub fn clear(&self, subject: &str) -> bool {
        let was_raised = self.raised().remove(subject).is_some();
        if was_raised {
            tracing::info!("{subject}: cleared");
        }
        was_raised
    }

    /// The alarms that are raised, a sentence each, ordered by subject.
    pub fn sentences(&self) -> Vec<String> {
        self.raised().iter().map(|(subject, reason)| format!("{subject}: {reason}")).collect()
    }
}
