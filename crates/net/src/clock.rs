//! The process's clock: where real time enters.

use skyhaul_units::{Duration, Instant, Utc};

/// A monotonic clock that starts at zero, tied to calendar time once, at its start: stamps made from it never go
/// back, even where the system's calendar clock is set while the program runs.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: std::time::Instant,
    utc_at_start: Utc,
}

impl Clock {
    /// Starts at zero now.
    #[allow(clippy::disallowed_methods, reason = "the edge is where clocks are read")]
    pub fn start() -> Self {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let nanos = i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX);
        Self { start: std::time::Instant::now(), utc_at_start: Utc::from_nanos(nanos) }
    }

    /// Time since the start.
    #[allow(clippy::disallowed_methods, reason = "the edge is where clocks are read")]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Calendar time.
    pub fn utc(&self) -> Utc {
        self.utc_of(self.now())
    }

    /// The calendar time of a reading.
    pub fn utc_of(&self, instant: Instant) -> Utc {
        self.utc_at_start + instant.since(Instant::ZERO)
    }

    /// Calendar time at zero.
    pub const fn utc_at_start(&self) -> Utc {
        self.utc_at_start
    }

    /// The standard library's reading at zero, for libraries that use it.
    pub const fn std_start(&self) -> std::time::Instant {
        self.start
    }

    /// How long from now until `due`.
    pub fn until(&self, due: Instant) -> Duration {
        due.since(self.now())
    }
}
