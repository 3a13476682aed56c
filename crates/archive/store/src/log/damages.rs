//! Damage of durable data, for counters and for status.

use super::LogStats;
use skyhaul_units::ByteCount;
use std::collections::VecDeque;

/// A stretch of durable data that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// What became of it.
    pub fate: DamageFate,
    /// The segment's file.
    pub file: String,
    /// Where it begins.
    pub offset: ByteCount,
    /// The distance to the next valid record.
    pub length: ByteCount,
}

/// What became of damaged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageFate {
    /// It was restored from its parity: nothing is lost.
    Mended,
    /// It was skipped: its data is lost.
    SteppedOver,
}

impl core::fmt::Display for DamagedRange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (offset, length) = (self.offset.as_u64(), self.length.as_u64());
        let fate = match self.fate {
            DamageFate::Mended => "had damage that was repaired, no data is lost",
            DamageFate::SteppedOver => "are damaged and were skipped",
        };
        write!(f, "{}: {length} bytes at offset {offset} {fate}; check the disk", self.file)
    }
}

/// The newest damages, each once.
#[derive(Debug, Default)]
pub(super) struct Damages(VecDeque<DamagedRange>);

impl Damages {
    /// Oldest first.
    pub fn newest(&self) -> impl Iterator<Item = &DamagedRange> {
        self.0.iter()
    }

    /// Counts a damage that was not found before.
    pub fn note(&mut self, damage: DamagedRange, stats: &mut LogStats) {
        // Damage found when the log was opened is found again when it is read.
        if self.0.contains(&damage) {
            return;
        }
        match damage.fate {
            DamageFate::Mended => stats.mended += 1,
            DamageFate::SteppedOver => {
                stats.damages += 1;
                stats.damaged += damage.length;
            }
        }
        if self.0.len() == DAMAGES_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(damage);
    }
}

/// Most damages kept for status output. For a disk with more of them a longer list is no help.
const DAMAGES_KEPT: usize = 16;
