//! One block on its way out.

use super::repeats::Repeats;
use crate::block::{Block, BlockId, Mode, Outcome, cost};
use crate::inflight::Slice;
use crate::ranges::RangeSet;
use crate::wire::{Head, SymbolHeader};
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq, Utc};

/// A block taken from the application.
#[derive(Debug)]
pub struct OutgoingBlock {
    /// Without its bytes once its fate is known.
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
    /// Bytes sent at least once, from the start.
    pub sent: u32,
    /// From here on its symbols were cut for coding, as the end of a transfer.
    pub coded_from: Option<u32>,
    /// What has to be sent again.
    pub again: RangeSet,
    first_sent: Option<Utc>,
    pub repeats: Repeats,
    /// What the path said has arrived, or repair stood for.
    pub arrived: RangeSet,
    /// When the path last claimed something new.
    pub last_arrival: Instant,
    pub probed: Instant,
    pub begun: bool,
    /// When to look whether it is late.
    pub look: Option<Instant>,
    /// What became of it, once that is known here.
    pub outcome: Option<Outcome>,
}

/// A symbol to send.
#[derive(Debug)]
pub struct Outsymbol {
    pub header: SymbolHeader,
    pub bytes: Bytes,
    pub slice: Slice,
    pub deadline: Option<Instant>,
    pub redundant: bool,
    /// It was lost and is sent again: how often it was sent before.
    pub sends: Option<u8>,
    /// It goes where another path brought it not, or may not bring it.
    pub rerouted: bool,
    /// It is to be coded, and by when its repair must have left, where it has a deadline.
    pub protection: Option<Option<Instant>>,
}

/// What is put into a header besides what is known of its block: the time, by both clocks, how long
/// it will be under way, and from where flows count.
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
            sent: 0,
            coded_from: None,
            again: RangeSet::default(),
            repeats: Repeats::default(),
            first_sent: None,
            arrived: RangeSet::default(),
            last_arrival: Instant::ZERO,
            probed: Instant::ZERO,
            begun: false,
            look: None,
            outcome: None,
        }
    }

    pub fn cost(&self) -> u64 {
        cost(self.len as usize)
    }

    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    pub fn is_expendable(&self) -> bool {
        self.block.mode == Mode::Expendable
    }

    /// Bytes to send now.
    pub fn pending(&self) -> u64 {
        if self.is_open() { u64::from(self.len - self.sent) + self.again.total() } else { 0 }
    }

    /// Whether what arrives at `at` is worth nothing.
    pub fn is_late(&self, at: Instant) -> bool {
        self.is_expendable() && self.deadline.is_some_and(|deadline| at > deadline)
    }

    /// Everything was sent, and the paths say that all of it has arrived.
    pub fn is_claimed(&self) -> bool {
        self.is_open() && self.sent == self.len && self.arrived.contains(0, self.len)
    }

    /// Its fate is known: the bytes are needed no longer.
    pub fn settle(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.block.bytes = Bytes::new();
        self.again = RangeSet::default();
        self.repeats = Repeats::default();
        self.arrived = RangeSet::default();
    }

    /// What scheduling has to know of it.
    pub fn candidate(&self) -> crate::schedule::Candidate {
        crate::schedule::Candidate {
            size: ByteCount::new(self.len.into()),
            unsent: ByteCount::new(self.pending()),
            priority: self.block.priority,
            deadline: self.deadline,
            taken: self.taken,
            order: self.order,
            started: self.begun,
            followers: crate::schedule::Followers::default(),
        }
    }

    /// The next symbol of at most `payload` bytes: what was lost first, then what was never sent.
    pub fn next(&mut self, id: BlockId, payload: usize, at: Now) -> Option<Outsymbol> {
        if let Some((start, end)) = self.again.first() {
            let mut symbol =
                self.cut(Slice { flow: id.flow, seq: id.seq, start, end }, payload, true, at);
            symbol.sends = Some(self.repeats.so_far(start));
            self.again.remove(symbol.slice.start, symbol.slice.end);
            return Some(symbol);
        }
        if self.sent == self.len {
            return None;
        }
        let rest = Slice { flow: id.flow, seq: id.seq, start: self.sent, end: self.len };
        let symbol = self.cut(rest, payload, false, at);
        self.sent = symbol.slice.end;
        Some(symbol)
    }

    /// As much of `slice`, from its start, as one datagram of `payload` bytes takes.
    pub fn cut(&mut self, slice: Slice, payload: usize, repeated: bool, at: Now) -> Outsymbol {
        let life = self
            .deadline
            .filter(|_| self.is_expendable())
            .map(|deadline| deadline.since(at.now + at.flight));
        let head =
            (slice.start == 0).then(|| Head { sent: *self.first_sent.get_or_insert(at.utc), life });
        let mut header = SymbolHeader {
            // A flow below the base is far above it on the wire, and its header longer: the slice
            // must leave it room.
            flow: relative(slice.flow, at.flow_base),
            seq_low: (slice.seq.0 & 0xff_ffff) as u32,
            offset: slice.start,
            fin: false,
            repeated,
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

/// Its name.
pub const fn id(flow: FlowId, seq: u64) -> BlockId {
    BlockId { flow, seq: Seq(seq) }
}
