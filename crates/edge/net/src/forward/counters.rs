//! What a forwarder has done, in numbers.

use serde::{Deserialize, Serialize};
use skyhaul_transport::Stats;

/// What a forwarder has done since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Connections, and clients of datagrams, that are there now.
    pub connections: u64,
    /// Applications' connections accepted here, and clients of datagrams.
    pub accepted: u64,
    /// Connections made here for far nodes, and sockets for datagrams.
    pub connected: u64,
    /// Connections that the far end, or this one, did not make.
    pub refused: u64,
    /// Connections that ended by reset, an idle time-out or a lost session.
    pub reset: u64,
    /// Connections that both ends had finished.
    pub finished: u64,
    /// Bytes read from applications.
    pub bytes_sent: u64,
    /// Bytes written to applications.
    pub bytes_received: u64,
    /// Bytes that came and wait for applications to take them.
    pub bytes_waiting: u64,
    /// Datagrams of applications.
    pub datagrams: DatagramCounters,
    /// What the sessions did for all that.
    pub line: SessionCounters,
}

/// Datagrams of applications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounters {
    /// Taken from applications and handed to the line.
    pub sent: u64,
    /// That came, and were given to applications.
    pub received: u64,
    /// Given up because they were late: at this end before they left, or when they came.
    pub late: u64,
    /// Dropped because more waited than leaves in time, because the far node was not there or has
    /// refused, or because a socket took no more.
    pub dropped: u64,
}

/// What sessions did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounters {
    /// Symbols sent, each for the first time.
    pub symbols_sent: u64,
    /// Symbols sent again.
    pub symbols_repeated: u64,
    /// Symbols that repair brought back at this end.
    pub symbols_repaired: u64,
}

impl Counters {
    /// Adds what a session did.
    pub(super) const fn add(&mut self, stats: &Stats) {
        // Nothing else is expendable.
        self.datagrams.late += stats.blocks_given_up + stats.blocks_expired;
        self.line.symbols_sent += stats.symbols_sent;
        self.line.symbols_repeated += stats.symbols_repeated;
        self.line.symbols_repaired += stats.symbols_recovered;
    }
}
