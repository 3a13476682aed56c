//! Earliest deadline first: keeps every deadline that can be kept while there is enough line for
//! all of them, and none in particular when there isn't. For comparison.

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
