//! The free space of a store: its own limit, and the reserve of the file system.

use crate::disk::Disk;
use skyhaul_units::ByteCount;
use std::sync::Arc;

/// The space that a store shares with other programs.
#[derive(Debug)]
pub(crate) struct Room {
    pub disk: Arc<dyn Disk>,
    /// What the store may fill.
    pub max_size: ByteCount,
    /// The space that stays free on the file system.
    pub reserve: ByteCount,
}

/// A write that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub needed: ByteCount,
    pub available: ByteCount,
    pub reserve: ByteCount,
}

impl Room {
    /// The bytes that may still be written if the store uses `used`.
    pub fn available(&self, used: ByteCount) -> ByteCount {
        // If the disk does not report its free space, the append finds out.
        let free =
            self.disk.free_space().map_or(ByteCount::new(u64::MAX), |free| free - self.reserve);
        free.min(self.max_size - used)
    }

    /// Why `needed` bytes cannot be written.
    pub fn shortage(&self, needed: ByteCount, used: ByteCount) -> Shortage {
        Shortage { needed, available: self.available(used), reserve: self.reserve }
    }
}
