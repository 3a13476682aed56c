//! What there is of an APID in a product, and what is missing.
//!
//! Where several APIDs share a counter, a break is with the APID of the packet after it: the count says that packets
//! are missing, not whose they were.

use crate::order::Held;
use skyhaul_ccsds::count::{Modulus, Step};
use skyhaul_ccsds::id::Vcid;
use skyhaul_units::{Bytes, Utc};
use std::collections::BTreeSet;

/// A break in the sequence count of an APID, or of the counter that it shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// Sequence count of the first packet missed.
    pub first_missing: u16,
    /// Packets missed, up to half the range of the count.
    pub missed: u16,
    /// Offset in the packet file of the packet after the break, in bytes.
    pub offset: u64,
    /// The packet before the break, of whichever APID that shares the counter.
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
}

/// The packet that a counter showed last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub count: u16,
    pub stamp: Stamp,
}

impl ApidAccount {
    /// Nothing yet; `first` is the first packet, at `offset` in the packet file.
    pub const fn new(first: Stamp, offset: Bytes) -> Self {
        Self {
            packets: 0,
            bytes: Bytes::ZERO,
            corrected_packets: 0,
            first_offset: offset,
            vcids: BTreeSet::new(),
            first,
            last: first,
            gaps: Vec::new(),
            gap_count: 0,
            missing: 0,
            resets: 0,
        }
    }

    /// Counts how the next packet, at `offset`, follows `before`, the one that its counter showed last: of this APID,
    /// or of another that shares the counter. Returns the break, if there is one.
    pub fn follow(&mut self, before: Last, next: Last, offset: Bytes) -> Option<Gap> {
        let expected = Modulus::PACKET.after(u64::from(before.count));
        match Modulus::PACKET.step(u64::from(before.count), u64::from(next.count)) {
            Step::Next => None,
            Step::Same | Step::Back => {
                self.resets += 1;
                None
            }
            Step::Gap { missing } => {
                self.gap_count += 1;
                self.missing += missing;
                Some(Gap {
                    first_missing: expected as u16,
                    missed: missing as u16,
                    offset: offset.as_u64(),
                    preceding: before.stamp,
                    following: next.stamp,
                })
            }
        }
    }

    /// Counts a packet.
    pub fn add(&mut self, held: &Held<'_>, stamp: Stamp) {
        self.packets += 1;
        self.bytes += Bytes::of(held.bytes.len());
        self.corrected_packets += u64::from(held.quality.is_corrected());
        if !self.vcids.contains(&held.vcid) {
            self.vcids.insert(held.vcid);
        }
        self.last = stamp;
    }
}

/// Gaps that one product lists, with 72 bytes each; further ones are counted only. A five-minute pass at
/// 15 Mbit/s with 1 % of its frames lost has about 6000.
pub(crate) const LISTED_GAPS: usize = 16_384;
