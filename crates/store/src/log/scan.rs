//! Finding out what a segment file holds, whatever happened to it.
//!
//! A record that does not check is one of two things. Either it never became durable: a power cut tore it,
//! and what lies behind it was not durable either, so the file is cut there. Or it was durable and the disk
//! damaged it: then what lies behind counts, and only the damaged part is stepped over. Later records tell
//! which, because each says how much of the segment was durable when it was written.

use super::SegmentNo;
use super::record::{HEADER_LEN, Header, Kind, MAGIC, VERSION};
use super::summary::Summary;
use crate::disk::DiskFile;
use skyhaul_units::Bytes;
use std::io;

/// What is known of the file before it is read.
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
    pub summary: Summary,
    /// Whether a seal ends it.
    pub sealed: bool,
    /// Damaged stretches of durable data: offset and length.
    pub damaged: Vec<(Bytes, Bytes)>,
    /// What is valid ends here; the rest never became durable.
    pub end: Bytes,
    /// The file's length.
    pub file: Bytes,
    /// Where the last block ends.
    pub last_block_end: Bytes,
    /// The first bytes are of this other version of the format.
    pub other_version: Option<u8>,
}

/// One step through a file.
pub(crate) enum Step {
    /// A record that checks; its payload is in the caller's buffer.
    Record(Header),
    /// Nothing valid before this offset.
    Damage(Bytes),
    /// The limit is reached.
    End,
}

/// Reads records of one segment file one by one, up to a limit.
pub(crate) struct Walker<'a> {
    pub file: &'a dyn DiskFile,
    pub segment: SegmentNo,
    pub limit: Bytes,
}

impl Walker<'_> {
    /// The header at `offset`, where one is there and the whole record lies before the limit.
    pub fn header(&self, offset: Bytes) -> Option<Header> {
        let mut bytes = [0; HEADER_LEN];
        // A sector that cannot be read is damage like any other: found, reported, stepped over.
        let read = self.file.read_at(&mut bytes, offset).unwrap_or(0);
        let header = Header::decode(&bytes, self.segment, offset).filter(|_| read == HEADER_LEN)?;
        (offset + header.total() <= self.limit).then_some(header)
    }

    /// Reads the payload of the record at `offset` into `payload`; `false` where it does not check.
    pub fn payload(&self, offset: Bytes, header: &Header, payload: &mut Vec<u8>) -> bool {
        payload.resize(header.length.as_usize(), 0);
        let read = self.file.read_at(payload, offset + Bytes::of(HEADER_LEN)).unwrap_or(0);
        read == payload.len() && header.payload_is_intact(payload)
    }

    /// The record at `offset`, checked wholly, or where the next header is.
    pub fn step(&self, offset: Bytes, payload: &mut Vec<u8>) -> Step {
        if offset >= self.limit {
            return Step::End;
        }
        match self.header(offset) {
            Some(header) if self.payload(offset, &header, payload) => Step::Record(header),
            Some(_) | None => Step::Damage(self.next_header(offset + Bytes::new(1))),
        }
    }

    /// The first valid header at or behind `from`, or the limit. Linear in the distance.
    pub fn next_header(&self, from: Bytes) -> Bytes {
        let mut window = vec![0; SEARCH_WINDOW];
        let mut start = from;
        while start < self.limit {
            let wanted = (self.limit - start).as_usize().min(SEARCH_WINDOW);
            let read = self.file.read_at(&mut window[..wanted], start).unwrap_or(0);
            for (at, pair) in window[..read].windows(MAGIC.len()).enumerate() {
                if pair == MAGIC && self.header(start + Bytes::of(at)).is_some() {
                    return start + Bytes::of(at);
                }
            }
            // The last byte may be the first of a mark that the next window completes.
            start += Bytes::of((wanted - 1).max(1));
        }
        self.limit
    }
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
    let mut offset = Bytes::ZERO;
    loop {
        match walker.step(offset, &mut payload) {
            Step::End => break,
            Step::Damage(next) if offset < durable => {
                scan.damaged.push((offset, next - offset));
                offset = next;
            }
            Step::Damage(_) => break,
            Step::Record(header) => {
                let size = offset;
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

/// The summary of a sealed segment, read from the file's end; `None` where no seal is there.
pub(crate) fn read_seal(file: &dyn DiskFile, segment: SegmentNo) -> io::Result<Option<Summary>> {
    let limit = file.size()?;
    let walker = Walker { file, segment, limit };
    let mut trailer = [0; 8];
    let at_trailer = limit - Bytes::of(trailer.len());
    if file.read_at(&mut trailer, at_trailer)? < trailer.len() {
        return Ok(None);
    }
    let at = Bytes::new(u64::from_be_bytes(trailer));
    let mut payload = Vec::new();
    let found = walker.header(at).filter(|header| {
        header.kind == Kind::Seal && at + header.total() == limit && walker.payload(at, header, &mut payload)
    });
    Ok(found.and_then(|_| Summary::decode(&payload, at)))
}

/// How far the file was durable, by what its records say. A record's header counts where its payload is torn:
/// what it says was true when it was written. Nothing lies behind a seal.
fn proven_durable(walker: &Walker<'_>) -> Bytes {
    let mut proven = Bytes::ZERO;
    let mut offset = Bytes::ZERO;
    while offset < walker.limit {
        match walker.header(offset) {
            Some(header) => {
                proven = proven.max(header.durable);
                if header.kind == Kind::Seal {
                    break;
                }
                offset += header.total();
            }
            None => offset = walker.next_header(offset + Bytes::new(1)),
        }
    }
    proven
}

fn other_version(walker: &Walker<'_>) -> Option<u8> {
    let mut bytes = [0; HEADER_LEN];
    let read = walker.file.read_at(&mut bytes, Bytes::ZERO).unwrap_or(0);
    let version = Header::version(&bytes, walker.segment, Bytes::ZERO).filter(|_| read == HEADER_LEN);
    version.filter(|version| *version != VERSION)
}

/// How much is read at once while looking for the next record.
const SEARCH_WINDOW: usize = 64 << 10;
