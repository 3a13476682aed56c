//! Datagrams that arrived recently, by their full number: a window that moves with the newest.

use bytes::Bytes;
use std::collections::VecDeque;

/// The datagrams from number `base` on.
#[derive(Debug, Default)]
pub struct History {
    base: u64,
    slots: VecDeque<Option<Bytes>>,
    bytes: usize,
}

/// Numbers kept: two sets of 16 groups of 255, so that the repair of one set may arrive after the
/// next set.
pub const HISTORY_MAX: u64 = 2 * 16 * 256;

/// Bytes kept: [`HISTORY_MAX`] datagrams of 2 KiB. Larger datagrams shorten the window.
pub const HISTORY_BYTES_MAX: usize = 16 << 20;

impl History {
    /// An empty window in which `first` is the newest number.
    pub fn new(first: u64) -> Self {
        Self { base: first.saturating_sub(HISTORY_MAX / 2), ..Self::default() }
    }

    /// Bytes kept.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The oldest number that is kept.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// One above the newest number.
    pub fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    pub fn get(&self, number: u64) -> Option<&Bytes> {
        self.slots.get(self.index(number)?)?.as_ref()
    }

    /// Moves the window so that it reaches `number`.
    pub fn reach(&mut self, number: u64) {
        if number >= self.end() + HISTORY_MAX {
            self.slots.clear();
            self.bytes = 0;
            self.base = number + 1 - HISTORY_MAX;
        }
        while self.end() <= number {
            self.slots.push_back(None);
        }
        while self.slots.len() as u64 > HISTORY_MAX {
            self.drop_oldest();
        }
    }

    /// Keeps `content` under `number`. Returns false where it is there already, or the number is
    /// older than the window.
    pub fn insert(&mut self, number: u64, content: Bytes) -> bool {
        if number < self.base || self.get(number).is_some() {
            return false;
        }
        self.reach(number);
        let Some(slot) = self.index(number).and_then(|index| self.slots.get_mut(index)) else {
            return false;
        };
        self.bytes += content.len();
        *slot = Some(content);
        while self.bytes > HISTORY_BYTES_MAX {
            self.drop_oldest();
        }
        true
    }

    fn drop_oldest(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.bytes -= slot.map_or(0, |content| content.len());
            self.base += 1;
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.base)?).ok()
    }
}
