//! The session's counters.

/// The counters of a session since it began. Counters only grow; fields marked as gauges do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// This end's blocks, and the symbols that they are cut into.
    pub sent: SentStats,
    /// The far end's.
    pub received: ReceivedStats,
    /// Bytes of blocks, datagrams and book-keeping held (gauge). It is never above
    /// [`crate::SessionConfig::memory_max`].
    pub memory: u64,
}

/// What a session has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentStats {
    /// Blocks taken from the application.
    pub blocks_taken: u64,
    /// Blocks that the far end reported whole.
    pub blocks_reported: u64,
    /// Bytes of blocks that the far end reported whole.
    pub bytes_reported: u64,
    /// Blocks that expired at this end.
    pub blocks_given_up: u64,
    /// Blocks that the application cancelled.
    pub blocks_cancelled: u64,
    /// Symbols sent for the first time.
    pub symbols_sent: u64,
    /// Retransmissions of symbols.
    pub symbols_repeated: u64,
    /// Symbols that the path reported as lost.
    pub symbols_lost: u64,
    /// Symbols retransmitted because no acknowledgement came in time.
    pub symbols_overdue: u64,
    /// Symbols that the path acknowledged, but that a report of the far end lacked.
    pub symbols_denied: u64,
    /// Cost of blocks held for sending (gauge), in bytes.
    pub buffer: u64,
}

/// What a session has received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceivedStats {
    /// Blocks of which at least one symbol arrived.
    pub blocks_seen: u64,
    /// Blocks delivered without a retransmission or FEC repair.
    pub blocks_delivered: u64,
    /// Blocks delivered after a retransmission or FEC repair.
    pub blocks_repaired: u64,
    /// Blocks that expired here, or that the far end gave up, after a symbol had arrived.
    pub blocks_expired: u64,
    /// Bytes of delivered blocks.
    pub bytes_delivered: u64,
    /// Blocks in reassembly (gauge).
    pub blocks_in_flight: u64,
    /// Symbols that arrived.
    pub symbols_received: u64,
    /// Symbols recovered by FEC.
    pub symbols_recovered: u64,
    /// Symbols of blocks that had expired.
    pub symbols_late: u64,
    /// Symbols that had arrived before.
    pub symbols_duplicate: u64,
    /// Datagrams that could not be decoded, or that contradicted earlier ones.
    pub malformed: u64,
    /// Symbols beyond the flow-control limit, ignored.
    pub over_limit: u64,
    /// What blocks hold of this end's window (gauge), in bytes: those under way, and those that the
    /// application has not released.
    pub buffer: u64,
    /// This end's window (gauge), in bytes: what blocks may hold of memory at most.
    pub window: u64,
}

impl Stats {
    /// Whether each block that was seen has one outcome; see [`ReceivedStats::balances`].
    pub const fn balances(&self) -> bool {
        self.received.balances()
    }
}

impl ReceivedStats {
    /// `received = delivered + repaired + expired + set aside + in flight`; a session sets nothing
    /// aside.
    pub const fn balances(&self) -> bool {
        self.blocks_seen
            == self.blocks_delivered
                + self.blocks_repaired
                + self.blocks_expired
                + self.blocks_in_flight
    }
}
