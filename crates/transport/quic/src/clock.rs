//! Conversion between this program's time and the state machine's clock.

use skyhaul_units::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Maps [`Instant::ZERO`] to a fixed reading of the standard library's clock, which is never read
/// here.
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

/// The time for Retry tokens, which carry the time when they were made.
#[derive(Debug, Default)]
pub(crate) struct TokenClock(AtomicU64);

impl TokenClock {
    pub(crate) fn set(&self, now: Instant) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl noq_proto::TimeSource for TokenClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + core::time::Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
