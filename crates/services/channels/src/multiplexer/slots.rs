//! Which slots are in use, and which channel of a slot is the newest.

use super::{ChannelKey, SessionEnd};
use std::collections::{BTreeMap, BTreeSet};

/// The slots of both ends. The calling end opens channels in even slots, the called end in odd
/// ones.
#[derive(Debug)]
pub(super) struct Slots {
    end: SessionEnd,
    /// Slots of each end.
    per_end: u32,
    /// This end's slots that were used, and may be used again.
    free: BTreeSet<u32>,
    /// This end's slots ever used.
    used: u32,
    /// The newest channel of each slot ever used, of both ends.
    newest: BTreeMap<u32, u32>,
}

/// A channel that is not in use, compared with the newest one of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// It has ended: a message of it came late.
    Past,
    /// The far end may open it.
    Next,
    /// Neither end has opened it or may open it.
    Never,
}

impl Slots {
    pub const fn new(end: SessionEnd, per_end: u32) -> Self {
        Self { end, per_end, free: BTreeSet::new(), used: 0, newest: BTreeMap::new() }
    }

    /// A channel in the lowest free slot: few flows are few states in the session. `None` where all
    /// are in use.
    pub fn open(&mut self) -> Option<ChannelKey> {
        let slot = match self.free.pop_first() {
            Some(slot) => slot,
            None => self.unused()?,
        };
        let generation = self.newest.get(&slot).map_or(1, |newest| newest.wrapping_add(1));
        self.newest.insert(slot, generation);
        Some(ChannelKey { slot, generation })
    }

    fn unused(&mut self) -> Option<u32> {
        let index = Some(self.used).filter(|used| *used < self.per_end)?;
        self.used += 1;
        Some(2 * index + u32::from(self.end == SessionEnd::Called))
    }

    /// The slot may be used again.
    pub fn give_back(&mut self, slot: u32) {
        self.free.insert(slot);
    }

    /// The far end has opened a channel.
    pub fn opened_there(&mut self, key: ChannelKey) {
        self.newest.insert(key.slot, key.generation);
    }

    /// Of a channel that is not in use.
    pub fn age(&self, key: ChannelKey) -> Age {
        let newest = self.newest.get(&key.slot);
        let is_odd = key.slot % 2 == 1;
        let is_theirs = is_odd == (self.end == SessionEnd::Calling);
        // Generations wrap: the half of all that is behind the newest one is its future.
        match newest.map(|newest| newest.wrapping_sub(key.generation).cast_signed()) {
            Some(0..) => Age::Past,
            _ if is_theirs && key.slot < 2 * self.per_end => Age::Next,
            _ => Age::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(slot: u32, generation: u32) -> ChannelKey {
        ChannelKey { slot, generation }
    }

    #[test]
    fn the_lowest_free_slot_is_used_and_each_use_has_a_number_of_its_own() {
        let mut slots = Slots::new(SessionEnd::Called, 3);
        let open = |slots: &mut Slots| slots.open().map(|key| (key.slot, key.generation));
        let all: Vec<_> = std::iter::from_fn(|| open(&mut slots)).collect();
        assert_eq!(all, [(1, 1), (3, 1), (5, 1)]);
        slots.give_back(5);
        slots.give_back(3);
        let again: Vec<_> = std::iter::from_fn(|| open(&mut slots)).collect();
        assert_eq!(again, [(3, 2), (5, 2)]);
    }

    #[test]
    fn a_late_channel_is_told_from_a_new_one_even_where_the_numbers_wrap() {
        let mut slots = Slots::new(SessionEnd::Calling, 4);
        assert_eq!(slots.age(key(1, 7)), Age::Next);
        slots.opened_there(key(1, u32::MAX));
        for (generation, age) in
            [(u32::MAX - 7, Age::Past), (u32::MAX, Age::Past), (0, Age::Next), (5, Age::Next)]
        {
            assert_eq!(slots.age(key(1, generation)), age, "{generation}");
        }
        // This end's own, and beyond the last.
        let own = slots.open().unwrap();
        assert_eq!(slots.age(own), Age::Past);
        assert_eq!(slots.age(key(own.slot, own.generation + 1)), Age::Never);
        assert_eq!(slots.age(key(8, 1)), Age::Never);
        assert_eq!(slots.age(key(9, 1)), Age::Never);
    }
}
