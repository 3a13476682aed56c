//! Waiting for other processes: as long as it takes, but not for ever.

use std::time::{Duration, Instant};

/// Everything that a test waits for takes seconds. This allows for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The time between the first two looks. Each later pause is half as long again, up to
/// [`LOOK_MAX`]: most looks start a process, and keep the machine from what they wait for.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

/// Looks until there is a value. If none comes, fails with the text of `state`.
#[track_caller]
pub fn until<T>(mut look: impl FnMut() -> Option<T>, state: impl FnOnce() -> String) -> T {
    let (begun, mut pause) = (now(), LOOK);
    while begun.elapsed() < PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        std::thread::park_timeout(pause);
        pause = (pause * 3 / 2).min(LOOK_MAX);
    }
    panic!("nothing after {PATIENCE:?}: {}", state())
}

#[allow(clippy::disallowed_methods, reason = "real processes run in real time")]
pub fn now() -> Instant {
    Instant::now()
}
