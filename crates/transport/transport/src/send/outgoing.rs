//! One block that the sender holds, and the symbols cut from it.

use super::progress::Progress;
use super::queues::QueueKey;
use crate::block::{Block, BlockId, Mode, cost};
use crate::inflight::Slice;
use crate::schedule::{Candidate, Followers};
use crate::wire::{Head, SymbolHeader};
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq, Utc};

/// A block taken from the application.
#[derive(Debug)]
pub struct OutgoingBlock {
    /// Without its bytes once its outcome is known.
    pub block: Block,
    pub len: u32,
    /// Cost of the flow's blocks before it, since the flow's first.
    pub start: u64,
    /// The order in which blocks were taken, over all flows.
    pub order: u64,
    /// The block of its flow behind which it waits in a queue of its own.
    pub after: Option<u64>,
    pub taken: Instant,
    pub deadline: Option<Instant>,
    /// When to check whether it is late.
    pub check_at: Option<Instant>,
    pub stage: BlockStage,
    pub progress: Progress,
    first_sent: Option<Utc>,
}

/// How far a block has come. From [`BlockStage::Begun`] on it counts against the far end's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStage {
    /// Nothing of it was sent.
    Waiting,
    Begun,
    /// Its outcome is known.
    Resolved,
}

/// Whether bytes are sent for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// They are, or another path sends them at the same time.
    First,
    Retransmission,
}

/// A symbol to send.
#[derive(Debug)]
pub struct Outsymbol {
    pub header: SymbolHeader,
    pub bytes: Bytes,
    pub slice: Slice,
    pub deadline: Option<Instant>,
    pub redundant: bool,
    /// Of a retransmission: how often the symbol was sent before.
    pub sends: Option<u8>,
    /// It was lost on another path, or may be lost there.
    pub rerouted: bool,
    /// It is covered by FEC repair, which must be sent by then, where the block has a deadline.
    pub protection: Option<Option<Instant>>,
}

/// Fields of a symbol's header that do not come from its block: the time by both clocks, the
/// one-way delay of the path, and the base from which flows count.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub now: Instant,
    pub utc: Utc,
    pub flight: Duration,
    pub flow_base: FlowId,
}

impl OutgoingBlock {
    pub fn new(now: Instant, block: Block, start: u64, order: u64) -> Self {
        let deadline = block.deadline.map(|span| now + span);
        Self {
            len: block.bytes.len() as u32,
            block,
            start,
            order,
            after: None,
            taken: now,
            deadline,
            check_at: None,
            stage: BlockStage::Waiting,
            progress: Progress::default(),
            first_sent: None,
        }
    }

    pub fn cost(&self) -> u64 {
        cost(self.len as usize)
    }

    pub fn is_open(&self) -> bool {
        self.stage != BlockStage::Resolved
    }

    pub fn is_expendable(&self) -> bool {
        self.block.mode == Mode::Expendable
    }

    /// Bytes to send now.
    pub fn pending(&self) -> u64 {
        if self.is_open() { self.progress.pending(self.len) } else { 0 }
    }

    /// The queue in which it waits.
    pub const fn queue_key(&self) -> QueueKey {
        let Block { class, priority, flow, .. } = self.block;
        QueueKey { class, priority, flow, after: self.after }
    }

    /// Whether all of it was sent at least once.
    pub const fn is_sent_whole(&self) -> bool {
        self.progress.sent == self.len
    }

    /// Whether it is useless when it arrives at `at`.
    pub fn is_late(&self, at: Instant) -> bool {
        self.is_expendable() && self.deadline.is_some_and(|deadline| at > deadline)
    }

    /// Everything was sent, and the paths say that all of it has arrived.
    pub fn is_claimed(&self) -> bool {
        self.is_open() && self.is_sent_whole() && self.progress.arrived.contains(0, self.len)
    }

    /// Whether it is open, and the bytes from `start` to `end` have not arrived whole.
    pub fn needs(&self, start: u32, end: u32) -> bool {
        self.is_open() && !self.progress.arrived.contains(start, end)
    }

    /// One transmission of the bytes from `start` to `end` was lost. Returns the part of them that
    /// must be retransmitted; `soonest` is when it could arrive.
    pub fn lost(&mut self, start: u32, end: u32, soonest: Instant) -> Option<(u32, u32)> {
        if !self.needs(start, end) {
            return None;
        }
        self.progress.attempts.lost(start, end).filter(|_| !self.is_late(soonest))
    }

    /// Its outcome is known: its bytes are no longer needed.
    pub fn resolve(&mut self) {
        self.stage = BlockStage::Resolved;
        self.block.bytes = Bytes::new();
        self.progress.clear();
    }

    /// What scheduling has to know of it.
    pub fn candidate(&self) -> Candidate {
        Candidate {
            size: ByteCount::new(self.len.into()),
            unsent: ByteCount::new(self.pending()),
            priority: self.block.priority,
            deadline: self.deadline,
            taken: self.taken,
            order: self.order,
            started: self.stage == BlockStage::Begun,
            followers: Followers::default(),
        }
    }

    /// The next symbol of at most `payload` bytes: lost bytes first, then bytes never sent.
    pub fn next(&mut self, id: BlockId, payload: usize, at: Now) -> Option<Outsymbol> {
        if let Some((start, end)) = self.progress.retransmit.first() {
            let slice = Slice { flow: id.flow, seq: id.seq, start, end };
            let mut symbol = self.cut(slice, payload, Sending::Retransmission, at);
            symbol.sends = Some(self.progress.attempts.so_far(start));
            self.progress.retransmit.remove(symbol.slice.start, symbol.slice.end);
            return Some(symbol);
        }
        if self.is_sent_whole() {
            return None;
        }
        let start = self.progress.sent;
        let rest = Slice { flow: id.flow, seq: id.seq, start, end: self.len };
        let symbol = self.cut(rest, payload, Sending::First, at);
        self.progress.sent = symbol.slice.end;
        Some(symbol)
    }

    /// The part of `slice`, from its start, that fits into one datagram of `payload` bytes.
    pub fn cut(&mut self, slice: Slice, payload: usize, sending: Sending, at: Now) -> Outsymbol {
        let life = self
            .deadline
            .filter(|_| self.is_expendable())
            .map(|deadline| deadline.since(at.now + at.flight));
        let head =
            (slice.start == 0).then(|| Head { sent: *self.first_sent.get_or_insert(at.utc), life });
        let mut header = SymbolHeader {
            // A flow below the base wraps to a large number on the wire, which makes the header
            // longer: the slice must leave room for that.
            flow: relative(slice.flow, at.flow_base),
            seq_low: (slice.seq.0 & 0xff_ffff) as u32,
            offset: slice.start,
            fin: false,
            repeated: sending == Sending::Retransmission,
            head,
        };
        let room = payload.saturating_sub(header.len()).max(1) as u32;
        let end = slice.end.min(slice.start.saturating_add(room));
        header.fin = end == self.len;
        let bytes = self.block.bytes.slice(slice.start as usize..end as usize);
        let (deadline, redundant) = (self.deadline, self.block.redundant);
        let slice = Slice { end, ..slice };
        Outsymbol {
            header,
            bytes,
            slice,
            deadline,
            redundant,
            sends: None,
            rerouted: false,
            protection: None,
        }
    }
}

/// A flow's distance from the base.
pub const fn relative(flow: FlowId, base: FlowId) -> FlowId {
    FlowId(flow.0.wrapping_sub(base.0))
}

pub const fn id(flow: FlowId, seq: u64) -> BlockId {
    BlockId { flow, seq: Seq(seq) }
}

/// The block that a slice is of.
pub const fn block_of(slice: &Slice) -> BlockId {
    BlockId { flow: slice.flow, seq: slice.seq }
}
