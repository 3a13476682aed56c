//! A construction record to bytes.

use super::entry::APID_SPAN;
use super::{ApidEntry, ConstructionRecord, FileEntry, ProductKind, SpacecraftApid, Span};

/// Why a record cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a construction record has room for {most} {what} and was given {given}; split the product"
)]
pub struct WriteError {
    what: &'static str,
    most: usize,
    given: usize,
}

impl ConstructionRecord {
    /// The record's bytes; refused where a list is longer than its count can say.
    pub fn write(&self) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::with_capacity(self.encoded_len());
        let kind = match self.kind {
            ProductKind::Pds => 1,
            ProductKind::Eds => 2,
            ProductKind::QuickLookEds => 3,
        };
        out.extend([self.software.major, self.software.minor, kind, 0]);
        out.extend(self.id.as_bytes());
        out.push(u8::from(self.test));
        out.extend([0; 9]);
        let sessions = u16::try_from(self.sessions.len())
            .map_err(|_| refuse("contact sessions", usize::from(u16::MAX), self.sessions.len()))?;
        out.extend(sessions.to_be_bytes());
        self.sessions.iter().for_each(|session| span(&mut out, session));
        self.write_totals(&mut out);
        out.extend(self.completed.0);
        out.extend([0; 7]);
        out.push(count8("APIDs", self.apids.len())?);
        for apid in &self.apids {
            write_apid(&mut out, apid)?;
        }
        out.extend([0; 3]);
        out.push(count8("files", self.files.len())?);
        for file in &self.files {
            write_file(&mut out, file)?;
        }
        debug_assert_eq!(out.len(), self.encoded_len());
        Ok(out)
    }

    fn write_totals(&self, out: &mut Vec<u8>) {
        let totals = &self.totals;
        out.extend(totals.fill.as_u64().to_be_bytes());
        out.extend(totals.length_discrepancies.to_be_bytes());
        span(out, &totals.packet_times);
        span(out, &totals.reception);
        out.extend(totals.corrected_packets.to_be_bytes());
        out.extend(totals.packets.to_be_bytes());
        out.extend(totals.size.as_u64().to_be_bytes());
        out.extend(totals.gaps.to_be_bytes());
    }
}

fn write_apid(out: &mut Vec<u8>, apid: &ApidEntry) -> Result<(), WriteError> {
    out.push(0);
    stream(out, apid.stream);
    out.extend(apid.first_offset.as_u64().to_be_bytes());
    out.extend([0; 3]);
    out.push(count8("virtual channels of an APID", apid.vcids.len())?);
    for vcid in &apid.vcids {
        out.extend([0; 2]);
        out.extend(vcid.bits().to_be_bytes());
    }
    out.extend(count32("gaps of an APID", apid.gaps.len())?);
    for gap in &apid.gaps {
        out.extend(gap.first_missing.to_be_bytes());
        out.extend(gap.offset.as_u64().to_be_bytes());
        out.extend(gap.missed.to_be_bytes());
        span(out, &gap.packet_times);
        span(out, &gap.reception);
    }
    out.extend(count32("fill entries of an APID", apid.fill.len())?);
    for fill in &apid.fill {
        out.extend(fill.sequence_count.to_be_bytes());
        out.extend(fill.offset.as_u64().to_be_bytes());
        out.extend(fill.first_fill.to_be_bytes());
    }
    out.extend(apid.fill_octets.as_u64().to_be_bytes());
    out.extend(count32("length discrepancies of an APID", apid.length_discrepancies.len())?);
    for discrepancy in &apid.length_discrepancies {
        out.extend(discrepancy.to_be_bytes());
    }
    span(out, &apid.packet_times);
    span(out, &apid.reception);
    out.extend(apid.corrected_packets.to_be_bytes());
    out.extend(apid.packets.to_be_bytes());
    out.extend(apid.size.as_u64().to_be_bytes());
    out.extend([0; 8]);
    Ok(())
}

fn write_file(out: &mut Vec<u8>, file: &FileEntry) -> Result<(), WriteError> {
    out.extend(file.name.as_bytes());
    out.extend([0; 3]);
    out.push(count8("APIDs of a file", file.apids.len())?);
    if file.apids.is_empty() {
        out.extend([0; APID_SPAN]);
    }
    for apid in &file.apids {
        out.push(0);
        stream(out, apid.stream);
        span(out, &apid.packet_times);
        out.extend([0; 4]);
    }
    Ok(())
}

fn stream(out: &mut Vec<u8>, stream: SpacecraftApid) {
    out.extend(&stream.bits().to_be_bytes()[1..]);
}

fn span(out: &mut Vec<u8>, span: &Span) {
    out.extend(span.first.0);
    out.extend(span.last.0);
}

fn count8(what: &'static str, given: usize) -> Result<u8, WriteError> {
    u8::try_from(given).map_err(|_| refuse(what, usize::from(u8::MAX), given))
}

fn count32(what: &'static str, given: usize) -> Result<[u8; 4], WriteError> {
    let count = u32::try_from(given).map_err(|_| refuse(what, u32::MAX as usize, given))?;
    Ok(count.to_be_bytes())
}

const fn refuse(what: &'static str, most: usize, given: usize) -> WriteError {
    WriteError { what, most, given }
}
