//! The construction record of a product, from its account.

use crate::construction::{
    ApidEntry, ApidSpan, ConstructionRecord, FileEntry, FileSetTotals, FillEntry, FixedText,
    GapEntry, RECORD_APIDS, RecordTime, SoftwareVersion, SpacecraftApid, SpacecraftVcid, Span,
};
use crate::gaps::{ApidAccount, Filled, Gap, PacketTimestamps};
use crate::naming::{FileNumber, ProductName};
use crate::packet_file::Account;
use crate::publish::Publication;
use skyhaul_ccsds::id::{Apid, Scid};
use skyhaul_units::ByteCount;

impl Publication<'_> {
    /// The construction record of the product called `name`.
    pub(crate) fn construction_record(
        &self,
        name: ProductName,
        account: &Account,
    ) -> ConstructionRecord {
        let scid = self.scid;
        let listed: Vec<_> = account.apids.iter().take(RECORD_APIDS).collect();
        let spans = listed.iter().map(|(apid, account)| ApidSpan {
            stream: SpacecraftApid::new(scid.value(), apid.value()),
            packet_times: packet_times(account.first, account.last),
        });
        let text = |name: ProductName| {
            FixedText::new(&name.to_string()).expect("a product name is 40 characters")
        };
        let files = vec![
            FileEntry { name: text(name), apids: Vec::new() },
            FileEntry { name: text(name.file(FileNumber::PACKETS)), apids: spans.collect() },
        ];
        let session = |contact: &crate::report::ContactReport| Span {
            first: RecordTime::cds(contact.opened),
            last: RecordTime::cds(contact.closed),
        };
        ConstructionRecord {
            software: SoftwareVersion { major: MAJOR, minor: MINOR },
            kind: self.kind,
            id: FixedText::new(&name.stem())
                .expect("a product name without its suffix is 36 characters"),
            test: self.is_test,
            sessions: self.contacts.iter().map(session).collect(),
            totals: totals(account),
            completed: RecordTime::cds(self.naming.created),
            apids: listed.iter().map(|(apid, account)| apid_entry(scid, **apid, account)).collect(),
            files,
        }
    }
}

fn totals(account: &Account) -> FileSetTotals {
    let first = account.first.map_or(RecordTime::NONE, reception);
    let last = account.last.map_or(RecordTime::NONE, reception);
    FileSetTotals {
        fill: ByteCount::new(account.apids.values().map(|apid| apid.fill.octets).sum()),
        length_discrepancies: count32(
            account.apids.values().map(|apid| apid.fill.length_differs).sum(),
        ),
        packet_times: Span {
            first: account.first.map_or(RecordTime::NONE, packet_time),
            last: account.last.map_or(RecordTime::NONE, packet_time),
        },
        reception: Span { first, last },
        corrected_packets: count32(account.corrected_packets),
        packets: count32(account.packets),
        size: account.size,
        gaps: count32(account.apids.values().map(|apid| apid.gap_count).sum()),
    }
}

fn apid_entry(scid: Scid, apid: Apid, account: &ApidAccount) -> ApidEntry {
    ApidEntry {
        stream: SpacecraftApid::new(scid.value(), apid.value()),
        first_offset: account.first_offset,
        vcids: account
            .vcids
            .iter()
            .map(|vcid| SpacecraftVcid::new(scid.value(), vcid.value()))
            .collect(),
        gaps: account.gaps.iter().map(gap_entry).collect(),
        fill: account.fill.list.iter().map(fill_entry).collect(),
        fill_octets: ByteCount::new(account.fill.octets),
        length_discrepancies: account
            .fill
            .length_list
            .iter()
            .map(|count| u32::from(*count))
            .collect(),
        packet_times: packet_times(account.first, account.last),
        reception: Span { first: reception(account.first), last: reception(account.last) },
        corrected_packets: count32(account.corrected_packets),
        packets: count32(account.packets),
        size: account.bytes,
    }
}

fn gap_entry(gap: &Gap) -> GapEntry {
    GapEntry {
        first_missing: u32::from(gap.first_missing),
        offset: ByteCount::new(gap.offset),
        missed: u32::from(gap.missed),
        packet_times: packet_times(gap.preceding, gap.following),
        reception: Span { first: reception(gap.preceding), last: reception(gap.following) },
    }
}

fn fill_entry(fill: &Filled) -> FillEntry {
    FillEntry {
        sequence_count: u32::from(fill.count),
        offset: ByteCount::new(fill.offset),
        first_fill: fill.first_fill,
    }
}

fn packet_times(first: PacketTimestamps, last: PacketTimestamps) -> Span {
    Span { first: packet_time(first), last: packet_time(last) }
}

fn packet_time(stamp: PacketTimestamps) -> RecordTime {
    stamp.time.map_or(RecordTime::NONE, RecordTime::cds)
}

fn reception(stamp: PacketTimestamps) -> RecordTime {
    RecordTime::cds(stamp.received)
}

/// Held at what the record has room for; the sidecar has the whole count.
fn count32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

const MAJOR: u8 = version(env!("CARGO_PKG_VERSION_MAJOR"));
const MINOR: u8 = version(env!("CARGO_PKG_VERSION_MINOR"));

/// A version number from the manifest, held at 255.
const fn version(text: &str) -> u8 {
    let mut number = 0u8;
    let mut at = 0;
    while at < text.len() {
        number = number.saturating_mul(10).saturating_add(text.as_bytes()[at] - b'0');
        at += 1;
    }
    number
}
