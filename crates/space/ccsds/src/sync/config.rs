//! The thresholds at which the synchroniser accepts a marker.

use skyhaul_coding::marker::{Finder, Marker};

/// When the synchroniser accepts a marker. The false-alarm figures are for random bits, both
/// polarities, and markers of 32 bits; those of 64 bits have thresholds of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncConfig {
    /// Wrong bits allowed in a marker that is searched for, at most [`Finder::MAX_ERRORS`]. Default
    /// 1: a false candidate every 65 million bits, each of which costs at most one decoding.
    pub search_errors: u8,
    /// Wrong bits allowed in the markers that prove a candidate, and in one with a slip or another
    /// polarity. Default 2: a chance hit once in four million times.
    pub check_errors: u8,
    /// Wrong bits allowed in a marker where one is due. Default 6: a chance hit once in 2000 times,
    /// at a position that is already likely.
    pub lock_errors: u8,
    /// Markers that must follow a candidate at the block's distance if error control cannot prove
    /// it. Default 1: together with the candidate, false once in 10^14 bits.
    pub check_frames: u8,
    /// Blocks without a marker after which lock is lost. Default 4: 2 ms at 15 Mbit/s.
    pub flywheel_frames: u8,
    /// Bits by which a marker may come early or late and still be the one that is due. Default 2:
    /// what bit synchronisers usually slip; a longer slip is found by searching again.
    pub slip_bits: u8,
}

impl SyncConfig {
    /// The same for a marker. A 64-bit marker may have more wrong bits and still has fewer false
    /// alarms; its codes work with one bit in eight wrong. A chance hit occurs once in 10^10 bits.
    pub(super) const fn of(self, marker: Marker) -> Self {
        match marker {
            Marker::Bits32(_) => self,
            Marker::Bits64(_) => Self {
                search_errors: LONG_SEARCH_ERRORS,
                check_errors: LONG_CHECK_ERRORS,
                lock_errors: LONG_LOCK_ERRORS,
                ..self
            },
        }
    }
}

/// The thresholds for markers of 64 bits, which do not depend on those configured for 32 bits.
const LONG_SEARCH_ERRORS: u8 = Finder::MAX_ERRORS as u8;
const LONG_CHECK_ERRORS: u8 = 13;
const LONG_LOCK_ERRORS: u8 = 18;

impl Default for SyncConfig {
    fn default() -> Self {
        Self {
            search_errors: 1,
            check_errors: 2,
            lock_errors: 6,
            check_frames: 1,
            flywheel_frames: 4,
            slip_bits: 2,
        }
    }
}
