//! What a lane's thread and the session's thread say to each other.

use bytes::Bytes;
use core::net::SocketAddr;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{ConnectionId, ConnectionPurpose, EndpointEvent};
use skyhaul_transport::{Estimate, PathEvent, Token};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A datagram, and the name under which its fate is told.
pub(super) type Symbol = (Option<Token>, Bytes);

/// To the lane. Connections are named as the session's side knows them.
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
    /// Say farewell and end.
    Stop,
    /// Done on the lane's thread.
    #[cfg(test)]
    Do(Box<dyn FnOnce() -> std::io::Result<()> + Send>),
}

/// From the lane.
pub(super) enum FromLane {
    /// Somebody's call is up; what follows names it so.
    Called(ConnectionId, Arc<Gauge>),
    Event(EndpointEvent),
    /// At most [`BATCH`], in order.
    News(ConnectionId, Vec<PathEvent>),
}

/// What both sides see of a connection at any time.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// Datagrams that the session may have handed over, counted from the connection's beginning.
    /// May go down again.
    granted: AtomicU64,
    /// Bytes of the control stream that the connection has taken.
    control_taken: AtomicU64,
    /// The session has met its bound, and wants to be woken when there is more.
    wants_more: AtomicBool,
    estimate: Mutex<Estimate>,
}

impl Gauge {
    /// What may be handed over, where `used` was already. Asked when there is nothing, the lane
    /// tells of more.
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

    /// Bytes of the control stream that may be handed over, where `sent` were already.
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

    /// Changes what may be handed over. Returns whether the session's thread waits for that.
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

/// Symbols, or news, that go over at a time: 0.1 ms at 7 Gbit/s, and more than the kernel takes as
/// one.
pub(super) const BATCH: usize = 64;

/// Bytes of datagrams after which a batch of news is full: what is under way between the threads is
/// bounded with that.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// Bytes of the control stream on the way to a lane and there, for each connection: as many as the
/// connection itself holds.
const CONTROL_MAX: u64 = 256 << 10;

/// Batches on the way to a lane. The room that it gives bounds them too, to three or four for each
/// connection that is busy.
pub(super) const TO_LANE: usize = 64;

/// Batches on the way from a lane: 8 MiB at most, 10 ms at 7 Gbit/s. A session's thread that is
/// slower than that lets datagrams wait in the socket, where the far end's rate control sees a
/// queue.
pub(super) const FROM_LANE: usize = 32;
