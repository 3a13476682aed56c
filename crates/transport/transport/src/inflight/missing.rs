//! What a report says that the far end lacks.

use super::sent::Slice;
use crate::wire::FlowReport;
use skyhaul_units::{FlowId, Seq};
use std::collections::BTreeMap;

/// What the far end lacks of the blocks that it waits for first, each flow's, by a report.
#[derive(Debug)]
pub struct MissingAtFarEnd<'a>(BTreeMap<(FlowId, Seq), &'a FlowReport>);

impl<'a> MissingAtFarEnd<'a> {
    pub fn of(flows: &'a [FlowReport]) -> Self {
        Self(flows.iter().map(|flow| ((flow.flow, Seq(flow.next)), flow)).collect())
    }

    /// Whether it is part of a block that the far end waits for.
    pub fn waits_for(&self, slice: &Slice) -> bool {
        self.0.contains_key(&(slice.flow, slice.seq))
    }

    /// Whether something of it is lacking.
    pub fn lacks(&self, slice: &Slice) -> bool {
        let mut missing =
            self.0.get(&(slice.flow, slice.seq)).into_iter().flat_map(|flow| &flow.missing);
        missing.any(|(start, end)| *start < slice.end && end.is_none_or(|end| end > slice.start))
    }
}
