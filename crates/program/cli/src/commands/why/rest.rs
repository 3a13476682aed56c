//! The pause between two observations.

use crate::commands::signals;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Duration;
use std::sync::atomic::Ordering;

/// Waits for `span`.
///
/// # Errors
/// It was interrupted.
#[allow(
    clippy::disallowed_methods,
    reason = "counters are read again after a time: nothing wakes it"
)]
pub fn rest(span: Duration) -> Result<(), Failure> {
    let stop = signals::stop_flag()?;
    let mut left = span;
    while left > Duration::ZERO {
        if stop.load(Ordering::Relaxed) {
            let what = "interrupted before a result";
            return Err(Failure::new(Exit::Interrupted, what, "start it again"));
        }
        let step = left.min(STEP);
        std::thread::sleep(step.to_std());
        left = left.saturating_sub(step);
    }
    Ok(())
}

/// An interrupt is noticed this soon.
const STEP: Duration = Duration::from_millis(100);
