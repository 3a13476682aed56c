//! Messages between a lane's thread and the session's thread.

use bytes::Bytes;
use core::net::SocketAddr;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{ConnectionId, ConnectionPurpose, EndpointEvent};
use skyhaul_transport::{Estimate, PathEvent, Token};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A datagram, and the token under which its outcome is reported.
pub(super) type Symbol = (Option<Token>, Bytes);

/// To the lane. Connections have the ids of the session's side.
pub(super) enum ToLane {
    Call {
        id: ConnectionId,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
        gauge: Arc<Gauge>,
    },
    /// At most [`BATCH`].
    Symbols(ConnectionId, Vec<Symbol>),
    Control(ConnectionId, Bytes),
    Close(ConnectionId, String),
    Trust(BTreeSet<Fingerprint>),
    /// Close all connections and end.
    Stop,
    /// Run on the lane's thread.
    #[cfg(test)]
    Do(Box<dyn FnOnce() -> std::io::Result<()> + Send>),
}

/// From the lane.
pub(super) enum FromLane {
    /// A far node has connected; later messages use this id.
    Called(ConnectionId, Arc<Gauge>),
    Event(EndpointEvent),
    /// At most [`BATCH`], in order.
    News(ConnectionId, Vec<PathEvent>),
}

/// The state of a connection that both sides see at any time.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// Datagrams that the session may hand over in all, since the connection began. It may go down
    /// again.
    granted: AtomicU64,
    /// Bytes of the control stream that the connection has taken.
    control_taken: AtomicU64,
    /// The session has used all, and must be woken when there is more.
    wants_more: AtomicBool,
    estimate: Mutex<Estimate>,
}

impl Gauge {
    /// How many datagrams may be handed over after `used`. If there is none, the lane will wake the
    /// session when there is.
    pub fn room(&self, used: u64) -> u64 {
        let room = || self.granted.load(Ordering::SeqCst).saturating_sub(used);
        match room() {
            0 => {
                self.wants_more.store(true, Ordering::SeqCst);
                room()
            }
            room => room,
        }
    }

    /// How many bytes of the control stream may be handed over after `sent`.
    pub fn control_room(&self, sent: u64) -> u64 {
        let room = || {
            CONTROL_MAX
                .saturating_sub(sent.saturating_sub(self.control_taken.load(Ordering::SeqCst)))
        };
        match room() {
            0 => {
                self.wants_more.store(true, Ordering::SeqCst);
                room()
            }
            room => room,
        }
    }

    /// Changes how much may be handed over. Returns whether the session's thread waits for that.
    pub fn grant(&self, granted: u64, control_taken: u64) -> bool {
        let more_room = self.granted.swap(granted, Ordering::SeqCst) < granted;
        let more_control = self.control_taken.swap(control_taken, Ordering::SeqCst) < control_taken;
        (more_room || more_control) && self.wants_more.swap(false, Ordering::SeqCst)
    }

    pub fn estimate(&self) -> Estimate {
        *self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn measured(&self, estimate: Estimate) {
        *self.estimate.lock().unwrap_or_else(PoisonError::into_inner) = estimate;
    }
}

/// Symbols, or news, in a batch: 0.1 ms at 7 Gbit/s, and more than the kernel sends by one call.
pub(super) const BATCH: usize = 64;

/// Bytes of datagrams after which a batch of news is full, which bounds the bytes between the
/// threads.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// Limit of the control stream's bytes between the session and the connection: as many as the
/// connection itself holds.
const CONTROL_MAX: u64 = 256 << 10;

/// Batches on the way to a lane. Its credit also bounds them, to three or four for each busy
/// connection.
pub(super) const TO_LANE: usize = 64;

/// Batches on the way from a lane: 8 MiB at most, 10 ms at 7 Gbit/s. If the session's thread is
/// slower, datagrams wait in the socket, where the far end's rate control sees a queue.
pub(super) const FROM_LANE: usize = 32;
