//! Bytes to a construction record.

use super::entry::{APID_SPAN, DISCREPANCY, FILL, GAP, VCID};
use super::{
    ApidEntry, ApidSpan, ConstructionRecord, FileEntry, FileSetTotals, FillEntry, FixedText,
    GapEntry, ProductKind, RecordTime, SESSION, SoftwareVersion, SpacecraftApid, SpacecraftVcid,
    Span,
};
use skyhaul_units::ByteCount;
use skyhaul_units::wire::ByteReader;

/// Why bytes are not a construction record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConstructionRecordError {
    /// The counts in the record call for more bytes than there are.
    #[error(
        "construction record ends early: at byte {at} it calls for {needed} more, {left} are left; \
        fetch the file again"
    )]
    Truncated {
        /// Offset of the part that does not fit, in bytes.
        at: usize,
        /// Bytes that the part takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// The counts in the record call for fewer bytes than there are.
    #[error(
        "construction record should be {expected} bytes long by its own counts and is {actual}; it \
        is damaged or of another format"
    )]
    Length {
        /// Length by the record's counts.
        expected: usize,
        /// Length of the input.
        actual: usize,
    },
    /// The record's type is none of 1, 2, 3.
    #[error(
        "construction record type {0} is unknown (1 PDS, 2 EDS, 3 quick-look EDS); this is not a \
        construction record"
    )]
    Kind(u8),
    /// A name holds something else than printable ASCII.
    #[error(
        "the name at byte {at} of the construction record is not printable text; this is not a \
        construction record"
    )]
    Name {
        /// Offset of the name, in bytes.
        at: usize,
    },
}

impl ConstructionRecord {
    /// Reads a whole record. Never panics, and takes memory in proportion to `bytes` whatever
    /// counts it holds.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConstructionRecordError> {
        let mut reader = RecordFields { fields: ByteReader::new(bytes), at: 0 };
        let software = SoftwareVersion { major: reader.u8()?, minor: reader.u8()? };
        let kind = match reader.u8()? {
            1 => ProductKind::Pds,
            2 => ProductKind::Eds,
            3 => ProductKind::QuickLookEds,
            other => return Err(ConstructionRecordError::Kind(other)),
        };
        reader.skip(1)?;
        let id = reader.text()?;
        let test = reader.u8()? & 1 == 1;
        reader.skip(9)?;
        let count = usize::from(reader.u16()?);
        let sessions = reader.list(count, SESSION, RecordFields::span)?;
        let totals = reader.totals()?;
        let completed = reader.time()?;
        reader.skip(7)?;
        let count = usize::from(reader.u8()?);
        let apids = reader.list(count, super::entry::APID, RecordFields::apid)?;
        reader.skip(3)?;
        let count = usize::from(reader.u8()?);
        let files = reader.list(count, super::entry::FILE, RecordFields::file)?;
        if reader.at != bytes.len() {
            return Err(ConstructionRecordError::Length {
                expected: reader.at,
                actual: bytes.len(),
            });
        }
        Ok(Self { software, kind, id, test, sessions, totals, completed, apids, files })
    }
}

/// Reads the fields of a record one after the other, and knows where each lies.
struct RecordFields<'a> {
    fields: ByteReader<'a>,
    /// Offset of the next field.
    at: usize,
}

impl RecordFields<'_> {
    fn fits(&self, needed: usize) -> Result<(), ConstructionRecordError> {
        let left = self.fields.rest().len();
        if needed > left {
            return Err(ConstructionRecordError::Truncated { at: self.at, needed, left });
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ConstructionRecordError> {
        self.fits(N)?;
        let taken = self.fields.array().expect("the field fits");
        self.at += N;
        Ok(taken)
    }

    fn skip(&mut self, len: usize) -> Result<(), ConstructionRecordError> {
        self.fits(len)?;
        self.fields.take(len).expect("the field fits");
        self.at += len;
        Ok(())
    }

    /// `count` items of at least `least` bytes each: refused before anything is set apart for them.
    fn list<T>(
        &mut self,
        count: usize,
        least: usize,
        item: impl Fn(&mut Self) -> Result<T, ConstructionRecordError>,
    ) -> Result<Vec<T>, ConstructionRecordError> {
        self.fits(count.saturating_mul(least))?;
        (0..count).map(|_| item(self)).collect()
    }

    fn u8(&mut self) -> Result<u8, ConstructionRecordError> {
        Ok(self.take::<1>()?[0])
    }
    fn u16(&mut self) -> Result<u16, ConstructionRecordError> {
        Ok(u16::from_be_bytes(self.take()?))
    }
    fn u32(&mut self) -> Result<u32, ConstructionRecordError> {
        Ok(u32::from_be_bytes(self.take()?))
    }
    fn count(&mut self) -> Result<usize, ConstructionRecordError> {
        Ok(usize::try_from(self.u32()?).unwrap_or(usize::MAX))
    }
    fn size(&mut self) -> Result<ByteCount, ConstructionRecordError> {
        Ok(ByteCount::new(u64::from_be_bytes(self.take()?)))
    }
    fn time(&mut self) -> Result<RecordTime, ConstructionRecordError> {
        Ok(RecordTime(self.take()?))
    }
    fn span(&mut self) -> Result<Span, ConstructionRecordError> {
        Ok(Span { first: self.time()?, last: self.time()? })
    }
    fn text<const N: usize>(&mut self) -> Result<FixedText<N>, ConstructionRecordError> {
        let at = self.at;
        FixedText::from_bytes(self.take()?).ok_or(ConstructionRecordError::Name { at })
    }
    fn stream(&mut self) -> Result<SpacecraftApid, ConstructionRecordError> {
        let [high, middle, low] = self.take()?;
        Ok(SpacecraftApid::from_bits(u32::from_be_bytes([0, high, middle, low])))
    }

    fn totals(&mut self) -> Result<FileSetTotals, ConstructionRecordError> {
        Ok(FileSetTotals {
            fill: self.size()?,
            length_discrepancies: self.u32()?,
            packet_times: self.span()?,
            reception: self.span()?,
            corrected_packets: self.u32()?,
            packets: self.u32()?,
            size: self.size()?,
            gaps: self.u32()?,
        })
    }

    fn apid(&mut self) -> Result<ApidEntry, ConstructionRecordError> {
        self.skip(1)?;
        let stream = self.stream()?;
        let first_offset = self.size()?;
        self.skip(3)?;
        let vcids = usize::from(self.u8()?);
        let vcids = self.list(vcids, VCID, |reader| {
            reader.skip(2)?;
            Ok(SpacecraftVcid::from_bits(reader.u16()?))
        })?;
        let gaps = self.count()?;
        let gaps = self.list(gaps, GAP, RecordFields::gap)?;
        let fill = self.count()?;
        let fill = self.list(fill, FILL, RecordFields::fill)?;
        let fill_octets = self.size()?;
        let discrepancies = self.count()?;
        let length_discrepancies = self.list(discrepancies, DISCREPANCY, RecordFields::u32)?;
        let entry = ApidEntry {
            stream,
            first_offset,
            vcids,
            gaps,
            fill,
            fill_octets,
            length_discrepancies,
            packet_times: self.span()?,
            reception: self.span()?,
            corrected_packets: self.u32()?,
            packets: self.u32()?,
            size: self.size()?,
        };
        self.skip(8)?;
        Ok(entry)
    }

    fn gap(&mut self) -> Result<GapEntry, ConstructionRecordError> {
        Ok(GapEntry {
            first_missing: self.u32()?,
            offset: self.size()?,
            missed: self.u32()?,
            packet_times: self.span()?,
            reception: self.span()?,
        })
    }

    fn fill(&mut self) -> Result<FillEntry, ConstructionRecordError> {
        Ok(FillEntry { sequence_count: self.u32()?, offset: self.size()?, first_fill: self.u32()? })
    }

    fn file(&mut self) -> Result<FileEntry, ConstructionRecordError> {
        let name = self.text()?;
        self.skip(3)?;
        let count = usize::from(self.u8()?);
        if count == 0 {
            // The record's own entry counts no APID and still has room for one.
            self.skip(APID_SPAN)?;
        }
        let apids = self.list(count, APID_SPAN, RecordFields::apid_span)?;
        Ok(FileEntry { name, apids })
    }

    fn apid_span(&mut self) -> Result<ApidSpan, ConstructionRecordError> {
        self.skip(1)?;
        let span = ApidSpan { stream: self.stream()?, packet_times: self.span()? };
        self.skip(4)?;
        Ok(span)
    }
}
