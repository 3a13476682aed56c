//! First come, first served, as a stream without deadlines. For comparison.

use super::{Candidate, LineEstimate, Policy, SendOrder};
use skyhaul_units::Instant;

/// Blocks in the order of hand-over.
#[derive(Debug, Clone, Copy)]
pub struct Fifo;

impl Policy for Fifo {
    fn key(&self, _now: Instant, candidate: &Candidate, _line: &LineEstimate) -> SendOrder {
        SendOrder::new(0, 0, candidate)
    }
}
