//! Packets in memory: gathered in the order they come, handed out in order without those that were there already.
//!
//! The packets' bytes lie one after another, with a head for each beside them and a key to sort by: a packet costs
//! its length and [`OVERHEAD`], and no allocation of its own. Packets that share a slot make a run, which is ordered by
//! sequence count from behind its widest gap, so that a count that wraps inside it stays in sequence.

use crate::order::{Held, PacketQuality, Slot};
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_units::Utc;

/// What became of a packet that was put into a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled<'a> {
    /// It is the next in order.
    Packet(Slot, Held<'a>),
    /// It was there already.
    Duplicate,
    /// Another packet claims the same time, counter and count; this one, the worse of the two, is out.
    Differs(Utc, Held<'a>),
}

/// Which packets are to be handed out; runs are never parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    All,
    /// So many of the first that at most half of the memory stays held.
    Half,
    /// Those of slots before this one.
    Before(Slot),
}

/// Packets in memory.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    heads: Vec<Head>,
    /// One for each head; in order up to `sorted`.
    keys: Vec<Key>,
    sorted: usize,
    /// Of one run, what stays of it; kept for its memory.
    run: Vec<(u32, PacketQuality)>,
}

/// A packet's place in order, and in `heads`: time, rank and count, then the place, so that of packets with equal
/// claims the one that came first is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    fn new(slot: Slot, count: u16, place: usize) -> Self {
        // Flipping the sign makes the order of the bits that of the times.
        let time = slot.time.as_nanos().cast_unsigned() ^ (1 << 63);
        let place = u32::try_from(place).expect("2^32 packets in memory would be 200 GB");
        let rank_count_place = u64::from(slot.rank) << 48 | u64::from(count) << 32 | u64::from(place);
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
    const fn place(self) -> u32 {
        self.0 as u32
    }
    const fn moved(self, place: u32) -> Self {
        Self(self.0 & !(u32::MAX as u128) | place as u128)
    }
}

/// What is known of a packet beyond its key.
#[derive(Debug, Clone, Copy)]
struct Head {
    received: Utc,
    offset: usize,
    len: u32,
    apid: Apid,
    vcid: Vcid,
    quality: PacketQuality,
}

/// Memory that a packet takes beyond its bytes, in bytes: a head, a key, and a number when others are taken out.
pub(crate) const OVERHEAD: usize = size_of::<Head>() + size_of::<Key>() + size_of::<u32>();

impl Batch {
    /// Adds a packet.
    pub fn push(&mut self, slot: Slot, held: Held<'_>) {
        self.keys.push(Key::new(slot, held.count, self.heads.len()));
        self.heads.push(Head {
            received: held.received,
            offset: self.bytes.len(),
            len: u32::try_from(held.bytes.len()).expect("a space packet has at most 65542 bytes"),
            apid: held.apid,
            vcid: held.vcid,
            quality: held.quality,
        });
        self.bytes.extend_from_slice(held.bytes);
    }

    /// Memory held, in bytes.
    pub const fn cost(&self) -> usize {
        self.bytes.len() + self.heads.len() * OVERHEAD
    }

    /// Packets held.
    pub const fn len(&self) -> usize {
        self.heads.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.heads.clear();
        self.keys.clear();
        self.sorted = 0;
    }

    /// Puts the packets in order.
    pub fn sort(&mut self) {
        // Most came in order, and what stayed from before is in order: a sort that uses what is in order already.
        if self.sorted < self.keys.len() {
            self.keys.sort();
            self.sorted = self.keys.len();
        }
    }

    /// The packet of this place in order, after [`Self::sort`], duplicates included.
    pub fn in_order(&self, at: usize) -> Option<(Slot, Held<'_>)> {
        let key = self.keys.get(at)?;
        Some((key.slot(), self.held(key.place(), key.count())))
    }

    /// Hands out a part of the packets in order. Returns the last slot handed out; none where there was nothing.
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
        self.settle(taken, sink)?;
        if taken == self.keys.len() {
            self.clear();
        } else if taken > 0 {
            self.close_up(taken);
        }
        Ok(last)
    }

    /// How many of the first packets, in whole runs, take half of the memory.
    fn half(&self) -> usize {
        let enough = self.cost().div_ceil(2);
        let (mut taken, mut cost) = (0, 0);
        while let Some(key) = self.keys.get(taken) {
            if cost >= enough && key.run() != self.keys[taken - 1].run() {
                break;
            }
            cost += self.heads[key.place() as usize].len as usize + OVERHEAD;
            taken += 1;
        }
        taken
    }

    /// Gives the memory of the first packets in order back: the others move together, in the order they came in.
    fn close_up(&mut self, taken: usize) {
        const GONE: u32 = u32::MAX;
        let mut places = vec![0; self.heads.len()];
        for key in self.keys.drain(..taken) {
            places[key.place() as usize] = GONE;
        }
        let (mut kept, mut end) = (0, 0);
        for (at, place) in places.iter_mut().enumerate().filter(|(_, place)| **place != GONE) {
            let head = self.heads[at];
            let len = head.len as usize;
            self.bytes.copy_within(head.offset..head.offset + len, end);
            self.heads[kept] = Head { offset: end, ..head };
            *place = kept as u32;
            kept += 1;
            end += len;
        }
        self.heads.truncate(kept);
        self.bytes.truncate(end);
        for key in &mut self.keys {
            *key = key.moved(places[key.place() as usize]);
        }
        self.sorted = self.keys.len();
    }

    /// Tells the sink what became of the first packets in order, run by run.
    fn settle<E>(
        &mut self,
        taken: usize,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut run = core::mem::take(&mut self.run);
        let mut at = 0;
        while at < taken {
            let key = self.keys[at];
            let others = self.keys[at + 1..taken].iter().take_while(|other| other.run() == key.run()).count();
            if others == 0 {
                sink(Settled::Packet(key.slot(), self.held(key.place(), key.count())))?;
            } else {
                self.settle_run(at..at + 1 + others, &mut run, sink)?;
            }
            at += 1 + others;
        }
        self.run = run;
        Ok(())
    }

    fn settle_run<E>(
        &self,
        keys: core::ops::Range<usize>,
        stay: &mut Vec<(u32, PacketQuality)>,
        sink: &mut impl FnMut(Settled<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        stay.clear();
        let keys = &self.keys[keys];
        let slot = keys[0].slot();
        // Of several that claim one count, the best copy stays.
        for claims in keys.chunk_by(|one, other| one.count() == other.count()) {
            let count = claims[0].count();
            let held = |place: u32| self.held(place, count);
            let places = claims.iter().map(|key| key.place());
            let best =
                places.clone().min_by(|one, other| held(*one).preference().cmp(&held(*other).preference()));
            let best = best.expect("a chunk holds a key at least");
            let mut quality = held(best).quality;
            for place in places.filter(|place| *place != best) {
                let out = held(place);
                quality = quality.standing_for(out.quality);
                let is_same = out.bytes == held(best).bytes;
                sink(if is_same { Settled::Duplicate } else { Settled::Differs(slot.time, out) })?;
            }
            stay.push((best, quality));
        }
        let counts =
            || keys.chunk_by(|one, other| one.count() == other.count()).map(|claims| claims[0].count());
        let start = start_of(counts());
        let staying = || counts().zip(&*stay);
        for (count, (place, quality)) in staying().skip(start).chain(staying().take(start)) {
            sink(Settled::Packet(slot, Held { quality: *quality, ..self.held(*place, count) }))?;
        }
        Ok(())
    }

    fn held(&self, place: u32, count: u16) -> Held<'_> {
        let head = &self.heads[place as usize];
        Held {
            apid: head.apid,
            count,
            vcid: head.vcid,
            quality: head.quality,
            received: head.received,
            bytes: &self.bytes[head.offset..head.offset + head.len as usize],
        }
    }
}

/// Which of the counts of a run, given in ascending order, its sequence begins with: the one behind the widest gap.
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

#[cfg(test)]
mod tests;
