//! The upgrades of this process that failed, for its status.

use std::sync::{Mutex, PoisonError};

/// How many failed, and why the last one did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpgradeFailures {
    /// How many.
    pub count: u64,
    /// Why the last one failed.
    pub last: Option<String>,
}

static FAILURES: Mutex<UpgradeFailures> = Mutex::new(UpgradeFailures { count: 0, last: None });

/// Those of this process so far.
pub fn failures() -> UpgradeFailures {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// One failed.
pub fn note_failure(why: &str) {
    let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
    failures.count += 1;
    failures.last = Some(why.to_owned());
}
