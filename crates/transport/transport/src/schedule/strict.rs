//! Strict priority: the important first, whatever the clock says.

use super::{Candidate, Key, Line, Policy};
use skyhaul_units::Instant;

/// Blocks by priority, and by deadline within it.
#[derive(Debug, Clone, Copy)]
pub struct Strict;

impl Policy for Strict {
    fn key(&self, _now: Instant, candidate: &Candidate, _line: &Line) -> Key {
        let deadline = candidate.deadline.unwrap_or(Instant::FAR_FUTURE);
        Key::new(u64::from(candidate.priority), deadline.as_nanos(), candidate)
    }
}
