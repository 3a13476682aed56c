//! The events that the synchroniser reports.

use crate::quality::BitPosition;
use skyhaul_units::Utc;

/// What the synchroniser reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncEvent<T> {
    /// Lock was reached at this place.
    Locked(BitPosition),
    /// A block was found.
    Found(Found<T>),
    /// Lock was lost; the last frame ended here.
    Lost(BitPosition),
}

/// A block that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// Where its marker begins.
    pub position: BitPosition,
    /// When its last bit came.
    pub received: Utc,
    /// Wrong bits in the marker.
    pub marker_errors: u8,
    /// The bits came inverted.
    pub inverted: bool,
    /// Bits by which the marker came later than it was due.
    pub slip: i8,
    /// There was no marker.
    pub flywheel: bool,
    /// What the judge said.
    pub opinion: T,
}
