//! What a record belongs to.

/// A series of records in order: one a contact and channel. Numbers are given by the station's spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

/// A record's place in its flow, counted from 0 without holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The first place.
    pub const FIRST: Self = Self(0);
    /// Behind every place a flow can have: as the next place of a flow that is wholly done. The largest
    /// number that the wire can carry (62 bits).
    pub const FINISHED: Self = Self((1 << 62) - 1);

    /// The place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number of places from `first` up to this one, zero where it lies behind.
    pub const fn count_from(self, first: Self) -> u64 {
        self.0.saturating_sub(first.0)
    }
}

impl core::fmt::Display for FlowId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}
impl core::fmt::Display for Seq {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}
