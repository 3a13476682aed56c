//! Interleaving: distributes symbols round robin to groups, and sends their repair in the same
//! turn, so that the symbols of a group, repair included, are exactly as far apart as the design
//! assumes.

use super::design::Design;
use crate::block::BlockId;
use crate::repair::{RepairSymbol, Sid};
use bytes::Bytes;
use skyhaul_coding::erasure;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The sender's encoder. It keeps the sources of one set of groups: at most 6 MiB.
#[derive(Debug)]
pub struct Interleaver {
    /// The number of the next source.
    next: u64,
    open: Option<Set>,
    closed: Option<Closed>,
    /// Known probabilities of failure, by lanes, sources and repairs.
    failures: BTreeMap<(u8, u8, u8), f64>,
}

/// Groups that are filled together.
#[derive(Debug)]
struct Set {
    first: u64,
    opened: Instant,
    due: Option<Instant>,
    sources: Vec<(Bytes, Option<BlockId>)>,
}

/// Groups whose repair is being sent.
#[derive(Debug)]
struct Closed {
    set: Set,
    lanes: usize,
    repairs: u8,
    /// Repairs made, over all groups.
    turn: usize,
}

/// A set of groups that was closed.
#[derive(Debug, Clone, Copy)]
pub struct ClosedGroups {
    pub groups: u64,
    /// Blocks lost under the assumed loss: for each group the probability that it fails × the
    /// blocks that have symbols in it.
    pub expected_lost: f64,
}

/// Time between the sending of the last repair symbol and a deadline: timer ticks of both ends,
/// jitter, decoding.
const MARGIN: Duration = Duration::from_millis(8);
/// Probabilities cached: more kinds of sets than bursts of traffic end in. Beyond, all are computed
/// anew.
const FAILURES_MAX: usize = 4_096;

impl Interleaver {
    pub const fn new() -> Self {
        Self { next: 0, open: None, closed: None, failures: BTreeMap::new() }
    }

    /// Adds a source and returns its number. `due` is when its repair must be sent. Not while
    /// [`Self::is_repairing`].
    pub fn add(
        &mut self,
        now: Instant,
        content: &Bytes,
        block: Option<BlockId>,
        due: Option<Instant>,
    ) -> Sid {
        let number = self.next;
        self.next += 1;
        let open = self.open.get_or_insert_with(|| Set {
            first: number,
            opened: now,
            due: None,
            sources: Vec::new(),
        });
        open.sources.push((content.clone(), block));
        open.due = open.due.into_iter().chain(due).min();
        Sid::from_wire((number & 0xff_ffff) as u32)
    }

    /// Whether repair symbols of closed groups are still to be sent.
    pub const fn is_repairing(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether sources wait in an open set.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// When the open set must be closed, even if it is not full.
    pub fn close_at(&self, design: &Design) -> Option<Instant> {
        let open = self.open.as_ref()?;
        let (lanes, sources) = open.shape(design);
        let lead =
            MARGIN + design.repair_time(lanes as u8, design.repairs_of(lanes as u8, sources));
        let full =
            open.sources.len() >= usize::from(design.sources()) * usize::from(design.lanes());
        let hold = if full { open.opened } else { open.opened + design.hold() };
        Some(open.due.map_or(hold, |due| hold.min(due - lead)))
    }

    /// Closes the open set: its repair follows.
    pub fn close(&mut self, design: &Design) -> Option<ClosedGroups> {
        let set = self.open.take()?;
        let (lanes, most) = set.shape(design);
        let repairs = design.repairs_of(lanes as u8, most);
        let mut expected_lost = 0.0;
        for lane in 0..lanes {
            let sources = set.lane(lane, lanes).count() as u8;
            let blocks: BTreeSet<BlockId> =
                set.lane(lane, lanes).filter_map(|(_, block)| *block).collect();
            if self.failures.len() > FAILURES_MAX {
                self.failures.clear();
            }
            let key = (lanes as u8, sources, repairs);
            let failure =
                *self.failures.entry(key).or_insert_with(|| design.failure(key.0, key.1, key.2));
            expected_lost += failure * blocks.len() as f64;
        }
        self.closed = (repairs > 0).then_some(Closed { set, lanes, repairs, turn: 0 });
        Some(ClosedGroups { groups: lanes as u64, expected_lost })
    }

    /// The next repair symbol.
    pub fn next_repair(&mut self) -> Option<RepairSymbol> {
        let closed = self.closed.as_mut()?;
        let symbol = closed.repair();
        closed.turn += 1;
        if closed.turn == closed.lanes * usize::from(closed.repairs) {
            self.closed = None;
        }
        Some(symbol)
    }
}

impl Set {
    /// The number of its groups, and the sources of the largest.
    fn shape(&self, design: &Design) -> (usize, u8) {
        let lanes = usize::from(design.lanes()).min(self.sources.len()).max(1);
        (lanes, self.sources.len().div_ceil(lanes) as u8)
    }

    fn lane(&self, lane: usize, lanes: usize) -> impl Iterator<Item = &(Bytes, Option<BlockId>)> {
        self.sources.iter().skip(lane).step_by(lanes.max(1))
    }
}

impl Closed {
    fn repair(&self) -> RepairSymbol {
        // The lanes continue in turn after the last source, so that the symbols of each stay one
        // whole turn apart.
        let lane = (self.set.sources.len() + self.turn) % self.lanes;
        let index = (self.turn / self.lanes) as u8;
        let contents: Vec<&[u8]> =
            self.set.lane(lane, self.lanes).map(|(content, _)| &content[..]).collect();
        let lengths: Vec<[u8; 2]> =
            contents.iter().map(|content| (content.len() as u16).to_be_bytes()).collect();
        let lengths: Vec<&[u8]> = lengths.iter().map(|length| &length[..]).collect();
        let longest = contents.iter().map(|content| content.len()).max().unwrap_or(0);
        let mut bytes = erasure::repair(index, &lengths, 2);
        bytes.extend(erasure::repair(index, &contents, longest));
        RepairSymbol {
            first: Sid::from_wire(((self.set.first + lane as u64) & 0xff_ffff) as u32),
            count: contents.len() as u8,
            stride: self.lanes as u8,
            index,
            bytes: Bytes::from(bytes),
        }
    }
}
