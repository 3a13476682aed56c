//! One stream's two directions: how far each has come, and how far it may go.

use skyhaul_transport::{Block, ClassId};
use skyhaul_units::{Duration, FlowId, Instant};

/// How a stream's blocks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub class: ClassId,
    pub priority: u8,
    pub deadline: Option<Duration>,
}

impl Way {
    /// A block of a stream, in order.
    pub fn block(self, flow: FlowId, bytes: bytes::Bytes) -> Block {
        let Self { class, priority, deadline } = self;
        Block { class, priority, deadline, ..Block::reliable(flow, bytes) }
    }
}

/// A stream.
///
/// ```text
///  opened here:  Asked ── accepted ──► Open ── both directions ended ──► its flow is used again
///                  └── refused, or reset ──────────────────────────────► the same
///  opened there: Asked ── accept ────► Open ── both directions ended ──► gone when all was taken
///                  └── refuse, or reset ───────────────────────────────► gone
/// ```
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub way: Way,
    /// It carries datagrams, and no bytes in order.
    pub datagrams: bool,
    /// Opened here.
    pub ours: bool,
    pub accepted: bool,
    /// Reset at either end: what comes is dropped.
    pub aborted: bool,
    /// Its flow was given back already.
    pub left: bool,
    pub send: Sending,
    pub recv: Receiving,
}

/// Bytes on their way out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sending {
    pub sent: u64,
    pub limit: u64,
    pub ended: bool,
}

/// Bytes on their way in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receiving {
    pub received: u64,
    pub taken: u64,
    pub limit: u64,
    pub window: u64,
    pub ended: bool,
    /// When the limit was last raised.
    pub raised: Instant,
}

impl Receiving {
    pub const fn new(now: Instant, limit: u64, window: u64) -> Self {
        Self { received: 0, taken: 0, limit, window, ended: false, raised: now }
    }

    /// The application has taken `len` bytes more. Whether half of the window is used, and the far
    /// end is to hear of a new limit.
    pub fn taken(&mut self, len: u64) -> bool {
        self.taken = (self.taken + len).min(self.received);
        !self.ended && self.limit - self.taken <= self.window / 2
    }

    /// Raises the limit to a window's length beyond what was taken.
    pub const fn raise(&mut self, now: Instant) {
        self.limit = self.taken + self.window;
        self.raised = now;
    }
}

impl Stream {
    /// Neither end says anything more.
    pub const fn is_over(&self) -> bool {
        self.send.ended && self.recv.ended
    }

    /// Nothing of it is left here either.
    pub const fn is_gone(&self) -> bool {
        self.is_over() && (self.aborted || self.recv.taken == self.recv.received)
    }

    pub const fn credit(&self) -> u64 {
        if self.send.ended { 0 } else { self.send.limit.saturating_sub(self.send.sent) }
    }
}
