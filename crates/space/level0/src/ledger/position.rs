//! Where a frame was received, in time and in its input.

use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::Utc;

/// Where a frame came in, for telling what lies between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When its last bit was received.
    pub received: Utc,
    /// Where it stands in the station's input.
    pub position: BitPosition,
}
