//! Flow control: how much of the blocks begun the far end takes (compare MAX_DATA of RFC 9000 4.1).

#[derive(Debug, Default)]
pub struct SendWindow {
    /// Cost of the blocks begun in this session.
    begun: u64,
    /// The largest value that the far end allows for [`Self::begun`].
    limit: u64,
}

impl SendWindow {
    /// The far end takes blocks up to this total cost. A limit once given is never withdrawn.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    pub const fn has_room(&self, cost: u64) -> bool {
        self.begun + cost <= self.limit
    }

    /// The first symbol of a block is sent.
    pub const fn begin(&mut self, cost: u64) {
        self.begun += cost;
    }

    /// A block that was begun turns out to be one that the far end counts nothing for.
    pub const fn refund(&mut self, cost: u64) {
        self.begun -= cost;
    }
}
