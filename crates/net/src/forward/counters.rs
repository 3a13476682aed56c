//! What a forwarder has done, in numbers.

use serde::Serialize;

/// What a forwarder has done since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that are there now.
    pub connections: u64,
    /// Applications' connections accepted here.
    pub accepted: u64,
    /// Connections made here for far nodes.
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
}
