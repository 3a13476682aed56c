//! Which flows of a station are finished: ranges, because flow numbers ascend and contacts end
//! nearly in order.

use crate::FlowId;
use skyhaul_units::BlockMark;
use skyhaul_units::wire::{ByteReader, ByteWriter};
use std::collections::BTreeMap;

/// Finished flows, as ascending ranges that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Finished {
    ranges: Vec<(u32, u32)>,
    /// The marks of the last block of the newest flows, at most [`MARKED`].
    marks: BTreeMap<FlowId, BlockMark>,
}

/// Finished flows named in a greeting: a week of contacts of a busy station.
const MARKED: usize = 1_024;

/// Holes between finished flows: contacts that never ended. One station would need as many open
/// contacts at once.
pub(super) const MAX_RANGES: usize = 4_096;

impl Finished {
    pub fn contains(&self, flow: FlowId) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < flow.0);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= flow.0)
    }

    /// Adds a flow, whose last block has this mark; `false` if that needs more ranges than allowed.
    #[must_use]
    pub fn insert(&mut self, flow: FlowId, last: BlockMark) -> bool {
        let is_there = self.contains(flow) || self.widen(flow);
        if is_there {
            self.marks.insert(flow, last);
            while self.marks.len() > MARKED {
                self.marks.pop_first();
            }
        }
        is_there
    }

    fn widen(&mut self, flow: FlowId) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < flow.0);
        let touches_before = at > 0 && self.ranges[at - 1].1.checked_add(1) == Some(flow.0);
        let touches_after =
            self.ranges.get(at).is_some_and(|(first, _)| flow.0.checked_add(1) == Some(*first));
        match (touches_before, touches_after) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = flow.0,
            (false, true) => self.ranges[at].0 = flow.0,
            (false, false) if self.ranges.len() >= MAX_RANGES => return false,
            (false, false) => self.ranges.insert(at, (flow.0, flow.0)),
        }
        true
    }

    /// Every flow below this one is finished.
    pub fn prefix_end(&self) -> FlowId {
        match self.ranges.first() {
            Some((0 | 1, last)) => FlowId(last.saturating_add(1)),
            _ => FlowId(0),
        }
    }

    /// The newest finished flows, at most 1,024, with the marks of their last blocks.
    pub fn newest(&self) -> impl Iterator<Item = (FlowId, BlockMark)> {
        self.marks.iter().map(|(flow, last)| (*flow, *last))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut body = ByteWriter::default();
        body.u32(self.ranges.len() as u32);
        for (first, last) in &self.ranges {
            body.u32(*first);
            body.u32(*last);
        }
        for (flow, last) in &self.marks {
            body.u32(flow.0);
            body.u64(last.0);
        }
        body.into_bytes()
    }

    /// Reads the result of `encode`; `None` for other bytes.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let mut finished = Self::default();
        for _ in 0..body.u32()? {
            let (first, last) = (body.u32()?, body.u32()?);
            let before = finished.ranges.last().map(|(_, before)| *before);
            let apart =
                before.is_none_or(|before| before.checked_add(1).is_some_and(|next| next < first));
            if first > last || !apart || finished.ranges.len() >= MAX_RANGES {
                return None;
            }
            finished.ranges.push((first, last));
        }
        while !body.is_empty() {
            let (flow, last) = (FlowId(body.u32()?), BlockMark(body.u64()?));
            let ascends = finished.marks.last_key_value().is_none_or(|(before, _)| *before < flow);
            if !ascends || !finished.contains(flow) || finished.marks.len() >= MARKED {
                return None;
            }
            finished.marks.insert(flow, last);
        }
        Some(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_hold_what_a_set_holds(flows in prop::collection::vec(0u32..40, 0..60)) {
            let mut finished = Finished::default();
            for flow in &flows {
                prop_assert!(finished.insert(FlowId(*flow), BlockMark(u64::from(*flow))));
            }
            let set: BTreeSet<u32> = flows.into_iter().collect();
            for flow in 0..42 {
                prop_assert_eq!(finished.contains(FlowId(flow)), set.contains(&flow));
                let below = flow < finished.prefix_end().0;
                prop_assert!(!below || flow == 0 || set.contains(&flow));
            }
            prop_assert_eq!(Finished::decode(&finished.encode()), Some(finished.clone()));
            let listed: Vec<(u32, u64)> =
                finished.newest().map(|(flow, last)| (flow.0, last.0)).collect();
            let all: Vec<(u32, u64)> = set.into_iter().map(|flow| (flow,
                u64::from(flow))).collect();
            prop_assert_eq!(listed, all);
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(finished) = Finished::decode(&body) {
                prop_assert_eq!(finished.encode(), body);
            }
        }
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut finished = Finished::default();
        let bound = u32::try_from(MAX_RANGES).unwrap();
        for flow in 0..bound {
            assert!(finished.insert(FlowId(flow * 2 + 5), BlockMark(1)));
        }
        assert!(!finished.insert(FlowId(u32::MAX), BlockMark(1)));
        assert!(!finished.contains(FlowId(u32::MAX)));
        assert!(
            finished.insert(FlowId(6), BlockMark(1)),
            "a flow that joins two ranges needs none"
        );
        assert_eq!(finished.newest().count(), MARKED, "the oldest are not named");
        assert_eq!(Finished::decode(&finished.encode()), Some(finished));
    }
}
