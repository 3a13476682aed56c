//! Which flows and numbers streams have.

use super::{Role, STREAMS_MAX, StreamId};
use skyhaul_units::FlowId;
use std::collections::BTreeSet;

/// The flows of this end's streams.
#[derive(Debug)]
pub(super) struct Flows {
    role: Role,
    /// Flows that were used, and may be used again.
    free: BTreeSet<FlowId>,
    /// Flows ever used.
    used: u32,
    last_number: u32,
}

impl Flows {
    pub const fn new(role: Role) -> Self {
        Self { role, free: BTreeSet::new(), used: 0, last_number: 0 }
    }

    /// A stream on the lowest free flow: few flows are few states in the session. `None` where all
    /// are in use.
    pub fn next(&mut self) -> Option<StreamId> {
        let flow = match self.free.pop_first() {
            Some(flow) => flow,
            None => self.unused()?,
        };
        self.last_number = self.last_number.wrapping_add(1);
        Some(StreamId { flow, number: self.last_number })
    }

    fn unused(&mut self) -> Option<FlowId> {
        let index = Some(self.used).filter(|used| *used < STREAMS_MAX)?;
        self.used += 1;
        let first = if self.role == Role::Calling { 1 } else { 2 };
        Some(FlowId(2 * index + first))
    }

    /// The flow may be used again.
    pub fn give_back(&mut self, flow: FlowId) {
        self.free.insert(flow);
    }

    /// Whether the far end may open a stream on this flow.
    pub fn is_theirs(&self, flow: FlowId) -> bool {
        let is_odd = flow.0 % 2 == 1;
        flow.0 > 0 && flow.0 <= 2 * STREAMS_MAX && is_odd == (self.role == Role::Called)
    }
}
