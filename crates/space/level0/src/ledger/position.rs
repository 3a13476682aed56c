//! Where a frame was received, in time and in its input.

use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::Utc;

/// The time and the position at which a frame was received, to determine what is between two
/// frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When its last bit was received.
    pub received: Utc,
    /// Its position in the station's input.
    pub position: BitPosition,
}
