//! A frame as the ledger sees it: its channel, its count, and where it came in.

use super::position::Place;
use skyhaul_ccsds::continuity::Sign;
use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::frame::VcCount;
use skyhaul_ccsds::id::{Apid, Channel};

/// A good frame that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableFrame {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Its frame count.
    pub count: u64,
    /// Where that wraps.
    pub modulus: Modulus,
    /// Where it came in.
    pub place: Place,
    /// Application and sequence count of the first packet that begins in it, if its frame count is
    /// too short to be unambiguous.
    pub packet: Option<(Apid, u16)>,
}

impl DurableFrame {
    /// What its frame count goes on from.
    pub(super) fn sign(&self) -> Sign {
        Sign {
            count: VcCount { value: self.count, modulus: self.modulus },
            received: self.place.received,
            position: self.place.position,
            packet: self.packet,
        }
    }
}
