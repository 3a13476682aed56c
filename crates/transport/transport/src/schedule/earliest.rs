//! Earliest deadline first: keeps all deadlines while the line can carry all blocks, and protects
//! none in particular under overload. For comparison.

use super::{Candidate, LineEstimate, Policy, SendOrder};
use skyhaul_units::Instant;

/// Blocks by deadline, those without one last.
#[derive(Debug, Clone, Copy)]
pub struct Earliest;

impl Policy for Earliest {
    fn key(&self, _now: Instant, candidate: &Candidate, _line: &LineEstimate) -> SendOrder {
        SendOrder::new(candidate.deadline.unwrap_or(Instant::FAR_FUTURE).as_nanos(), 0, candidate)
    }
}
