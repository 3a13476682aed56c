//! The line that a host is to fill.

use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// A line, as far as the settings of its ends depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLine {
    /// Of the narrowest part.
    pub rate: Rate,
    /// There and back, without queues.
    pub round_trip: Duration,
    /// The part of the packets that is lost, each by chance.
    pub loss: Probability,
}

impl HostLine {
    /// What is under way when the line is full and the first of it is acknowledged: rate times
    /// round trip.
    pub fn in_flight(&self) -> ByteCount {
        self.rate * self.round_trip
    }
}
