//! Waiting for what other processes do: as long as it takes, and not for ever.

use std::time::{Duration, Instant};

/// Everything that a test waits for takes seconds; a machine that does other things at the same
/// time is allowed for.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Looks until there is something; where nothing comes, fails with what `state` tells.
#[track_caller]
pub fn until<T>(mut look: impl FnMut() -> Option<T>, state: impl FnOnce() -> String) -> T {
    let begun = now();
    while begun.elapsed() < PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        std::thread::park_timeout(LOOK);
    }
    panic!("nothing after {PATIENCE:?}: {}", state())
}

#[allow(clippy::disallowed_methods, reason = "real processes run in real time")]
pub fn now() -> Instant {
    Instant::now()
}
