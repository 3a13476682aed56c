//! Our time in the state machine's clock and back.

use skyhaul_units::{Duration, Instant};

/// Maps [`Instant::ZERO`] to a fixed reading of the standard library's clock, which is never read here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(pub(crate) std::time::Instant);

impl Clock {
    pub(crate) fn std(self, at: Instant) -> std::time::Instant {
        self.0 + at.since(Instant::ZERO).to_std()
    }

    pub(crate) fn ours(self, at: std::time::Instant) -> Instant {
        Instant::ZERO + Duration::from_std(at.saturating_duration_since(self.0))
    }
}
