//! Counters of forwards.

use serde::{Deserialize, Serialize};
use skyhaul_transport::Stats;

/// What forwards have done since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Connections and associations of datagrams that are open now.
    pub connections: u64,
    /// Connections of applications accepted here, and clients of datagrams.
    pub accepted: u64,
    /// Connections made here for far nodes, and sockets for datagrams.
    pub connected: u64,
    /// Connections that the far end, or this one, refused.
    pub refused: u64,
    /// Connections that ended by reset, an idle time-out or a lost session.
    pub reset: u64,
    /// Connections that both ends have finished.
    pub finished: u64,
    /// Bytes read from applications.
    pub bytes_sent: u64,
    /// Bytes written to applications.
    pub bytes_received: u64,
    /// Received bytes that applications have not taken yet.
    pub bytes_waiting: u64,
    /// Datagrams of applications.
    pub datagrams: DatagramCounters,
    /// What the sessions did.
    pub line: SessionCounters,
}

/// Datagrams of applications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounters {
    /// Taken from applications and handed to the session.
    pub sent: u64,
    /// Received and handed to applications.
    pub received: u64,
    /// Given up because their deadline passed, at this end or on arrival; and those whose outcome
    /// was not known when their session ended.
    pub late: u64,
    /// Dropped because more waited than could leave in time, because the far node was not connected
    /// or had refused, because they arrived before or after the association that they belong to, or
    /// because a socket took no more.
    pub dropped: u64,
}

/// What sessions did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounters {
    /// Symbols sent, each for the first time.
    pub symbols_sent: u64,
    /// Symbols sent again.
    pub symbols_repeated: u64,
    /// Symbols that this end recovered by FEC repair.
    pub symbols_repaired: u64,
}

impl Counters {
    /// Adds what a session did.
    pub(super) const fn add(&mut self, stats: &Stats) {
        // Only datagrams are expendable: no other block expires.
        self.datagrams.late += stats.sent.blocks_given_up + stats.received.blocks_expired;
        self.line.symbols_sent += stats.sent.symbols_sent;
        self.line.symbols_repeated += stats.sent.symbols_repeated;
        self.line.symbols_repaired += stats.received.symbols_recovered;
    }
}
