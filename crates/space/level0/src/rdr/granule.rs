//! Begin times and names of granules.

use super::iet::Iet;
use skyhaul_units::Duration;

/// A stretch of time that makes a granule: [start, end).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct GranuleSpan {
    /// Its first microsecond.
    pub start: Iet,
    /// The first microsecond after it.
    pub end: Iet,
}

impl GranuleSpan {
    /// The granule of `time`: granules of `length` follow each other from `base` on. `None` before
    /// that, and for granules without length.
    pub fn of(time: Iet, length: Duration, base: Iet) -> Option<Self> {
        let (length, base) = (length.as_micros(), base.as_micros());
        let whole = time.as_micros().checked_sub(base)?.checked_div(length)? * length;
        let start = base + whole;
        Some(Self {
            start: Iet::from_micros(start),
            end: Iet::from_micros(start.checked_add(length)?),
        })
    }
    /// Whether the two have time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Name of a granule: the spacecraft and tenths of a second since the base time, 12 digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct GranuleId(String);

impl GranuleId {
    /// The granule of the spacecraft `short_name` (NPP, J01) that begins at `start`, counted from
    /// `base`.
    pub fn new(short_name: &str, start: Iet, base: Iet) -> Self {
        Self(format!("{short_name}{:012}", start.since(base).as_micros() / 100_000))
    }
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
