//! A finished product to its files: packets, packets set aside, account, and last the construction record, so that
//! who sees the record sees everything.

use crate::aside::Aside;
use crate::construction::{
    ApidEntry, ApidSpan, ConstructionRecord, FileEntry, GapEntry, ProductKind, RecordTime, SoftwareVersion,
    SpacecraftApid, SpacecraftVcid, Span, Text, Totals,
};
use crate::contact::{Close, ContactInfo};
use crate::files::{Error, Files};
use crate::gaps::{ApidAccount, Gap, Stamp};
use crate::naming::{FileNumber, ProductName};
use crate::packet_file::{Account, flushed, hex};
use crate::product::{Finished, Tally};
use crate::report::{
    Accounting, ApidReport, AsideReport, ContactReport, FORMAT, FrameReport, Product, ProductFile,
    ProductReport, Sidecar,
};
use sha2::{Digest, Sha256};
use skyhaul_ccsds::id::{Apid, Scid};
use skyhaul_units::Bytes;
use std::io::Write;

/// What a product's files say of the contact.
pub(crate) struct Publication<'a> {
    pub mission: &'a str,
    pub contact: &'a ContactInfo,
    pub close: &'a Close,
    pub frames: &'a FrameReport,
}

impl Publication<'_> {
    /// Publishes a product under `name`, the construction record's.
    pub fn publish<F: Files>(
        &self,
        files: &mut F,
        finished: Finished<F>,
        name: ProductName,
    ) -> Result<Product, Error> {
        let record_working = format!("{}.record", finished.plan.prefix);
        let account_working = format!("{}.account", finished.plan.prefix);
        let packets = finished.packets;
        let account = &packets.account;
        let is_empty = account.packets == 0;
        let packet_file = if is_empty {
            drop(packets.file);
            files.remove(&packets.working).map_err(Error::on("remove", &packets.working))?;
            None
        } else {
            let name = name.file(FileNumber::PACKETS).to_string();
            files.publish(packets.file, &packets.working, &name).map_err(Error::on("publish", &name))?;
            Some(ProductFile { name, bytes: account.size.as_u64(), sha256: packets.sha256 })
        };
        let aside_name = format!("{}.aside", name.stem());
        let accounting = accounting(&finished.tally, &finished.aside, account, finished.late_packets);
        let sidecar = Sidecar {
            format: FORMAT,
            contact: self.contact_report(),
            product: ProductReport {
                name: finished.plan.name,
                sorted_by: finished.plan.sorted_by,
                created: name.created(),
                construction_record: (!is_empty).then(|| name.to_string()),
                packet_file: packet_file.clone(),
                first: account.first,
                last: account.last,
            },
            accounting,
            apids: account.apids.iter().map(|(apid, account)| ApidReport::new(*apid, account)).collect(),
            apids_not_in_construction_record: account.apids.len().saturating_sub(RECORD_APIDS) as u64,
            set_aside: publish_aside(files, finished.aside, aside_name)?,
            frames: self.frames.clone(),
        };
        let mut published: Vec<_> = packet_file.into_iter().chain(sidecar.set_aside.file.clone()).collect();
        let json = serde_json::to_vec_pretty(&sidecar).expect("the sidecar has text keys only");
        published.push(write_file(files, &account_working, format!("{}.json", name.stem()), &json)?);
        if !is_empty {
            let record = self.construction_record(name, account).write()?;
            published.push(write_file(files, &record_working, name.to_string(), &record)?);
        }
        Ok(Product { name, files: published, sidecar })
    }

    fn contact_report(&self) -> ContactReport {
        ContactReport {
            name: self.contact.contact.clone(),
            station: self.contact.station.clone(),
            mission: self.mission.to_owned(),
            scid: self.contact.scid,
            opened: self.contact.opened,
            closed: self.close.closed,
        }
    }

    fn construction_record(&self, name: ProductName, account: &Account) -> ConstructionRecord {
        let scid = self.contact.scid;
        let listed: Vec<_> = account.apids.iter().take(RECORD_APIDS).collect();
        let spans = listed.iter().map(|(apid, account)| ApidSpan {
            stream: SpacecraftApid::new(scid.value(), apid.value()),
            packet_times: packet_times(account.first, account.last),
        });
        let text = |name: ProductName| Text::new(&name.to_string()).expect("a product name is 40 characters");
        let files = vec![
            FileEntry { name: text(name), apids: Vec::new() },
            FileEntry { name: text(name.file(FileNumber::PACKETS)), apids: spans.collect() },
        ];
        let contact =
            Span { first: RecordTime::cds(self.contact.opened), last: RecordTime::cds(self.close.closed) };
        ConstructionRecord {
            software: SoftwareVersion { major: MAJOR, minor: MINOR },
            kind: ProductKind::Pds,
            id: Text::new(&name.stem()).expect("a product name without its suffix is 36 characters"),
            test: false,
            sessions: vec![contact],
            totals: totals(account),
            completed: RecordTime::cds(self.close.created),
            apids: listed.iter().map(|(apid, account)| apid_entry(scid, **apid, account)).collect(),
            files,
        }
    }
}

fn accounting<W: Write>(tally: &Tally, aside: &Aside<W>, account: &Account, late: u64) -> Accounting {
    let accounted =
        account.packets + tally.duplicates + aside.rejected + tally.outside_window + aside.packets;
    Accounting {
        received: tally.received,
        delivered: account.packets,
        duplicates: tally.duplicates,
        rejected: aside.rejected,
        outside_window: tally.outside_window,
        set_aside: aside.packets,
        late,
        balanced: tally.received == accounted,
        missing: account.apids.values().map(|apid| apid.missing).sum(),
        gaps: account.apids.values().map(|apid| apid.gap_count).sum(),
        corrected_packets: account.corrected_packets,
    }
}

fn publish_aside<F: Files>(
    files: &mut F,
    aside: Aside<F::Writer>,
    name: String,
) -> Result<AsideReport, Error> {
    let working = aside.working().to_owned();
    let mut report = AsideReport { file: None, reasons: aside.reasons, packets: aside.entries };
    if let Some(file) = aside.file {
        let file = flushed(file, &working)?;
        files.publish(file, &working, &name).map_err(Error::on("publish", &name))?;
        report.file =
            Some(ProductFile { name, bytes: aside.size.as_u64(), sha256: hex(&aside.hash.finalize()) });
    }
    Ok(report)
}

fn write_file<F: Files>(
    files: &mut F,
    working: &str,
    name: String,
    bytes: &[u8],
) -> Result<ProductFile, Error> {
    let mut file = files.create(working).map_err(Error::on("create", working))?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(Error::on("write", working))?;
    files.publish(file, working, &name).map_err(Error::on("publish", &name))?;
    let sha256 = hex(&Sha256::digest(bytes));
    Ok(ProductFile { name, bytes: bytes.len() as u64, sha256 })
}

fn totals(account: &Account) -> Totals {
    let first = account.first.map_or(RecordTime::NONE, reception);
    let last = account.last.map_or(RecordTime::NONE, reception);
    Totals {
        fill: Bytes::ZERO,
        length_discrepancies: 0,
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
        vcids: account.vcids.iter().map(|vcid| SpacecraftVcid::new(scid.value(), vcid.value())).collect(),
        gaps: account.gaps.iter().map(gap_entry).collect(),
        fill: Vec::new(),
        fill_octets: Bytes::ZERO,
        length_discrepancies: Vec::new(),
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
        offset: Bytes::new(gap.offset),
        missed: u32::from(gap.missed),
        packet_times: packet_times(gap.preceding, gap.following),
        reception: Span { first: reception(gap.preceding), last: reception(gap.following) },
    }
}

fn packet_times(first: Stamp, last: Stamp) -> Span {
    Span { first: packet_time(first), last: packet_time(last) }
}

fn packet_time(stamp: Stamp) -> RecordTime {
    stamp.time.map_or(RecordTime::NONE, RecordTime::cds)
}

fn reception(stamp: Stamp) -> RecordTime {
    RecordTime::cds(stamp.received)
}

/// Held at what the record has room for; the sidecar has the whole count.
fn count32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// APIDs that a construction record has room for: its count has 8 bits.
const RECORD_APIDS: usize = 255;
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
