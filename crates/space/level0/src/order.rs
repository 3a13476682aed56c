//! The order of packets in a product: by time, then by the product's order of APIDs, then by
//! sequence count. APIDs that share a sequence counter have one place in the order of APIDs: the
//! count shows which packet was first.
//!
//! Packets that share time and counter form a run: a packet group in which only the first packet
//! has a time, or several packets with one time stamp ([`crate::batch`]).

use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_ccsds::mission::{ApidRange, Counters};
use skyhaul_units::Utc;

/// The place of packets: those that share a slot form a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// The packet's time, or that of the packet its group began with.
    pub time: Utc,
    /// Place of the APID's counter in the product.
    pub rank: u16,
}

/// The order of APIDs in a product: as listed in the mission, or by number without a list; those
/// that share a counter have the place of the first of them.
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

/// Whether a contact was in the previous version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// It had, or there was none.
    Known,
    /// It was not: its packets are changes.
    New,
}

/// The reliability of a packet: a bit for each defect of a frame with a part of it. If a product is
/// made again, also whether the packet is from a contact that was not in the previous version, and
/// which copies it represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketQuality(u8);

/// The relation of a packet to the previous version of its product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was in there, with the same quality.
    None,
    /// It was not there.
    Added,
    /// A worse copy of it was in there.
    Improved,
}

impl PacketQuality {
    const CORRECTED: u8 = 1;
    const UNCHECKED: u8 = 2;
    const LENGTH_DIFFERS: u8 = 4;
    const FILLED: u8 = 8;
    /// The bits that say how good it is.
    const RANK: u8 = 0x1F;
    /// There was a copy of the same quality from a known contact.
    const AS_GOOD_KNOWN: u8 = 0x20;
    /// There was a copy from a known contact.
    const KNOWN: u8 = 0x40;
    /// It is from a contact that was not in the previous version.
    const LATER: u8 = 0x80;

    pub fn of(packet: &ExtractedPacket) -> Self {
        let corrected = if packet.from_corrected { Self::CORRECTED } else { 0 };
        let unchecked = if packet.from_unchecked { Self::UNCHECKED } else { 0 };
        let length_differs = if packet.length_differs { Self::LENGTH_DIFFERS } else { 0 };
        let filled = if packet.fill > 0 { Self::FILLED } else { 0 };
        Self(corrected | unchecked | length_differs | filled)
    }
    /// Its quality; greater is worse. Its contact makes no difference.
    pub const fn rank(self) -> u8 {
        self.0 & Self::RANK
    }
    /// The same, marked if its contact was not in the previous version.
    pub const fn with_novelty(self, novelty: Novelty) -> Self {
        match novelty {
            Novelty::Known => self,
            Novelty::New => Self(self.0 | Self::LATER),
        }
    }
    /// The same, representing also another copy, which is not better.
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
    /// Its relation to the previous version.
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
    /// Whether its end by a frame's pointer differs from the length in its header.
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
    /// Missing octets at its end.
    pub fill: u32,
    pub bytes: &'a [u8],
}

impl Held<'_> {
    /// Decides between two packets for one place in a product: the better copy, or else any fixed
    /// choice.
    pub const fn preference(&self) -> (u8, u32, &[u8], Utc, Vcid) {
        (self.quality.rank(), self.fill, self.bytes, self.received, self.vcid)
    }
    /// The beginning of its fill; its length if there is none.
    pub const fn first_fill(&self) -> usize {
        self.bytes.len().saturating_sub(self.fill as usize)
    }
    /// Whether the other is the same packet, compared up to the fill of either.
    pub fn is_same(&self, other: &Self) -> bool {
        let came = self.first_fill().min(other.first_fill());
        self.bytes.len() == other.bytes.len() && self.bytes[..came] == other.bytes[..came]
    }
}

/// The present time of the stream of packets: the least of the last few packet times, so that one
/// packet with a time too far ahead does not make all the others late.
#[derive(Debug, Clone)]
pub(crate) struct Frontier {
    last: [Utc; RECENT],
    next: usize,
}

/// 16 packets: a longer burst of wrong times means that the clock was set.
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
