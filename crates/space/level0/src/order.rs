//! The order of packets in a product: by time, then by the product's order of APIDs, then by
//! sequence count. APIDs that share a sequence counter have one place in the order of APIDs: the
//! count tells which packet was first.
//!
//! Packets that share time and counter make a run: a packet group of which only the first packet
//! has a time, or several packets with one time stamp ([`crate::batch`]).

use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_ccsds::mission::{ApidRange, Counters};
use skyhaul_units::Utc;

/// Where packets go: those that share a slot make a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// The packet's time, or that of the packet its group began with.
    pub time: Utc,
    /// Place of the APID's counter in the product.
    pub rank: u16,
}

/// The order of APIDs in a product: as the mission lists them, or by number where it lists none;
/// those that share a counter go where the first of them goes.
#[derive(Debug, Clone)]
pub(crate) struct ApidOrder {
    /// By APID.
    ranks: Box<[u16]>,
    counters: Counters,
}

impl ApidOrder {
    pub fn new(listed: &[ApidRange], counters: &Counters) -> Self {
        let all =
            (0..=Apid::MAX.value()).map(|value| rank(listed, counters.of(Apid::from_bits(value))));
        Self { ranks: all.collect(), counters: counters.clone() }
    }

    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn rank(&self, apid: Apid) -> u16 {
        self.ranks[usize::from(apid.value())]
    }
}

fn rank(listed: &[ApidRange], apid: Apid) -> u16 {
    let mut before = 0;
    for range in listed {
        let (first, last) = (range.first.value(), range.last.value());
        if range.contains(apid) {
            return before + (apid.value() - first);
        }
        // Ranges may overlap: the sum is held within the type, where only ties could follow.
        before =
            before.saturating_add(last.saturating_sub(first) + 1).min(u16::MAX - Apid::MAX.value());
    }
    before + apid.value()
}

/// Whether the version before had a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// It had, or there was none.
    Known,
    /// It had not: what comes from it is a change.
    New,
}

/// How far a packet can be trusted: a bit for each thing that happened to a frame it came in. And
/// where a product is made again: whether it is from a contact that the version before did not
/// have, and which copies it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketQuality(u8);

/// What a packet is to the version of its product that came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was there, as good as it is now.
    None,
    /// It was not there.
    Added,
    /// A worse copy of it was there.
    Improved,
}

impl PacketQuality {
    const CORRECTED: u8 = 1;
    const UNCHECKED: u8 = 2;
    const LENGTH_DIFFERS: u8 = 4;
    const FILLED: u8 = 8;
    /// The bits that say how good it is.
    const RANK: u8 = 0x1F;
    /// A copy from a known contact was as good.
    const AS_GOOD_KNOWN: u8 = 0x20;
    /// There was a copy from a known contact.
    const KNOWN: u8 = 0x40;
    /// It is from a contact that the version before did not have.
    const LATER: u8 = 0x80;

    pub fn of(packet: &ExtractedPacket) -> Self {
        let corrected = if packet.from_corrected { Self::CORRECTED } else { 0 };
        let unchecked = if packet.from_unchecked { Self::UNCHECKED } else { 0 };
        let length_differs = if packet.length_differs { Self::LENGTH_DIFFERS } else { 0 };
        let filled = if packet.fill > 0 { Self::FILLED } else { 0 };
        Self(corrected | unchecked | length_differs | filled)
    }
    /// How good it is; greater is worse. Where it comes from makes no difference.
    pub const fn rank(self) -> u8 {
        self.0 & Self::RANK
    }
    /// The same, marked where the version before did not have its contact.
    pub const fn with_novelty(self, novelty: Novelty) -> Self {
        match novelty {
            Novelty::Known => self,
            Novelty::New => Self(self.0 | Self::LATER),
        }
    }
    /// The same, standing for another copy too, which is no better.
    pub const fn standing_for(self, other: Self) -> Self {
        if self.0 & Self::LATER == 0 {
            return self;
        }
        let known = if other.0 & Self::LATER == 0 {
            Self::KNOWN | Self::AS_GOOD_KNOWN
        } else {
            other.0 & (Self::KNOWN | Self::AS_GOOD_KNOWN)
        };
        let worse = if self.rank() == other.rank() { 0 } else { Self::AS_GOOD_KNOWN };
        Self(self.0 | (known & !worse))
    }
    /// What it is to the version before.
    pub const fn change(self) -> Change {
        if self.0 & Self::LATER == 0 || self.0 & Self::AS_GOOD_KNOWN != 0 {
            Change::None
        } else if self.0 & Self::KNOWN == 0 {
            Change::Added
        } else {
            Change::Improved
        }
    }
    /// Whether a frame needed Reed-Solomon correction.
    pub const fn is_corrected(self) -> bool {
        self.0 & Self::CORRECTED != 0
    }
    /// Whether a frame had it end elsewhere than its header does.
    pub const fn length_differs(self) -> bool {
        self.0 & Self::LENGTH_DIFFERS != 0
    }
    pub const fn bits(self) -> u8 {
        self.0
    }
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// A packet on its way into a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held<'a> {
    pub apid: Apid,
    pub count: u16,
    pub vcid: Vcid,
    pub quality: PacketQuality,
    /// When its first frame was received on the ground.
    pub received: Utc,
    /// Octets at its end that did not come.
    pub fill: u32,
    pub bytes: &'a [u8],
}

impl Held<'_> {
    /// What decides between two packets of one place in a product: the better copy, else any fixed
    /// choice.
    pub const fn preference(&self) -> (u8, u32, &[u8], Utc, Vcid) {
        (self.quality.rank(), self.fill, self.bytes, self.received, self.vcid)
    }
    /// Where its fill begins; its length where there is none.
    pub const fn first_fill(&self) -> usize {
        self.bytes.len().saturating_sub(self.fill as usize)
    }
    /// Whether the other is the same packet, as far as both came.
    pub fn is_same(&self, other: &Self) -> bool {
        let came = self.first_fill().min(other.first_fill());
        self.bytes.len() == other.bytes.len() && self.bytes[..came] == other.bytes[..came]
    }
}

/// How far the stream of packet times has come: the least of the last few, so that one packet with
/// a time ahead of its place does not make all the others late.
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

    #[test]
    fn one_time_ahead_does_not_move_the_frontier() {
        let mut frontier = Frontier::default();
        for time in 0..100 {
            frontier.pass(Utc::from_nanos(if time == 50 { 1_000_000 } else { time }));
        }
        assert_eq!(frontier.time(), Utc::from_nanos(100 - RECENT as i64));
    }
}
