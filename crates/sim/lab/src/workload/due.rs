//! The next block of a stream.

use skyhaul_transport::BlockId;
use skyhaul_units::{ByteCount, Duration, Instant};

/// What is next from a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When it is handed over.
    pub at: Instant,
    /// Its size.
    pub size: ByteCount,
    /// How long it is worth something.
    pub deadline: Option<Duration>,
    /// Whether it depends on the last that stood alone.
    pub depends: bool,
    /// That one, where it was taken.
    pub needs: Option<BlockId>,
}
