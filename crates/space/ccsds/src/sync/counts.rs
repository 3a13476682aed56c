//! Counters of the frame synchroniser.

/// What the synchroniser counted since the contact began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncCounts {
    /// Bits received.
    pub bits: u64,
    /// Frames found, good or not.
    pub frames: u64,
    /// Times that lock was reached.
    pub locks: u64,
    /// Times that lock was lost.
    pub losses: u64,
    /// Frames of inverted polarity.
    pub inverted: u64,
    /// Frames after a bit slip.
    pub slips: u64,
    /// Frames without a marker.
    pub flywheel: u64,
    /// Wrong bits in markers.
    pub marker_errors: u64,
    /// Bits that belong to no frame.
    pub skipped_bits: u64,
    /// Bits dropped because the buffer for identifying an unknown downlink was full.
    pub dropped_bits: u64,
}

impl SyncCounts {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bits: self.bits + other.bits,
            frames: self.frames + other.frames,
            locks: self.locks + other.locks,
            losses: self.losses + other.losses,
            inverted: self.inverted + other.inverted,
            slips: self.slips + other.slips,
            flywheel: self.flywheel + other.flywheel,
            marker_errors: self.marker_errors + other.marker_errors,
            skipped_bits: self.skipped_bits + other.skipped_bits,
            dropped_bits: self.dropped_bits + other.dropped_bits,
        }
    }
}
