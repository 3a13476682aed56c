//! The time of a change, by both clocks.

use skyhaul_units::{Instant, Utc};

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Counts spans.
    pub now: Instant,
    /// Is shown.
    pub utc: Utc,
}
