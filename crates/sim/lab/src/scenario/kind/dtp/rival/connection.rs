//! One multipath connection of an application: its stream, what of it goes over which subflow, and
//! what arrives in order.

use super::subflow::{Piece, Subflow};
use crate::scenario::kind::dtp::{PAYLOAD, on_line, worth};
use crate::workload::{BlockStream, Due};
use skyhaul_congestion::{ControllerConfig, RenoConfig};
use skyhaul_units::{ByteCount, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Both ends of it.
pub(super) struct Connection {
    /// The application.
    pub stream: BlockStream,
    /// The sending ends.
    pub subflows: Vec<Subflow>,
    /// The receiving ends.
    pub receivers: Vec<Receiver>,
    /// One for each block of the run.
    blocks: Vec<Written>,
    /// The last that stood alone.
    intra: usize,
    /// Written by the application: a blocking socket takes what there is room for, the rest waits
    /// before it without limit.
    written: u64,
    sent: u64,
    /// What the far end has in order, as far as known here.
    acknowledged: u64,
    /// What a subflow's time-out brought back for the others. Bounded by the send buffer.
    again: VecDeque<Piece>,
    /// What arrived beyond the first gap: end by start. Bounded by the receive window.
    beyond: BTreeMap<u64, u64>,
    in_order: u64,
    /// Blocks given out.
    given: usize,
}

/// A segment on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Its number in the subflow.
    pub number: u64,
    /// What it carries.
    pub piece: Piece,
    /// When it was sent: its time stamp.
    pub sent: Instant,
}

/// What the far end says of what it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement {
    /// All segments of the subflow before this one.
    pub segments: u64,
    /// All bytes of the stream before this one.
    pub stream: u64,
    /// The time stamp of the segment that last moved `segments` on (RFC 7323 4.3).
    pub echo: Instant,
}

/// The receiving end of a subflow.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    expected: u64,
    echo: Instant,
    /// Bounded by the receive window.
    beyond: BTreeSet<u64>,
}

struct Written {
    end: u64,
    by: Instant,
    needs: Option<usize>,
    in_time: bool,
}

impl Connection {
    /// Over this many paths, none of them open.
    pub fn new(stream: BlockStream, paths: usize) -> Self {
        let reno = ControllerConfig::Reno(RenoConfig::default());
        Self {
            stream,
            subflows: (0..paths).map(|_| Subflow::new(reno.build(None))).collect(),
            receivers: (0..paths).map(|_| Receiver::default()).collect(),
            blocks: Vec::new(),
            intra: 0,
            written: 0,
            sent: 0,
            acknowledged: 0,
            again: VecDeque::new(),
            beyond: BTreeMap::new(),
            in_order: 0,
            given: 0,
        }
    }

    /// The application has a block.
    pub fn write(&mut self, due: &Due) {
        self.written += due.size.as_u64();
        let place = self.blocks.len();
        let needs = due.depends.then_some(self.intra);
        if !due.depends {
            self.intra = place;
        }
        let by = due.deadline.map_or(Instant::FAR_FUTURE, |span| due.at + span);
        self.blocks.push(Written { end: self.written, by, needs, in_time: false });
    }

    /// The next segment that a subflow has room for: its path and number. What a time-out brought
    /// back goes first, then what was never sent; over the shortest round trip with room.
    pub fn send(&mut self, now: Instant) -> Option<(usize, u64)> {
        while self.again.front().is_some_and(|piece| piece.end <= self.acknowledged) {
            self.again.pop_front();
        }
        if let Some((piece, path)) =
            self.again.front().and_then(|piece| Some((*piece, self.choose(*piece)?)))
        {
            self.again.pop_front();
            return Some((path, self.give(now, path, piece)));
        }
        let limit = self.written.min(self.acknowledged + WINDOW.as_u64());
        let piece =
            Piece { start: self.sent, end: limit.min(self.sent.saturating_add(PAYLOAD)), tried: 0 };
        if piece.end <= piece.start {
            return None;
        }
        let path = self.choose(piece)?;
        self.sent = piece.end;
        Some((path, self.give(now, path, piece)))
    }

    /// A subflow has waited long enough.
    pub fn overdue(&mut self, now: Instant, path: usize) {
        let pieces = self.subflows[path].overdue(now);
        // What every subflow has been given is left to their own repetitions.
        let is_elsewhere =
            |piece: &Piece| (piece.tried.count_ones() as usize) < self.subflows.len();
        self.again.extend(pieces.into_iter().filter(is_elsewhere));
    }

    /// An acknowledgement came: of a subflow's segments, and of the stream. A segment to send at
    /// once.
    pub fn acknowledge(&mut self, now: Instant, path: usize, upto: Acknowledgement) -> Option<u64> {
        self.acknowledged = self.acknowledged.max(upto.stream);
        self.subflows[path].acknowledge(now, upto.segments, upto.echo)
    }

    /// A segment arrived; what its acknowledgement says.
    pub fn arrived(&mut self, now: Instant, path: usize, segment: Segment) -> Acknowledgement {
        let piece = segment.piece;
        if piece.end > self.in_order {
            let end = self.beyond.entry(piece.start).or_insert(piece.end);
            *end = piece.end.max(*end);
        }
        while let Some((start, end)) =
            self.beyond.first_key_value().map(|(start, end)| (*start, *end))
            && start <= self.in_order
        {
            self.in_order = self.in_order.max(end);
            self.beyond.remove(&start);
        }
        while let Some(block) =
            self.blocks.get_mut(self.given).filter(|block| block.end <= self.in_order)
        {
            block.in_time = now <= block.by;
            self.given += 1;
        }
        let receiver = &mut self.receivers[path];
        receiver.arrived(&segment);
        Acknowledgement { segments: receiver.expected, stream: self.in_order, echo: receiver.echo }
    }

    /// The worth of what was in time.
    pub fn worth(&self) -> f64 {
        let useful = |block: &&Written| {
            block.in_time && block.needs.is_none_or(|needed| self.blocks[needed].in_time)
        };
        self.blocks.iter().filter(useful).count() as f64 * worth(self.stream.config().priority)
    }

    fn choose(&self, piece: Piece) -> Option<usize> {
        let size = size_of(piece);
        let fits =
            |path: &usize| piece.tried & (1 << path) == 0 && self.subflows[*path].has_room(size);
        (0..self.subflows.len()).filter(fits).min_by_key(|path| self.subflows[*path].smoothed())
    }

    fn give(&mut self, now: Instant, path: usize, piece: Piece) -> u64 {
        let piece = Piece { tried: piece.tried | 1 << path, ..piece };
        self.subflows[path].take(now, piece, size_of(piece))
    }
}

impl Receiver {
    fn arrived(&mut self, segment: &Segment) {
        if segment.number <= self.expected {
            self.echo = self.echo.max(segment.sent);
        }
        if segment.number >= self.expected {
            self.beyond.insert(segment.number);
        }
        while self.beyond.remove(&self.expected) {
            self.expected += 1;
        }
    }
}

/// A segment takes on the line what a datagram with as much takes: TCP's header with timestamps and
/// the mapping of RFC 8684 are as long as ours.
fn size_of(piece: Piece) -> ByteCount {
    ByteCount::new(on_line(ByteCount::new(piece.end - piece.start)) as u64)
}

/// What the sending host buffers and the receiving host announces: 4 MiB, the most that Linux gives
/// a sending socket unless told otherwise. At 2 × 4 Mbit/s and 600 ms it is seven times what the
/// paths hold.
const WINDOW: ByteCount = ByteCount::mib(4);
