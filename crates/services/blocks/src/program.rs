//! One program: its queue, and the fates that it has to hear.

use crate::head::{BlockFate, BlockRefusal, BlockRequest, FLOWS};
use bytes::Bytes;
use skyhaul_transport::{MAX_BLOCK, cost};
use skyhaul_units::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a program has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramCounters {
    /// Blocks taken, refused ones among them.
    pub taken: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that arrived.
    pub delivered: u64,
    /// Blocks that were given up.
    pub expired: u64,
    /// Blocks that the session or the node did not take.
    pub refused: u64,
    /// The cost of blocks without a fate that was told.
    pub held: u64,
}

/// A block in a queue.
#[derive(Debug)]
pub(crate) struct QueuedBlock {
    pub head: BlockRequest,
    pub bytes: Bytes,
    /// When its deadline passes.
    pub until: Option<Instant>,
}

/// A program.
#[derive(Debug)]
pub(crate) struct Program {
    pub uid: u32,
    /// Blocks to hand over, by number. Those that expired are taken out.
    pub queue: BTreeMap<u64, QueuedBlock>,
    /// The cost of each block whose fate is not known.
    open: BTreeMap<u64, u64>,
    /// Fates to tell, with the cost that is given back then.
    fates: VecDeque<(u64, BlockFate, u64)>,
    /// Blocks that did not arrive, the latest [`GIVEN_UP_MAX`]: others may depend on them.
    given_up: BTreeSet<u64>,
    last: u64,
    /// What it may send in its turn; below zero after a large block.
    pub deficit: i64,
    pub counters: ProgramCounters,
}

/// Blocks given up that are remembered for those that depend on them.
const GIVEN_UP_MAX: usize = 1_024;

impl Program {
    pub const fn new(uid: u32) -> Self {
        Self {
            uid,
            queue: BTreeMap::new(),
            open: BTreeMap::new(),
            fates: VecDeque::new(),
            given_up: BTreeSet::new(),
            last: 0,
            deficit: 0,
            counters: ProgramCounters {
                taken: 0,
                bytes: 0,
                delivered: 0,
                expired: 0,
                refused: 0,
                held: 0,
            },
        }
    }

    /// The number that the next block has.
    pub const fn due_number(&self) -> u64 {
        self.last.wrapping_add(1)
    }

    /// Takes a block in. Returns the cost by which the program holds more.
    pub fn take(&mut self, head: BlockRequest, len: usize) -> u64 {
        let cost = cost(len);
        self.last = head.number;
        self.open.insert(head.number, cost);
        self.counters.taken += 1;
        self.counters.bytes += len as u64;
        self.counters.held += cost;
        cost
    }

    /// Why a block is not taken, beside its class.
    pub fn check(head: &BlockRequest, len: usize) -> Option<BlockRefusal> {
        if len == 0 || len > MAX_BLOCK {
            return Some(BlockRefusal::Length);
        }
        if head.flow >= FLOWS {
            return Some(BlockRefusal::Flow);
        }
        if head.expendable && head.deadline.is_none() {
            return Some(BlockRefusal::Deadline);
        }
        let is_after = head.depends_on.is_none_or(|before| (1..head.number).contains(&before));
        (!is_after).then_some(BlockRefusal::Dependency)
    }

    /// Whether a block waits for one that was given up here.
    pub fn is_in_vain(&self, head: &BlockRequest) -> bool {
        !head.useful_alone && head.depends_on.is_some_and(|needed| self.given_up.contains(&needed))
    }

    /// A block was given up in the queue.
    pub fn give_up(&mut self, number: u64) {
        self.queue.remove(&number);
        self.settle(number, BlockFate::Expired);
    }

    /// The fate of a block is known. What is known twice, or of no block, changes nothing.
    pub fn settle(&mut self, number: u64, fate: BlockFate) {
        let Some(cost) = self.open.remove(&number) else { return };
        match fate {
            BlockFate::Delivered | BlockFate::Sent => self.counters.delivered += 1,
            BlockFate::Expired => self.counters.expired += 1,
            BlockFate::Cancelled | BlockFate::Refused(_) => self.counters.refused += 1,
        }
        if !matches!(fate, BlockFate::Delivered | BlockFate::Sent) {
            self.given_up.insert(number);
            if self.given_up.len() > GIVEN_UP_MAX {
                self.given_up.pop_first();
            }
        }
        self.fates.push_back((number, fate, cost));
    }

    /// The next fate to tell. Returns it with the cost that is held no more.
    pub fn next_fate(&mut self) -> Option<(u64, BlockFate, u64)> {
        let fate = self.fates.pop_front()?;
        self.counters.held -= fate.2;
        Some(fate)
    }

    /// Whether there are fates to tell.
    pub fn has_fates(&self) -> bool {
        !self.fates.is_empty()
    }
}
