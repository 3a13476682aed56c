//! Whether a waiting block may be sent: the far end must have room for it, and what it depends on
//! must be sent.

use super::flow::OutgoingFlow;
use super::flows::OutgoingFlows;
use super::outgoing::{BlockStage, OutgoingBlock};
use super::queues::Queues;
use super::window::SendWindow;

#[derive(Clone, Copy)]
pub struct Eligibility<'a> {
    pub flows: &'a OutgoingFlows,
    pub window: &'a SendWindow,
}

impl Eligibility<'_> {
    /// Whether blocks wait only because the far end takes no more now.
    pub fn is_held_back(&self, queues: &Queues) -> bool {
        let mut any = false;
        for (_, id) in queues.heads() {
            any = true;
            if let Some(flow) = self.flows.get(id.flow)
                && let Some(block) = flow.block(id.seq.0)
                && self.may_begin(flow, id.seq.0, block)
            {
                return false;
            }
        }
        any
    }

    /// Whether the far end has room for `block`. A reliable block is delivered after those before
    /// it in its flow, and keeps its room until then: they must find room as well, and so must the
    /// blocks of other flows on which they depend. Otherwise the two ends would wait for each other
    /// for ever.
    pub fn may_begin(&self, flow: &OutgoingFlow, seq: u64, block: &OutgoingBlock) -> bool {
        if block.stage == BlockStage::Begun {
            return true;
        }
        let mut ahead = 0;
        if seq > flow.unbegun && !block.is_expendable() {
            ahead = flow.block(flow.unbegun).map_or(0, |unbegun| block.start - unbegun.start);
            let waits =
                |seq: &u64| flow.block(*seq).is_some_and(|block| self.waits_for_unbegun(block));
            if flow.foreign.range(flow.unbegun..seq).any(waits) {
                return false;
            }
        }
        self.window.has_room(ahead + block.cost())
    }

    fn waits_for_unbegun(&self, block: &OutgoingBlock) -> bool {
        let needed = block.block.depends_on.filter(|_| block.stage == BlockStage::Waiting);
        needed
            .and_then(|needed| self.flows.block(needed))
            .is_some_and(|needed| needed.stage == BlockStage::Waiting)
    }

    /// Whether the block on which this one depends was sent whole, or is resolved: before that this
    /// one would take room from it.
    pub fn may_follow(&self, block: &OutgoingBlock) -> bool {
        let needed = block.block.depends_on.and_then(|needed| self.flows.block(needed));
        needed.is_none_or(|needed| !needed.is_open() || needed.is_sent_whole())
    }
}
