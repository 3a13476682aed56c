//! Scans a segment file that may be torn or damaged.
//!
//! An invalid record has one of two causes. Either it never became durable: a power cut tore it,
//! and the data after it was not durable either, so the file is cut there. Or it was durable and
//! the disk damaged it: then the data after it is valid, and only the damaged part is skipped.
//! Later records show which, because each has the length of the segment that was durable when it
//! was written.

use super::checksum::HEADER_LEN;
use super::guard::{self, COPY_MAGIC};
use super::record::{Header, Kind, MAGIC, VERSION, block_size};
use super::summary::SegmentSummary;
use super::{DamageFate, SegmentNo};
use crate::disk::DiskFile;
use skyhaul_units::ByteCount;
use std::io;
use std::ops::Range;

/// The state of the file before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It was synced to its end: a later segment exists.
    Durable,
    /// It was the last one: its end may be torn.
    TailMayBeTorn,
}

/// What a segment file holds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub summary: SegmentSummary,
    /// Whether a seal ends it.
    pub sealed: bool,
    /// Damaged stretches of durable data: the result, the offset and the length.
    pub damaged: Vec<(DamageFate, ByteCount, ByteCount)>,
    /// The end of the valid data; the rest never became durable.
    pub end: ByteCount,
    /// The file's length.
    pub file: ByteCount,
    /// Where the last block ends.
    pub last_block_end: ByteCount,
    /// The first bytes are of another version of the format, this one.
    pub other_version: Option<u8>,
}

/// One step through a file.
pub(crate) enum Step {
    /// A valid record, perhaps after it was mended; its payload is in the caller's buffer.
    Record(Header, Condition),
    /// No valid record before this offset, and the result for the bytes there.
    DamagedRange(DamageFate, ByteCount),
    /// The limit is reached.
    End,
}

/// How a record was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// As it was written.
    Intact,
    /// Damaged, and made again.
    Mended,
}

/// Reads records of one segment file one by one, up to a limit.
pub(crate) struct Walker<'a> {
    pub file: &'a dyn DiskFile,
    pub segment: SegmentNo,
    pub limit: ByteCount,
}

impl Walker<'_> {
    /// The header at `offset`, if there is one and the whole record is before the limit.
    pub fn header(&self, offset: ByteCount) -> Option<Header> {
        self.header_of(offset, self.bytes(offset)?)
    }

    /// If there is no valid header at `offset`: the next position with a record, and its header if
    /// only the copy of it is valid. The position may be `offset` itself.
    pub fn beyond(&self, offset: ByteCount) -> (ByteCount, Option<Header>) {
        let next = self.next_header(offset + ByteCount::new(1));
        let copy = self.find(offset + ByteCount::of(HEADER_LEN)..next, COPY_MAGIC, |at| {
            self.copied(at).filter(|(start, _)| *start >= offset)
        });
        copy.map_or((next, None), |(start, header)| (start, Some(header)))
    }

    /// The header whose copy is at `at`, and the beginning of its record.
    fn copied(&self, at: ByteCount) -> Option<(ByteCount, Header)> {
        let mut bytes = self.bytes(at)?;
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        let end = (at + ByteCount::of(HEADER_LEN)).as_u64();
        let start =
            end.checked_sub(block_size(Header::length_in(&bytes)).as_u64()).map(ByteCount::new)?;
        let header = self.header_of(start, bytes).filter(|header| header.kind == Kind::Block)?;
        Some((start, header))
    }

    /// Reads the payload of the record at `offset` into `payload`; `None` if it is invalid and
    /// cannot be mended.
    pub fn payload(
        &self,
        offset: ByteCount,
        header: &Header,
        payload: &mut Vec<u8>,
    ) -> Option<Condition> {
        payload.clear();
        payload.resize(header.length.as_usize(), 0);
        let start = offset + ByteCount::of(HEADER_LEN);
        let read = self.read(payload, start);
        if read == payload.len() && header.payload_is_intact(payload) {
            return Some(Condition::Intact);
        }
        if header.kind != Kind::Block {
            return None;
        }
        let mut behind = vec![0; guard::len(header.length).as_usize()];
        self.read(&mut behind, start + header.length);
        guard::mend(payload, &behind);
        header.payload_is_intact(payload).then_some(Condition::Mended)
    }

    fn header_of(&self, offset: ByteCount, bytes: [u8; HEADER_LEN]) -> Option<Header> {
        let header = Header::decode(&bytes, self.segment, offset)?;
        (offset + header.total() <= self.limit).then_some(header)
    }

    fn bytes(&self, at: ByteCount) -> Option<[u8; HEADER_LEN]> {
        let mut bytes = [0; HEADER_LEN];
        // A sector that cannot be read is damage like any other: found, reported, mended or
        // skipped.
        (self.file.read_at(&mut bytes, at).unwrap_or(0) == HEADER_LEN).then_some(bytes)
    }

    /// Reads the sectors that can be read; the others are zeros.
    fn read(&self, buffer: &mut [u8], offset: ByteCount) -> usize {
        if let Ok(read) = self.file.read_at(buffer, offset) {
            return read;
        }
        for (place, part) in buffer.chunks_mut(SECTOR).enumerate() {
            part.fill(0);
            let _ = self.file.read_at(part, offset + ByteCount::of(place * SECTOR));
        }
        buffer.len()
    }

    /// The record at `offset`, with all checks, or the position of the next header.
    pub fn step(&self, offset: ByteCount, payload: &mut Vec<u8>) -> Step {
        if offset >= self.limit {
            return Step::End;
        }
        if let Some(header) = self.header(offset)
            && let Some(condition) = self.payload(offset, &header, payload)
        {
            return Step::Record(header, condition);
        }
        match self.beyond(offset) {
            (next, Some(header)) if next == offset => {
                match self.payload(offset, &header, payload) {
                    Some(_) => Step::Record(header, Condition::Mended),
                    None => Step::DamagedRange(DamageFate::SteppedOver, offset + header.total()),
                }
            }
            (next, _) => Step::DamagedRange(fate(next - offset), next),
        }
    }

    /// The first valid header at or behind `from`, or the limit. Linear in the distance.
    pub fn next_header(&self, from: ByteCount) -> ByteCount {
        let at = self.find(from..self.limit, MAGIC, |at| self.header(at).map(|_| at));
        at.unwrap_or(self.limit)
    }

    /// The first offset within the range that has `mark`, and for which `look` returns a value.
    fn find<T>(
        &self,
        within: Range<ByteCount>,
        mark: [u8; 2],
        look: impl Fn(ByteCount) -> Option<T>,
    ) -> Option<T> {
        let mut window = vec![0; SEARCH_WINDOW];
        let mut start = within.start;
        while start < within.end {
            let wanted = (within.end - start).as_usize().min(SEARCH_WINDOW);
            let read = self.read(&mut window[..wanted], start);
            for (at, pair) in window[..read].windows(mark.len()).enumerate() {
                if pair == mark
                    && let Some(found) = look(start + ByteCount::of(at))
                {
                    return Some(found);
                }
            }
            // The last byte may be the first of a mark that the next window completes.
            start += ByteCount::of((wanted - 1).max(1));
        }
        None
    }
}

/// What a damaged stretch of this length can have been: if no more than a header fits, a mark,
/// which is not essential. A block has its header twice, and a seal is at the end of a file.
pub(crate) fn fate(length: ByteCount) -> DamageFate {
    if length == ByteCount::of(HEADER_LEN) { DamageFate::Mended } else { DamageFate::SteppedOver }
}

/// Reads the whole segment file.
pub(crate) fn scan(file: &dyn DiskFile, segment: SegmentNo, trust: Trust) -> io::Result<Scan> {
    let limit = file.size()?;
    let walker = Walker { file, segment, limit };
    let durable = match trust {
        Trust::Durable => limit,
        Trust::TailMayBeTorn => proven_durable(&walker),
    };
    let mut scan = Scan { file: limit, other_version: other_version(&walker), ..Scan::default() };
    let mut payload = Vec::new();
    let mut offset = ByteCount::ZERO;
    loop {
        match walker.step(offset, &mut payload) {
            Step::End => break,
            Step::DamagedRange(fate, next) if offset < durable => {
                scan.damaged.push((fate, offset, next - offset));
                offset = next;
            }
            Step::DamagedRange(..) => break,
            Step::Record(header, condition) => {
                let size = offset;
                if condition == Condition::Mended && offset < durable {
                    scan.damaged.push((DamageFate::Mended, offset, header.total()));
                }
                offset += header.total();
                match header.kind {
                    Kind::Mark => {}
                    Kind::Block => {
                        scan.summary.note(&header, size);
                        scan.last_block_end = offset;
                    }
                    Kind::Seal => {
                        scan.sealed = true;
                        scan.summary.size = size;
                        scan.end = offset;
                        return Ok(scan);
                    }
                }
            }
        }
    }
    scan.end = offset;
    scan.summary.size = offset;
    Ok(scan)
}

/// The summary of a sealed segment, read from the file's end; `None` without a seal.
pub(crate) fn read_seal(
    file: &dyn DiskFile,
    segment: SegmentNo,
) -> io::Result<Option<SegmentSummary>> {
    let limit = file.size()?;
    let walker = Walker { file, segment, limit };
    let mut trailer = [0; 8];
    let at_trailer = limit - ByteCount::of(trailer.len());
    if file.read_at(&mut trailer, at_trailer)? < trailer.len() {
        return Ok(None);
    }
    let at = ByteCount::new(u64::from_be_bytes(trailer));
    let mut payload = Vec::new();
    let found = walker.header(at).filter(|header| {
        let ends = header.kind == Kind::Seal && at + header.total() == limit;
        ends && walker.payload(at, header, &mut payload).is_some()
    });
    Ok(found.and_then(|_| SegmentSummary::decode(&payload, at)))
}

/// The length of the file that was durable, by its records. The header of a record with a torn
/// payload counts too: it was right when it was written. There is no data after a seal.
fn proven_durable(walker: &Walker<'_>) -> ByteCount {
    let mut proven = ByteCount::ZERO;
    let mut offset = ByteCount::ZERO;
    while offset < walker.limit {
        match walker.header(offset) {
            Some(header) => {
                proven = proven.max(header.durable);
                if header.kind == Kind::Seal {
                    break;
                }
                offset += header.total();
            }
            None => offset = walker.next_header(offset + ByteCount::new(1)),
        }
    }
    proven
}

fn other_version(walker: &Walker<'_>) -> Option<u8> {
    let mut bytes = [0; HEADER_LEN];
    let read = walker.file.read_at(&mut bytes, ByteCount::ZERO).unwrap_or(0);
    let version =
        Header::version(&bytes, walker.segment, ByteCount::ZERO).filter(|_| read == HEADER_LEN);
    version.filter(|version| *version != VERSION)
}

/// The smallest unit that a disk reads or fails to read.
const SECTOR: usize = 512;
/// The amount read at once during the search for the next record.
const SEARCH_WINDOW: usize = 64 << 10;
