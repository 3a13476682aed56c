//! Blocks on their way out over a path without return: nothing is heard of them once they are sent.

use super::Outbox;
use super::fate::PLACE;
use super::outgoing::id;
use crate::block::{BlockId, Outcome};
use skyhaul_units::FlowId;

impl Outbox {
    /// The block was sent to its end, once: its bytes are needed no longer here. The caller tells
    /// when its repair is out too.
    pub fn sent_whole(&mut self, name: BlockId) {
        if self.close(name, Outcome::Sent).is_some() {
            // It closed last.
            self.settled.pop_back();
            self.dependents.remove(&name);
        }
        self.pass_settled(name.flow);
    }

    /// Blocks given up since this was asked last, `most` at once; their places are passed.
    pub fn take_given_up(&mut self, most: usize) -> Vec<BlockId> {
        let names: Vec<BlockId> = self.given_up.keys().take(most).copied().collect();
        for name in &names {
            self.given_up.remove(name);
            self.pass_settled(name.flow);
        }
        names
    }

    /// Whether [`Self::take_given_up`] has something.
    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// The first place of `flow` that is not settled.
    pub fn first_open(&self, flow: FlowId) -> u64 {
        self.flows.get(&flow).map_or(0, |flow| flow.first)
    }

    fn pass_settled(&mut self, name: FlowId) {
        let Some(flow) = self.flows.get_mut(&name) else { return };
        let given_up = &self.given_up;
        let dropped = flow.drop_settled(|seq| given_up.contains_key(&id(name, seq)));
        self.held -= dropped * PLACE;
    }
}
