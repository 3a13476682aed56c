//! Strict priority: the most important block first, whatever its deadline.

use super::{Candidate, LineEstimate, Policy, SendOrder};
use skyhaul_units::Instant;

/// Blocks by priority, and by deadline within it.
#[derive(Debug, Clone, Copy)]
pub struct Strict;

impl Policy for Strict {
    fn key(&self, _now: Instant, candidate: &Candidate, _line: &LineEstimate) -> SendOrder {
        let deadline = candidate.deadline.unwrap_or(Instant::FAR_FUTURE);
        SendOrder::new(u64::from(candidate.priority), deadline.as_nanos(), candidate)
    }
}
