//! The outbox of a path without return, which hears nothing of blocks once they are sent.

use super::Outbox;
use crate::block::{BlockId, Outcome};

impl Outbox {
    /// The block was sent to its end, once: its bytes are no longer needed here. Its outcome is the
    /// caller's to tell, once its FEC repair is sent too.
    pub fn sent_whole(&mut self, id: BlockId) {
        if self.resolve(id, Outcome::Sent).is_some() {
            // The entry that this has just made.
            self.settled.pop_back();
            self.dependents.take(id);
        }
        self.drop_confirmed(id.flow);
    }

    /// Blocks given up since the last call, `most` at once.
    pub fn take_given_up(&mut self, most: usize) -> Vec<BlockId> {
        let ids = self.abandoned.first(most);
        for id in &ids {
            self.abandoned.remove(*id);
            self.drop_confirmed(id.flow);
        }
        ids
    }
}
