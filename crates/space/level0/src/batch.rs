//! Packets in memory: collected in the order of arrival, and returned in order without duplicates.
//!
//! The bytes of the packets are contiguous, each with a head; a separate list has a key for each,
//! by which they are sorted. A packet costs its length and [`OVERHEAD`], without an allocation of
//! its own. Packets of one slot form a run, which is ordered by sequence count, beginning after its
//! widest gap, so that a count that wraps inside the run stays in sequence.

use crate::order::{Held, PacketQuality, Slot};
use arena::{Arena, Place};
use skyhaul_units::Utc;

/// The result for a packet that was put into a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled<'a> {
    /// It is the next in order.
    Packet(Slot, Held<'a>),
    /// It was there already.
    Duplicate,
    /// Another packet has the same time, counter and count; this one is the worse copy, and is
    /// dropped.
    Differs(Utc, Held<'a>),
}

/// Which packets are returned; runs are never split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    All,
    /// The first half of the packets.
    Half,
    /// Those of slots before this one.
    Before(Slot),
}

/// Packets in memory.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    arena: Arena,
    /// One for each packet; in order up to `sorted`.
    keys: Vec<Key>,
    sorted: usize,
    /// Bytes of the packets, with what lies beside them.
    cost: usize,
    /// The packets of one run that stay; kept for its memory.
    run: Vec<(Place, PacketQuality)>,
    /// For sorting; kept for its memory.
    aside: Vec<Key>,
}

/// The position of a packet in order and in memory: time, rank and count, then the place in memory,
/// so that of packets with equal keys the one received first is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    fn new(slot: Slot, count: u16, Place(place): Place) -> Self {
        // With the sign bit inverted, the order of the bits is the order of the times.
        let time = slot.time.as_nanos().cast_unsigned() ^ (1 << 63);
        let rank_count_place =
            u64::from(slot.rank) << 48 | u64::from(count) << 32 | u64::from(place);
        Self(u128::from(time) << 64 | u128::from(rank_count_place))
    }
    const fn slot(self) -> Slot {
        let time = Utc::from_nanos(((self.0 >> 64) as u64 ^ (1 << 63)).cast_signed());
        Slot { time, rank: (self.0 >> 48) as u16 }
    }
    /// Time and rank in one number.
    const fn run(self) -> u128 {
        self.0 >> 48
    }
    const fn count(self) -> u16 {
        (self.0 >> 32) as u16
    }
    const fn place(self) -> Place {
        Place(self.0 as u32)
    }
    const fn moved(self, Place(place): Place) -> Self {
        Self(self.0 & !(u32::MAX as u128) | place as u128)
    }
}

/// Memory for each packet beyond its bytes, in bytes: a head and a key.
pub(crate) const OVERHEAD: usize = arena::HEAD + size_of::<Key>();

impl Batch {
    /// Adds a packet.
    pub fn push(&mut self, slot: Slot, held: Held<'_>) {
        let place = self.arena.push(&held).unwrap_or_else(|| {
            self.compact();
            self.arena.push(&held).expect("what memory holds is less than places reach")
        });
        self.keys.push(Key::new(slot, held.count, place));
        self.cost += held.bytes.len() + OVERHEAD;
    }

    /// Memory held, in bytes.
    pub const fn cost(&self) -> usize {
        self.cost
    }

    /// Packets held.
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.keys.clear();
        (self.sorted, self.cost) = (0, 0);
    }

    /// Puts the packets in order.
    pub fn sort(&mut self) {
        if self.sorted < self.keys.len() {
            sort::sort(&mut self.keys, self.sorted, &mut self.aside);
            self.sorted = self.keys.len();
        }
    }

    /// The packet at this position in order, after [`Self::sort`], duplicates included.
    pub fn in_order(&self, at: usize) -> Option<(Slot, Held<'_>)> {
        let key = self.keys.get(at)?;
        Some((key.slot(), self.held(*key)))
    }

    /// Returns a part of the packets in order through the sink. Returns the last slot of that part;
    /// none if there was nothing.
    pub fn drain<E>(
        &mut self,
        part: Part,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), E>,
    ) -> Result<Option<Slot>, E> {
        self.sort();
        let taken = match part {
            Part::All => self.keys.len(),
            Part::Before(end) => self.keys.partition_point(|key| key.slot() < end),
            Part::Half => self.half(),
        };
        let last = taken.checked_sub(1).map(|last| self.keys[last].slot());
        let bytes = self.settle(taken, sink)?;
        self.cost -= bytes + taken * OVERHEAD;
        if taken == self.keys.len() {
            self.clear();
        } else if taken > 0 {
            self.give_back(taken);
        }
        Ok(last)
    }

    /// The number of packets in the first half, in whole runs.
    fn half(&self) -> usize {
        let mut taken = self.keys.len().div_ceil(2);
        while taken < self.keys.len() && self.keys[taken].run() == self.keys[taken - 1].run() {
            taken += 1;
        }
        taken
    }

    /// Frees the memory of the first packets in order.
    fn give_back(&mut self, taken: usize) {
        self.keys.drain(..taken);
        self.sorted = self.keys.len();
        self.arena.reclaim();
        // Packets that stay long keep the memory around them from being freed.
        if self.arena.occupied() > 2 * self.cost + 2 * arena::CHUNK {
            self.compact();
        }
    }

    /// Moves all packets together, in the order they came in.
    fn compact(&mut self) {
        let mut arena = Arena::default();
        let mut order: Vec<u32> = (0..self.keys.len() as u32).collect();
        order.sort_unstable_by_key(|at| self.keys[*at as usize].place());
        for at in order {
            let key = &mut self.keys[at as usize];
            let held = self.arena.held(key.place(), key.count());
            *key = key.moved(arena.push(&held).expect("it takes no more chunks than before"));
        }
        self.arena = arena;
    }

    /// Passes the results for the first packets in order to the sink, run by run, and frees their
    /// bytes. Returns the number of bytes.
    fn settle<E>(
        &mut self,
        taken: usize,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut run = core::mem::take(&mut self.run);
        let (mut at, mut bytes) = (0, 0);
        while at < taken {
            let key = self.keys[at];
            let others = self.keys[at + 1..taken]
                .iter()
                .take_while(|other| other.run() == key.run())
                .count();
            let next = at + 1 + others;
            if others > 0 {
                self.settle_run(at..next, &mut run, sink)?;
                bytes += self.keys[at..next]
                    .iter()
                    .map(|key| self.held(*key).bytes.len())
                    .sum::<usize>();
                self.keys[at..next].iter().for_each(|key| self.arena.release(key.place()));
            } else {
                let held = self.held(key);
                bytes += held.bytes.len();
                sink(Settled::Packet(key.slot(), held))?;
                self.arena.release(key.place());
            }
            at = next;
        }
        self.run = run;
        Ok(bytes)
    }

    fn settle_run<E>(
        &self,
        keys: core::ops::Range<usize>,
        stay: &mut Vec<(Place, PacketQuality)>,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        stay.clear();
        let keys = &self.keys[keys];
        let slot = keys[0].slot();
        // Of several that claim one count, the best copy stays.
        for claims in keys.chunk_by(|one, other| one.count() == other.count()) {
            let count = claims[0].count();
            let held = |place: Place| self.arena.held(place, count);
            let places = claims.iter().map(|key| key.place());
            let best = places
                .clone()
                .min_by(|one, other| held(*one).preference().cmp(&held(*other).preference()));
            let best = best.expect("a chunk holds a key at least");
            let mut quality = held(best).quality;
            for place in places.filter(|place| *place != best) {
                let out = held(place);
                quality = quality.standing_for(out.quality);
                let is_same = out.is_same(&held(best));
                sink(if is_same { Settled::Duplicate } else { Settled::Differs(slot.time, out) })?;
            }
            stay.push((best, quality));
        }
        let counts = || {
            keys.chunk_by(|one, other| one.count() == other.count()).map(|claims| claims[0].count())
        };
        let start = start_of(counts());
        let staying = || counts().zip(&*stay);
        for (count, (place, quality)) in staying().skip(start).chain(staying().take(start)) {
            sink(Settled::Packet(
                slot,
                Held { quality: *quality, ..self.arena.held(*place, count) },
            ))?;
        }
        Ok(())
    }

    fn held(&self, key: Key) -> Held<'_> {
        self.arena.held(key.place(), key.count())
    }
}

/// The index of the first count of a run, whose counts are in ascending order: the one after the
/// widest gap.
fn start_of(mut counts: impl Iterator<Item = u16> + Clone) -> usize {
    let Some(last) = counts.clone().last() else { return 0 };
    // From the greatest count over the wrap to the least, then each to the next.
    let mut before = i32::from(last) - COUNTS;
    let (mut widest, mut start, mut at) = (0, 0, 0);
    for count in counts.by_ref() {
        let gap = i32::from(count) - before;
        if gap > widest {
            (widest, start) = (gap, at);
        }
        before = i32::from(count);
        at += 1;
    }
    start
}

/// Sequence counts are modulo this (CCSDS 133.0-B-2 4.1.3.4.3).
const COUNTS: i32 = 1 << 14;

mod arena;
mod sort;
#[cfg(test)]
mod tests;
