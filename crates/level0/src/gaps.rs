//! What there is of an APID in a product, and what is missing.

use crate::order::Held;
use skyhaul_ccsds::count::{Modulus, Step};
use skyhaul_ccsds::id::Vcid;
use skyhaul_units::{Bytes, Utc};
use std::collections::BTreeSet;

/// A break in an APID's sequence count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// Sequence count of the first packet missed.
    pub first_missing: u16,
    /// Packets missed, up to half the range of the count.
    pub missed: u16,
    /// Offset in the packet file of the packet after the break, in bytes.
    pub offset: u64,
    /// The packet before the break.
    pub preceding: Stamp,
    /// The packet after the break.
    pub following: Stamp,
}

/// When a packet was made and when it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Stamp {
    /// Spacecraft time of the packet or of its group; none where the APID has no time code.
    pub time: Option<Utc>,
    /// Ground reception.
    pub received: Utc,
}

/// What there is of one APID.
#[derive(Debug, Clone)]
pub(crate) struct ApidAccount {
    pub packets: u64,
    pub bytes: Bytes,
    pub corrected_packets: u64,
    pub first_offset: Bytes,
    pub vcids: BTreeSet<Vcid>,
    pub first: Stamp,
    pub last: Stamp,
    /// The listed breaks; `gap_count` counts all.
    pub gaps: Vec<Gap>,
    pub gap_count: u64,
    /// The sum of all gaps, in packets.
    pub missing: u64,
    /// Counts that repeated or went back: a reset of the counter or a replay, not a gap.
    pub resets: u64,
    last_count: u16,
}

impl ApidAccount {
    /// Begins with the first packet, at `offset` in the packet file.
    pub fn new(held: &Held, time: Option<Utc>, offset: Bytes) -> Self {
        let stamp = Stamp { time, received: held.received };
        let mut account = Self {
            packets: 0,
            bytes: Bytes::ZERO,
            corrected_packets: 0,
            first_offset: offset,
            vcids: BTreeSet::new(),
            first: stamp,
            last: stamp,
            gaps: Vec::new(),
            gap_count: 0,
            missing: 0,
            resets: 0,
            last_count: held.count,
        };
        account.add(held, stamp);
        account
    }

    /// Takes account of the next packet in the product's order. Returns whether it listed a gap, of which
    /// `listed` are in the product's list already.
    pub fn next(&mut self, held: &Held, time: Option<Utc>, offset: Bytes, listed: usize) -> bool {
        let stamp = Stamp { time, received: held.received };
        let preceding = self.last;
        let expected = Modulus::PACKET.after(u32::from(self.last_count));
        let step = Modulus::PACKET.step(u32::from(self.last_count), u32::from(held.count));
        self.add(held, stamp);
        match step {
            Step::Next => false,
            Step::Same | Step::Back => {
                self.resets += 1;
                false
            }
            Step::Gap { missing } => {
                self.gap_count += 1;
                self.missing += u64::from(missing);
                if listed >= LISTED_GAPS {
                    return false;
                }
                self.gaps.push(Gap {
                    first_missing: expected as u16,
                    missed: missing as u16,
                    offset: offset.as_u64(),
                    preceding,
                    following: stamp,
                });
                true
            }
        }
    }

    fn add(&mut self, held: &Held, stamp: Stamp) {
        self.packets += 1;
        self.bytes += Bytes::of(held.bytes.len());
        self.corrected_packets += u64::from(held.quality.is_corrected());
        self.vcids.insert(held.vcid);
        self.last = stamp;
        self.last_count = held.count;
    }
}

/// Gaps that one product lists, with 72 bytes each; further ones are counted only. A five-minute pass at
/// 15 Mbit/s with 1 % of its frames lost has about 6000.
pub(crate) const LISTED_GAPS: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PacketQuality;
    use skyhaul_ccsds::id::Apid;

    fn held(count: u16) -> Held {
        let received = Utc::from_nanos(i64::from(count));
        Held {
            apid: Apid::MAX,
            count,
            vcid: Vcid::MAX,
            quality: PacketQuality::from_bits(1),
            received,
            bytes: [0; 10].into(),
        }
    }

    #[test]
    fn missing_is_the_sum_of_gaps_over_the_wrap_and_resets_are_apart() {
        let counts = [16_381u16, 16_382, 2, 3, 3, 10, 4];
        let mut account = ApidAccount::new(&held(counts[0]), None, Bytes::ZERO);
        for (at, count) in counts.iter().enumerate().skip(1) {
            account.next(&held(*count), None, Bytes::new(10 * at as u64), account.gaps.len());
        }
        let gaps: Vec<_> =
            account.gaps.iter().map(|gap| (gap.first_missing, gap.missed, gap.offset)).collect();
        assert_eq!(gaps, [(16_383, 3, 20), (4, 6, 50)]);
        assert_eq!((account.gap_count, account.missing, account.resets), (2, 9, 2));
        assert_eq!((account.packets, account.bytes, account.corrected_packets), (7, Bytes::new(70), 7));
        assert_eq!(account.gaps[0].preceding.received, Utc::from_nanos(16_382));
        assert_eq!(account.gaps[0].following.received, Utc::from_nanos(2));
    }

    #[test]
    fn a_full_list_still_counts() {
        let mut account = ApidAccount::new(&held(0), None, Bytes::ZERO);
        assert!(!account.next(&held(5), None, Bytes::ZERO, LISTED_GAPS));
        assert_eq!((account.gaps.len(), account.gap_count, account.missing), (0, 1, 4));
    }
}
