//! Flow and sequence number of a block: the same in the spool, on the wire and in the store.

/// A series of blocks or records in order, from one source: a contact and channel, a file, a
/// stream. The sending end gives the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

/// A place in a flow, counted from 0 without holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The first place.
    pub const FIRST: Self = Self(0);
    /// Behind every place a flow can have: as the next place of a flow that is wholly done. The
    /// largest number that the wire can carry (62 bits).
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

/// A spool, by a number drawn when it was made. Its flows are counted apart from every other
/// spool's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SpoolId(pub [u8; 16]);

impl SpoolId {
    /// Of an end that sends from no spool.
    pub const NONE: Self = Self([0; 16]);

    /// Its first eight digits: enough for people, and for names.
    pub fn short(self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

/// One opening of a spool. Two that go on from the same copy differ by the number drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SpoolOpening {
    /// How often the spool was opened, with this one.
    pub count: u64,
    /// Drawn when it was opened.
    pub drawn: u64,
}

/// Which spool an end sends from, and which opening of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SpoolIdentity {
    /// The spool.
    pub id: SpoolId,
    /// The opening.
    pub opening: SpoolOpening,
}

/// What tells one block from another that has the same flow and place: CRC-64/NVME of what the
/// spool holds. 0 where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockMark(pub u64);

/// How much of a flow an end has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// The flow.
    pub flow: FlowId,
    /// The first place that it does not have; [`Seq::FINISHED`] where it has all that there will
    /// be.
    pub next: Seq,
    /// Of the last block that it has.
    pub last: BlockMark,
}

impl core::fmt::Display for SpoolId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
