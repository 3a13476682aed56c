//! What the spool's state file says, and how.
//!
//! | field | size | what |
//! |---|---|---|
//! | format | u32 | 2^31 + 2 |
//! | next flow, next destination | u32 each | numbers that were not given yet |
//! | destinations | u8 count, then each | number u32, role u8, records and bytes that gave way u64 each, name u8 + bytes |
//! | flows, to the end | each | number u32, next u64, closed u8, settle u8, cursors u8 count |
//! | the cursors of a flow | each | destination u32, custody u64, gone u64 |
//!
//! The format before began with the next flow, which is below 2^31, and knew one destination: it is
//! read, and the file is replaced in one step when the state is written next. A later format is
//! refused.

use super::destinations::{
    Cursor, Cursors, DestinationId, DestinationRole, GaveWay, MAX_DESTINATIONS, NAME_MAX, Settle,
};
use super::table::{
    DestinationTable, End, FLOW_END, Flow, FlowTable, KnownDestination, MAX_LIVE_FLOWS,
};
use crate::format::OtherFormat;
use crate::{FlowId, Seq};
use skyhaul_units::ByteCount;
use skyhaul_units::wire::ByteReader;
use std::collections::BTreeMap;
use std::io;

impl FlowTable {
    pub fn encode(&self) -> Vec<u8> {
        let mut body = FORMAT.to_be_bytes().to_vec();
        body.extend_from_slice(&self.next_flow.to_be_bytes());
        body.extend_from_slice(&self.destinations.next.to_be_bytes());
        body.push(count(self.destinations.list.len()));
        for known in &self.destinations.list {
            body.extend_from_slice(&known.id.0.to_be_bytes());
            body.push(role_code(known.role));
            body.extend_from_slice(&known.gave_way.blocks.to_be_bytes());
            body.extend_from_slice(&known.gave_way.bytes.as_u64().to_be_bytes());
            body.push(count(known.name.len()));
            body.extend_from_slice(known.name.as_bytes());
        }
        for (id, flow) in &self.live {
            let closed = flow.end != End::Open;
            // Records of an open flow may not be durable yet: the log tells what comes next.
            let next = if closed { flow.next } else { flow.cursors.furthest() };
            body.extend_from_slice(&id.0.to_be_bytes());
            body.extend_from_slice(&next.0.to_be_bytes());
            body.push(u8::from(closed));
            body.push(settle_code(flow.cursors.settle));
            body.push(count(flow.cursors.iter().count()));
            for cursor in flow.cursors.iter() {
                body.extend_from_slice(&cursor.to.0.to_be_bytes());
                body.extend_from_slice(&cursor.custody.0.to_be_bytes());
                body.extend_from_slice(&cursor.gone.0.to_be_bytes());
            }
        }
        body
    }

    /// Reads a state file, of this format or the one before.
    ///
    /// # Errors
    /// What is wrong with it: it is of a later version, or no state.
    pub fn decode(body: &[u8]) -> io::Result<Self> {
        let none = || io::Error::new(io::ErrorKind::InvalidData, "not a spool's state");
        let first = ByteReader::new(body).u32().ok_or_else(none)?;
        match first {
            FORMAT => Self::decode_now(body).ok_or_else(none),
            later if later > FORMAT => {
                let [found, known] = [later, FORMAT].map(|format| format - FLOW_END.0);
                Err(OtherFormat { found, known }.into())
            }
            _ => Self::decode_before(body).ok_or_else(none),
        }
    }

    fn decode_now(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let _format = body.u32()?;
        let (next_flow, next) = (body.u32()?, body.u32()?);
        let mut destinations = DestinationTable { list: Vec::new(), next };
        for _ in 0..body.u8()? {
            let (id, role) = (DestinationId(body.u32()?), role(body.u8()?)?);
            let gave_way = GaveWay { blocks: body.u64()?, bytes: ByteCount::new(body.u64()?) };
            let len = usize::from(body.u8()?);
            let name = core::str::from_utf8(body.take(len)?).ok()?.to_owned();
            let is_new = destinations.of(id).is_none() && id.0 < next && len <= NAME_MAX;
            is_new.then(|| {
                let known = KnownDestination { id, name, role, gave_way };
                destinations.list.push(known);
            })?;
        }
        let mut live = BTreeMap::new();
        while !body.is_empty() {
            let (id, next, end) = (FlowId(body.u32()?), Seq(body.u64()?), end(body.u8()?)?);
            let settle = settle(body.u8()?)?;
            let mut list = Vec::new();
            for _ in 0..body.u8()? {
                let to = DestinationId(body.u32()?);
                let (custody, gone) = (Seq(body.u64()?), Seq(body.u64()?));
                let role = destinations.of(to)?.role;
                list.push(Cursor { to, role, custody, gone });
            }
            let flow = Flow { next, cursors: Cursors::new(settle, list), last: None, end };
            live.insert(id, flow);
        }
        let is_sane = live.len() <= MAX_LIVE_FLOWS && destinations.list.len() <= MAX_DESTINATIONS;
        is_sane.then_some(Self { next_flow, destinations, live })
    }

    /// The format before: one destination, which the centre was.
    fn decode_before(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let next_flow = body.u32()?;
        let mut live = BTreeMap::new();
        while !body.is_empty() {
            let (id, next, custody) = (FlowId(body.u32()?), Seq(body.u64()?), Seq(body.u64()?));
            let end = end(body.u8()?)?;
            let cursor =
                Cursor { custody, ..Cursor::new(DestinationId::FIRST, DestinationRole::Counted) };
            let cursors = Cursors::new(Settle::All, [cursor]);
            live.insert(id, Flow { next, cursors, last: None, end });
        }
        let destinations = DestinationTable::first();
        (live.len() <= MAX_LIVE_FLOWS).then_some(Self { next_flow, destinations, live })
    }
}

/// Whether a body is of the format before.
pub(super) fn is_of_before(body: &[u8]) -> bool {
    ByteReader::new(body).u32().is_some_and(|first| first < FLOW_END.0)
}

fn count(count: usize) -> u8 {
    u8::try_from(count).expect("destinations, cursors and names are bounded far below")
}

fn end(code: u8) -> Option<End> {
    match code {
        0 => Some(End::Open),
        1 => Some(End::Closed),
        _ => None,
    }
}

const fn role_code(role: DestinationRole) -> u8 {
    match role {
        DestinationRole::Counted => 0,
        DestinationRole::Shadow => 1,
    }
}

fn role(code: u8) -> Option<DestinationRole> {
    [DestinationRole::Counted, DestinationRole::Shadow]
        .into_iter()
        .find(|known| role_code(*known) == code)
}

const fn settle_code(settle: Settle) -> u8 {
    match settle {
        Settle::All => 0,
        Settle::Any => 1,
        Settle::First => 2,
    }
}

fn settle(code: u8) -> Option<Settle> {
    [Settle::All, Settle::Any, Settle::First].into_iter().find(|known| settle_code(*known) == code)
}

/// Above every flow number, so that no file of the format before begins so.
const FORMAT: u32 = FLOW_END.0 + 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(settle: Settle, cursors: &[(u32, u64)], end: End) -> Flow {
        let list = cursors.iter().map(|(to, custody)| Cursor {
            custody: Seq(*custody),
            gone: Seq(custody / 2),
            ..Cursor::new(
                DestinationId(*to),
                [DestinationRole::Counted, DestinationRole::Shadow][*to as usize],
            )
        });
        Flow { next: Seq(9), cursors: Cursors::new(settle, list), last: None, end }
    }

    fn state() -> FlowTable {
        let mut destinations = DestinationTable::first();
        destinations.list[0].name = "oper".to_owned();
        destinations.list.push(KnownDestination {
            id: DestinationId(1),
            name: "trial".to_owned(),
            role: DestinationRole::Shadow,
            gave_way: GaveWay { blocks: 3, bytes: ByteCount::new(4_000) },
        });
        destinations.next = 7;
        let live = [
            (FlowId(3), flow(Settle::First, &[(1, 2), (0, 4)], End::Closed)),
            (FlowId(5), flow(Settle::Any, &[(0, 7)], End::Open)),
            (FlowId(6), flow(Settle::All, &[], End::Open)),
        ];
        FlowTable { next_flow: 8, destinations, live: live.into_iter().collect() }
    }

    #[test]
    fn the_state_survives_with_every_destination_and_cursor() {
        let state = state();
        let read = FlowTable::decode(&state.encode()).unwrap();
        assert_eq!((read.next_flow, &read.destinations), (8, &state.destinations));
        let cursors = |state: &FlowTable| -> Vec<_> {
            state.live.iter().map(|(id, flow)| (*id, flow.cursors.clone(), flow.end)).collect()
        };
        assert_eq!(cursors(&read), cursors(&state));
        let next: Vec<Seq> = read.live.values().map(|flow| flow.next).collect();
        assert_eq!(next, [Seq(9), Seq(7), Seq(0)], "the log tells of an open flow what comes next");
    }

    #[test]
    fn the_format_before_is_read_as_that_of_the_first_destination() {
        let mut body = 8u32.to_be_bytes().to_vec();
        for (id, next, custody, closed) in [(3u32, 9u64, 4u64, 1u8), (5, 7, 7, 0)] {
            body.extend_from_slice(&id.to_be_bytes());
            body.extend_from_slice(&next.to_be_bytes());
            body.extend_from_slice(&custody.to_be_bytes());
            body.push(closed);
        }
        assert!(is_of_before(&body));
        let read = FlowTable::decode(&body).unwrap();
        assert!(!is_of_before(&read.encode()));
        assert_eq!((read.next_flow, read.destinations), (8, DestinationTable::first()));
        let read: Vec<_> = read
            .live
            .iter()
            .map(|(id, flow)| (id.0, flow.next.0, flow.cursors.furthest().0, flow.end))
            .collect();
        assert_eq!(read, [(3, 9, 4, End::Closed), (5, 7, 7, End::Open)]);
    }

    #[test]
    fn a_later_format_is_refused_with_what_to_do() {
        let mut body = state().encode();
        body[3] += 1;
        let refused = FlowTable::decode(&body).unwrap_err().to_string();
        assert!(refused.starts_with("it has format version 3, this program reads version 2: run"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_state_or_refused(
            head in prop::sample::select(vec![vec![], FORMAT.to_be_bytes().to_vec()]),
            body in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            let body = [head, body].concat();
            if let Ok(state) = FlowTable::decode(&body) {
                prop_assert!(FlowTable::decode(&state.encode()).is_ok());
            }
        }
    }
}
