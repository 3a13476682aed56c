//! Which flows of a session belong to what.
//!
//! A session between two nodes carries contacts, and whatever else goes between them. Contacts have
//! the numbers below
//! [`FIRST_GUEST`], which a station's spool gives, each once. Each service has a range above that:
//! its own number, which is below 2^18, with the highest bit set. The upper half of the own number
//! tells services apart.

use skyhaul_units::FlowId;

/// The first flow number that no contact has.
pub const FIRST_GUEST: FlowId = FlowId(1 << 31);
/// Flows of one service.
const SIZE: u32 = 1 << 16;

/// Where a service's flows lie in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowRange {
    /// The session is the service's own: its numbers are the session's.
    Own,
    /// Forwards: 0x8000_0000 to 0x8000_ffff; their own numbers begin with 0.
    Forwards,
    /// Files: 0x8001_0000 to 0x8001_ffff; their own numbers begin with 0x0001_0000.
    Files,
    /// Streams: 0x8002_0000 to 0x8002_ffff; their own numbers begin with 0x0002_0000.
    Streams,
}

impl FlowRange {
    /// Whose flow of a session that is shared it is; `None` of contacts', and of those that nobody
    /// has.
    pub fn of(flow: FlowId) -> Option<Self> {
        [Self::Forwards, Self::Files, Self::Streams]
            .into_iter()
            .find(|range| range.inner(flow).is_some())
    }

    /// The session's number of a service's own flow; `None` where it is none of the service's.
    pub fn outer(self, own: FlowId) -> Option<FlowId> {
        if self == Self::Own {
            return Some(own);
        }
        let first = self.first().0;
        let place = own.0.checked_sub(first).filter(|place| *place < SIZE)?;
        Some(FlowId(FIRST_GUEST.0 + first + place))
    }

    /// The service's own number of a session's flow; `None` where it is none of the service's.
    pub fn inner(self, outer: FlowId) -> Option<FlowId> {
        if self == Self::Own {
            return Some(outer);
        }
        let first = self.first().0;
        let own = outer.0.checked_sub(FIRST_GUEST.0)?;
        own.checked_sub(first).filter(|place| *place < SIZE)?;
        Some(FlowId(own))
    }

    /// The first of the service's own numbers.
    pub const fn first(self) -> FlowId {
        match self {
            Self::Own | Self::Forwards => FlowId(0),
            Self::Files => FlowId(SIZE),
            Self::Streams => FlowId(2 * SIZE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FlowRange; 3] = [FlowRange::Forwards, FlowRange::Files, FlowRange::Streams];

    #[test]
    fn every_flow_of_a_service_has_one_place_of_its_own_and_comes_back() {
        for (range, outer) in ALL.into_iter().zip([0x8000_0000u32, 0x8001_0000, 0x8002_0000]) {
            for place in [0, 1, 0x7fff, 0xffff] {
                let own = FlowId(outer - (1 << 31) + place);
                let mapped = range.outer(own).unwrap();
                assert_eq!(mapped, FlowId(outer + place));
                assert_eq!(range.inner(mapped), Some(own));
                assert_eq!(FlowRange::of(mapped), Some(range));
            }
        }
    }

    #[test]
    fn what_is_no_flow_of_a_service_is_mapped_nowhere() {
        for flow in [0, 1, 217_000_000, FIRST_GUEST.0 - 1, 0x8003_0000, u32::MAX] {
            assert_eq!(FlowRange::of(FlowId(flow)), None, "{flow:#x}");
        }
        for range in ALL {
            for other in ALL.into_iter().filter(|other| *other != range) {
                let own = other.inner(other.outer(other.first()).unwrap()).unwrap();
                assert_eq!(range.outer(own), None);
                assert_eq!(range.inner(other.outer(own).unwrap()), None);
            }
        }
        assert_eq!(FlowRange::Forwards.outer(FlowId(0x1_0000)), None);
        assert_eq!(FlowRange::Files.outer(FlowId(u32::MAX)), None);
    }

    #[test]
    fn a_session_of_its_own_has_the_numbers_that_the_service_gives() {
        for flow in [0, 1, u32::MAX].map(FlowId) {
            assert_eq!(
                (FlowRange::Own.outer(flow), FlowRange::Own.inner(flow)),
                (Some(flow), Some(flow))
            );
        }
    }
}
