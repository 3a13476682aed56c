//! The order of packets in a product: by time, then by the product's order of APIDs, then by sequence count. APIDs
//! that share a sequence counter have one place in the order of APIDs: the count tells which packet was first.
//!
//! Packets that share time and counter make a [`Run`]: a packet group of which only the first packet has a time, or
//! several packets with one time stamp. A run is ordered by sequence count from behind its widest gap, so that a
//! count that wraps inside it stays in sequence. Runs are the unit that is held, put out and merged.

use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_ccsds::mission::{ApidRange, Counters};
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// Where packets go: those that share a slot make a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// The packet's time, or that of the packet its group began with.
    pub time: Utc,
    /// Place of the APID's counter in the product.
    pub rank: u16,
}

/// The order of APIDs in a product: as the mission lists them, or by number where it lists none; those that share a
/// counter go where the first of them goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApidOrder {
    listed: Vec<ApidRange>,
    counters: Counters,
}

impl ApidOrder {
    pub fn new(listed: &[ApidRange], counters: &Counters) -> Self {
        Self { listed: listed.to_vec(), counters: counters.clone() }
    }

    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn rank(&self, apid: Apid) -> u16 {
        let apid = self.counters.of(apid);
        let mut before = 0;
        for range in &self.listed {
            let (first, last) = (range.first.value(), range.last.value());
            if range.contains(apid) {
                return before + (apid.value() - first);
            }
            // Ranges may overlap: the sum is held within the type, where only ties could follow.
            before = before.saturating_add(last.saturating_sub(first) + 1).min(u16::MAX - Apid::MAX.value());
        }
        before + apid.value()
    }
}

/// How far a packet can be trusted: a bit for each thing that happened to a frame it came in. Greater is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct PacketQuality(u8);

impl PacketQuality {
    const CORRECTED: u8 = 1;
    const UNCHECKED: u8 = 2;

    pub fn of(packet: &ExtractedPacket) -> Self {
        let corrected = if packet.from_corrected { Self::CORRECTED } else { 0 };
        let unchecked = if packet.from_unchecked { Self::UNCHECKED } else { 0 };
        Self(corrected | unchecked)
    }
    /// Whether a frame needed Reed-Solomon correction.
    pub const fn is_corrected(self) -> bool {
        self.0 & Self::CORRECTED != 0
    }
    pub const fn bits(self) -> u8 {
        self.0
    }
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// A packet on its way into a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub apid: Apid,
    pub count: u16,
    pub vcid: Vcid,
    pub quality: PacketQuality,
    /// When its first frame was received on the ground.
    pub received: Utc,
    pub bytes: Box<[u8]>,
}

impl Held {
    /// Memory that it takes while held, in bytes: the packet, and about what its place in a map needs.
    pub fn cost(&self) -> usize {
        self.bytes.len() + 64
    }

    /// What decides between two packets of one place in a product: the better copy, else any fixed choice.
    fn preference(&self) -> (PacketQuality, &[u8], Utc, Vcid) {
        (self.quality, &self.bytes, self.received, self.vcid)
    }
}

/// What happened to a packet that was put into a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Its place was free.
    New,
    /// The same packet is there already.
    Duplicate,
    /// Another packet claims the same time, counter and count; this one, the worse of the two, is out.
    Differs(Held),
}

/// The packets of one slot, by sequence count.
#[derive(Debug, Default)]
pub(crate) struct Run {
    packets: BTreeMap<u16, Held>,
    cost: usize,
}

impl Run {
    pub const fn cost(&self) -> usize {
        self.cost
    }

    /// Puts a packet in its place; of two that claim it, the better one stays, whichever came first.
    pub fn insert(&mut self, mut held: Held) -> Meeting {
        let Some(there) = self.packets.get_mut(&held.count) else {
            self.cost += held.cost() + if self.packets.is_empty() { RUN_COST } else { 0 };
            self.packets.insert(held.count, held);
            return Meeting::New;
        };
        let same = there.bytes == held.bytes;
        if held.preference() < there.preference() {
            self.cost = self.cost + held.bytes.len() - there.bytes.len();
            core::mem::swap(there, &mut held);
        }
        if same { Meeting::Duplicate } else { Meeting::Differs(held) }
    }

    /// The packets in sequence: beginning after the widest gap in their counts.
    pub fn into_sequence(mut self) -> impl Iterator<Item = Held> {
        let start = self.start();
        let after = self.packets.split_off(&start);
        after.into_values().chain(self.packets.into_values())
    }

    /// The count that the sequence begins with.
    fn start(&self) -> u16 {
        let Some(last) = self.packets.keys().next_back() else { return 0 };
        // From the greatest count over the wrap to the least, then each to the next.
        let mut before = i32::from(*last) - COUNTS;
        let mut widest = (0, 0);
        for count in self.packets.keys() {
            let gap = i32::from(*count) - before;
            if gap > widest.0 {
                widest = (gap, *count);
            }
            before = i32::from(*count);
        }
        widest.1
    }
}

/// Memory of a run beyond its packets, in bytes: a map's first node, which has room for eleven.
const RUN_COST: usize = 512;
/// Sequence counts are modulo this (CCSDS 133.0-B-2 4.1.3.4.3).
const COUNTS: i32 = 1 << 14;

/// Runs by slot, with the memory they take.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: BTreeMap<Slot, Run>,
    cost: usize,
}

impl Runs {
    pub fn insert(&mut self, slot: Slot, held: Held) -> Meeting {
        let run = self.runs.entry(slot).or_default();
        let before = run.cost;
        let meeting = run.insert(held);
        self.cost = self.cost + run.cost - before;
        meeting
    }

    pub fn first(&self) -> Option<Slot> {
        self.runs.first_key_value().map(|(slot, _)| *slot)
    }

    pub fn pop_first(&mut self) -> Option<(Slot, Run)> {
        let (slot, run) = self.runs.pop_first()?;
        self.cost -= run.cost;
        Some((slot, run))
    }

    pub const fn cost(&self) -> usize {
        self.cost
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

/// How far the stream of packet times has come: the least of the last few, so that one packet with a time ahead
/// of its place does not make all the others late.
#[derive(Debug, Clone)]
pub(crate) struct Frontier {
    last: [Utc; RECENT],
    next: usize,
}

/// 16 packets: a burst of wrong times that long in a row is a clock that was set.
const RECENT: usize = 16;

impl Default for Frontier {
    fn default() -> Self {
        Self { last: [Utc::from_nanos(i64::MIN); RECENT], next: 0 }
    }
}

impl Frontier {
    pub fn pass(&mut self, time: Utc) {
        self.last[self.next] = time;
        self.next = (self.next + 1) % RECENT;
    }

    pub fn time(&self) -> Utc {
        self.last.into_iter().min().expect("the array is not empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(count: u16, bytes: &[u8], quality: PacketQuality) -> Held {
        let received = Utc::from_nanos(0);
        Held { apid: Apid::MAX, count, vcid: Vcid::MAX, quality, received, bytes: bytes.into() }
    }

    fn sequence(counts: &[u16]) -> Vec<u16> {
        let mut run = Run::default();
        for count in counts {
            assert_eq!(run.insert(held(*count, &[], PacketQuality::default())), Meeting::New);
        }
        run.into_sequence().map(|held| held.count).collect()
    }

    #[test]
    fn a_run_is_in_sequence_over_the_wrap_of_the_count() {
        assert_eq!(sequence(&[2, 0, 1]), [0, 1, 2]);
        assert_eq!(sequence(&[0, 16_383, 1, 16_382]), [16_382, 16_383, 0, 1]);
        assert_eq!(sequence(&[9_000, 8_190]), [8_190, 9_000]);
        assert_eq!(sequence(&[7]), [7]);
        assert_eq!(sequence(&[]), [0u16; 0]);
    }

    #[test]
    fn the_better_copy_stays_whichever_came_first() {
        for swap in [false, true] {
            let mut copies =
                [held(5, b"clean", PacketQuality::default()), held(5, b"badly", PacketQuality::from_bits(2))];
            if swap {
                copies.reverse();
            }
            let mut run = Run::default();
            let [first, second] = copies;
            assert_eq!(run.insert(first), Meeting::New);
            let Meeting::Differs(out) = run.insert(second) else { panic!("same place, other bytes") };
            assert_eq!(&out.bytes[..], b"badly");
            assert_eq!(run.insert(held(5, b"clean", PacketQuality::from_bits(1))), Meeting::Duplicate);
            assert_eq!(run.into_sequence().next(), Some(held(5, b"clean", PacketQuality::default())));
        }
    }

    #[test]
    fn what_is_held_is_what_was_put_in() {
        let mut runs = Runs::default();
        let slot = |time| Slot { time: Utc::from_nanos(time), rank: 0 };
        runs.insert(slot(2), held(0, b"abc", PacketQuality::from_bits(2)));
        runs.insert(slot(1), held(1, b"abc", PacketQuality::default()));
        runs.insert(slot(2), held(0, b"abcdef", PacketQuality::default()));
        let packets = [&b"abc"[..], b"abcdef"].map(|bytes| held(0, bytes, PacketQuality::default()).cost());
        assert_eq!(runs.cost(), packets.iter().sum::<usize>() + 2 * RUN_COST);
        assert_eq!(runs.pop_first().unwrap().0, slot(1));
        assert_eq!(runs.pop_first().unwrap().0, slot(2));
        assert_eq!(runs.cost(), 0);
    }

    #[test]
    fn one_time_ahead_does_not_move_the_frontier() {
        let mut frontier = Frontier::default();
        for time in 0..100 {
            frontier.pass(Utc::from_nanos(if time == 50 { 1_000_000 } else { time }));
        }
        assert_eq!(frontier.time(), Utc::from_nanos(100 - RECENT as i64));
    }
}
