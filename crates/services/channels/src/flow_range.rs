//! Which flows of a session belong to which service.
//!
//! Contacts have the numbers below [`FIRST_GUEST`]; a station's spool gives each number once. Each
//! service has a range above that: its own number, which is below 2^18, with the highest bit set.
//! The upper half of the own number is that of the service.

use skyhaul_units::FlowId;

/// The first flow number that no contact has.
pub const FIRST_GUEST: FlowId = FlowId(1 << 31);
/// Flows of one service.
const SIZE: u32 = 1 << 16;

/// The range of a service's flows in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowRange {
    /// The service has the session alone: its numbers are the session's.
    Own,
    /// Forwards: 0x8000_0000 to 0x8000_ffff; their own numbers begin with 0.
    Forwards,
    /// Files: 0x8001_0000 to 0x8001_ffff; their own numbers begin with 0x0001_0000.
    Files,
    /// Streams: 0x8002_0000 to 0x8002_ffff; their own numbers begin with 0x0002_0000.
    Streams,
    /// Blocks of programs: 0x8003_0000 to 0x8003_ffff; their own numbers begin with 0x0003_0000.
    Blocks,
}

impl FlowRange {
    /// The service of a flow of a shared session; `None` for contacts, and for numbers without a
    /// service.
    pub fn of(flow: FlowId) -> Option<Self> {
        [Self::Forwards, Self::Files, Self::Streams, Self::Blocks]
            .into_iter()
            .find(|range| range.inner(flow).is_some())
    }

    /// The session's number of a service's own flow; `None` if it is not one of the service.
    pub fn outer(self, own: FlowId) -> Option<FlowId> {
        if self == Self::Own {
            return Some(own);
        }
        let first = self.first().0;
        let place = own.0.checked_sub(first).filter(|place| *place < SIZE)?;
        Some(FlowId(FIRST_GUEST.0 + first + place))
    }

    /// The service's own number of a session's flow; `None` if it is not one of the service.
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
            Self::Blocks => FlowId(3 * SIZE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FlowRange; 4] =
        [FlowRange::Forwards, FlowRange::Files, FlowRange::Streams, FlowRange::Blocks];

    #[test]
    fn every_flow_of_a_service_has_one_number_in_the_session_and_back() {
        let firsts = [0x8000_0000u32, 0x8001_0000, 0x8002_0000, 0x8003_0000];
        for (range, outer) in ALL.into_iter().zip(firsts) {
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
    fn other_flows_are_mapped_nowhere() {
        for flow in [0, 1, 217_000_000, FIRST_GUEST.0 - 1, 0x8004_0000, u32::MAX] {
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
    fn a_service_alone_on_a_session_keeps_its_numbers() {
        for flow in [0, 1, u32::MAX].map(FlowId) {
            assert_eq!(
                (FlowRange::Own.outer(flow), FlowRange::Own.inner(flow)),
                (Some(flow), Some(flow))
            );
        }
    }
}
