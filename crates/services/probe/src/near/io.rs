//! What the measuring end needs of the world.

use crate::host::HostCounters;
use skyhaul_units::{Instant, Utc};

/// The world of the measuring end: a clock, and a way to and from the far end.
pub trait ProbeIo {
    /// The time.
    fn now(&self) -> Instant;
    /// Calendar time at the zero of the clock.
    fn utc_at_zero(&self) -> Utc;
    /// Hands a datagram to the system.
    ///
    /// # Errors
    /// No program listens at the far address, or the socket failed.
    fn send(&mut self, datagram: &[u8]) -> Result<Handed, LineError>;
    /// The next datagram from the far end and when it came; `None` when nothing came until `until`,
    /// or as soon as that has passed.
    ///
    /// # Errors
    /// No program listens at the far address, the socket failed, or the measurement is to stop.
    fn receive(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, LineError>;
    /// What this host's system counts.
    fn host(&mut self) -> HostCounters;
}

/// What the system did with a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// It took it.
    Taken,
    /// Its buffer was full; the datagram is lost.
    Refused,
    /// It is longer than the interface's packets may be.
    TooLong,
}

/// Why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The far host answered that no program listens there.
    #[error("nobody listens there; start `skyhaul probe serve` at the far end, or give its port")]
    Unreachable,
    /// The user interrupted the measurement.
    #[error("interrupted")]
    Interrupted,
    /// The socket failed.
    #[error("the socket failed ({0}); see whether the network is up")]
    Socket(String),
}
