//! Blocks that wait go on under other classes, when the operator shares the line otherwise.

use super::queues::Queues;
use super::{Outbox, key_of};
use crate::classes::ClassId;

impl Outbox {
    /// Puts each block into the class that `class` says for its own.
    pub fn reclass(&mut self, class: impl Fn(ClassId) -> ClassId) {
        self.queues = Queues::default();
        for (name, flow) in &mut self.flows {
            for (seq, block) in (flow.first..).zip(&mut flow.blocks) {
                block.block.class = class(block.block.class);
                let pending = block.pending();
                if pending > 0 {
                    self.queues.add(key_of(*name, block), seq, pending);
                }
            }
        }
    }
}
