//! The selection of packets.

use skyhaul_ccsds::mission::ApidRange;
use skyhaul_ccsds::packet::Header;
use skyhaul_units::Utc;

/// Which packets are wanted: those that fit everything that is given.
pub struct PacketSelection {
    /// Applications; none: all.
    pub apids: Vec<ApidRange>,
    /// The earliest time.
    pub from: Option<Utc>,
    /// The time that all packets come before.
    pub to: Option<Utc>,
}

impl PacketSelection {
    /// Whether packets are wanted by their times.
    pub fn needs_times(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Whether everything is wanted.
    pub fn is_all(&self) -> bool {
        self.apids.is_empty() && !self.needs_times()
    }

    /// Whether a packet with this header and time is selected. A packet without a time is not, if
    /// times are selected.
    pub fn covers(&self, header: &Header, time: Option<Utc>) -> bool {
        let apid = match header {
            _ if self.apids.is_empty() => true,
            Header::Space(header) => self.apids.iter().any(|range| range.contains(header.apid)),
            Header::Encapsulation(_) => false,
        };
        let from = self.from.is_none_or(|from| time.is_some_and(|time| time >= from));
        let to = self.to.is_none_or(|to| time.is_some_and(|time| time < to));
        apid && from && to
    }
}
