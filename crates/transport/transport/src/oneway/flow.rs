//! One flow at the receiver: reassembles its blocks, delivers them in order, and skips missing
//! ones.

use super::wire::BlockSlice;
use crate::block::{BlockId, BlockTiming, Received, cost};
use crate::ranges::RangeSet;
use bytes::Bytes;
use skyhaul_units::{Instant, Utc};
use std::collections::{BTreeMap, VecDeque};

/// A flow's state.
#[derive(Debug, Default)]
pub struct OneWayFlow {
    /// The first block that is neither delivered nor skipped.
    pub next: u64,
    pub blocks: BTreeMap<u64, Partial>,
    /// Blocks beyond `next` that were delivered or skipped: disjoint, ascending, half-open ranges
    /// of sequence numbers.
    passed: BTreeMap<u64, u64>,
    /// Announced progress, and when blocks below it count as missing: the oldest is due first.
    pub told: VecDeque<(Instant, u64)>,
}

/// A block begun.
#[derive(Debug)]
pub struct Partial {
    bytes: Vec<u8>,
    got: RangeSet,
    len: Option<u32>,
    sent: Utc,
    pub begun: Instant,
    last_original: Instant,
    repaired: bool,
    pub complete: Option<Instant>,
    pub expires: Option<Instant>,
}

/// A step of moving along a flow.
#[derive(Debug)]
pub enum SkippedStep {
    /// A block that is whole.
    Block(u64, Partial),
    /// Missing blocks, from the first number to the second, and those of them that were begun.
    Gap(u64, u64, Vec<(u64, Partial)>),
}

impl OneWayFlow {
    /// Whether a block was delivered or skipped.
    pub fn is_past(&self, seq: u64) -> bool {
        seq < self.next || self.passed.range(..=seq).next_back().is_some_and(|(_, end)| seq < *end)
    }

    /// A block beyond `next` was delivered or skipped.
    pub fn pass(&mut self, seq: u64) {
        let mut run = (seq, seq + 1);
        if let Some((start, end)) =
            self.passed.range(..=seq).next_back().map(|(start, end)| (*start, *end))
        {
            if end > seq {
                return;
            }
            if end == seq {
                run.0 = start;
            }
        }
        if let Some(end) = self.passed.remove(&run.1) {
            run.1 = end;
        }
        self.passed.insert(run.0, run.1);
    }

    /// Runs of blocks done beyond the first open one.
    pub fn runs(&self) -> usize {
        self.passed.len()
    }

    /// Where the first such run ends.
    pub fn first_run(&self) -> Option<u64> {
        self.passed.first_key_value().map(|(_, end)| *end)
    }

    /// The next step towards `end`: whole blocks are delivered, also beyond it; missing ones before
    /// it are a gap.
    pub fn step(&mut self, end: u64) -> Option<SkippedStep> {
        while let Some((start, stop)) =
            self.passed.first_key_value().map(|(start, stop)| (*start, *stop))
            && start <= self.next
        {
            self.passed.remove(&start);
            self.next = self.next.max(stop);
        }
        let whole = self
            .blocks
            .range(self.next..)
            .find(|(_, block)| block.complete.is_some())
            .map(|(seq, _)| *seq);
        if whole == Some(self.next) {
            let block = self.blocks.remove(&self.next)?;
            self.next += 1;
            return Some(SkippedStep::Block(self.next - 1, block));
        }
        if self.next >= end {
            return None;
        }
        let run = self.passed.first_key_value().map(|(start, _)| *start);
        let stop = [Some(end), whole, run].into_iter().flatten().min()?;
        let beyond = self.blocks.split_off(&stop);
        let begun = core::mem::replace(&mut self.blocks, beyond);
        let first = core::mem::replace(&mut self.next, stop);
        Some(SkippedStep::Gap(first, stop, begun.into_iter().collect()))
    }

    /// One above the last block of which anything is known.
    pub fn end(&self) -> u64 {
        let block = self.blocks.last_key_value().map_or(0, |(seq, _)| seq + 1);
        let told = self.told.back().map_or(0, |(_, done)| *done);
        block.max(told).max(self.passed.last_key_value().map_or(0, |(_, end)| *end))
    }
}

/// When and how a slice arrived.
#[derive(Debug, Clone, Copy)]
pub struct ArrivedSlice {
    pub now: Instant,
    /// By FEC repair.
    pub recovered: bool,
}

impl Partial {
    pub fn new(now: Instant) -> Self {
        Self {
            bytes: Vec::new(),
            got: RangeSet::default(),
            len: None,
            sent: Utc::default(),
            begun: now,
            last_original: now,
            repaired: false,
            complete: None,
            expires: None,
        }
    }

    /// Its cost against the window.
    pub fn held(&self) -> u64 {
        cost(self.bytes.len())
    }

    /// Bytes by which a slice up to `end` makes it grow.
    pub fn growth(&self, end: u32) -> u64 {
        u64::from(end).saturating_sub(self.bytes.len() as u64)
    }

    /// Whether a slice cannot be one of this block.
    pub fn contradicts(&self, slice: &BlockSlice) -> bool {
        let (end, fin) = (slice.end(), slice.header.fin);
        match self.len {
            Some(len) => end > len || (fin && end != len),
            None => fin && (end as usize) < self.bytes.len(),
        }
    }

    /// Takes a slice that does not contradict it. Returns whether anything of it is new.
    pub fn put(&mut self, at: ArrivedSlice, piece: &BlockSlice) -> bool {
        let header = &piece.header;
        let (start, end) = (header.offset as usize, header.offset as usize + piece.bytes.len());
        if self.got.insert(header.offset, end as u32) == 0 {
            return false;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(&piece.bytes);
        if let Some(head) = header.head {
            self.sent = head.sent;
            self.expires = self.expires.or(head.life.map(|life| at.now + life));
        }
        if header.fin {
            self.len = Some(end as u32);
        }
        if at.recovered {
            self.repaired = true;
        } else {
            self.last_original = at.now;
        }
        if self.len.is_some_and(|len| self.got.contains(0, len)) {
            self.complete.get_or_insert(at.now);
        }
        true
    }

    /// The block as it is delivered.
    pub fn into_received(self, id: BlockId, now: Instant) -> Received {
        Received {
            id,
            bytes: Bytes::from(self.bytes),
            timing: BlockTiming {
                sent: self.sent,
                last_original: self.last_original,
                complete: self.complete.unwrap_or(now),
                delivered: now,
                repaired: self.repaired,
            },
        }
    }
}
