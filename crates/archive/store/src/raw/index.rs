//! The entries of an index, and the names of the two files of a stretch.
//!
//! | offset | width | what |
//! |---|---|---|
//! | 0 | 4 | CRC-32C over the place of the piece in the recording (u64) and bytes 4..32 |
//! | 4 | 4 | CRC-32C of the piece |
//! | 8 | 4 | length of the piece in bytes |
//! | 12 | 1 | kind: 0 stream, 1 datagram, 2 break |
//! | 13 | 3 | zero |
//! | 16 | 8 | when its last byte was received, microseconds since 1970 UTC |
//! | 24 | 8 | the input's own count of the piece's first byte |
//!
//! All numbers are big-endian. An index begins with `SKYRAW1` and a line feed.

use super::{RawError, RawKind};
use crate::disk::{Disk, DiskFile, EntryKind, read_small};
use crate::format::OtherFormat;
use crate::log::crc;
use skyhaul_units::{ByteCount, Utc};
use std::sync::Arc;

/// Bytes of an entry.
pub(super) const ENTRY_LEN: usize = 32;
/// What an index begins with.
pub(super) const HEAD: &[u8; 8] = b"SKYRAW1\n";
/// The longest piece: the most that the recorder collects before it writes, and one read of an
/// input.
pub(super) const MAX_PIECE: usize = 1 << 20;
/// A stretch ends before it has more pieces: 32 MiB of index, which is the memory for reading one.
pub(super) const MAX_ENTRIES: u64 = 1 << 20;

/// The entry of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub length: u32,
    pub kind: RawKind,
    pub received: Utc,
    pub input: u64,
    pub data_crc: u32,
}

impl IndexEntry {
    /// Its bytes, for a piece at this position of the recording.
    pub fn encode(&self, position: u64) -> [u8; ENTRY_LEN] {
        let mut bytes = [0; ENTRY_LEN];
        bytes[4..8].copy_from_slice(&self.data_crc.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes[12] = self.kind.code();
        bytes[16..24].copy_from_slice(&self.received.as_micros().to_be_bytes());
        bytes[24..32].copy_from_slice(&self.input.to_be_bytes());
        let check = crc(&[&position.to_be_bytes(), &bytes[4..]]);
        bytes[..4].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// The entry in these bytes, if they are one of a piece at this position.
    pub fn decode(bytes: &[u8; ENTRY_LEN], position: u64) -> Option<Self> {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if word(0) != crc(&[&position.to_be_bytes(), &bytes[4..]]) || word(8) as usize > MAX_PIECE {
            return None;
        }
        Some(Self {
            length: word(8),
            kind: RawKind::of(bytes[12])?,
            received: Utc::from_micros(long(16).cast_signed()),
            input: long(24),
            data_crc: word(4),
        })
    }
}

/// The entries of an index of a stretch that begins at `start`, up to the first invalid one.
pub(super) fn entries(bytes: &[u8], start: u64) -> Vec<IndexEntry> {
    let Some(rest) = bytes.strip_prefix(HEAD) else { return Vec::new() };
    let mut position = start;
    let mut found = Vec::new();
    for bytes in rest.as_chunks::<ENTRY_LEN>().0 {
        let Some(entry) = IndexEntry::decode(bytes, position) else { break };
        position = position.saturating_add(u64::from(entry.length));
        found.push(entry);
    }
    found
}

/// The version that an index has, where it is another one: a digit before the line feed.
fn other_format(bytes: &[u8]) -> Option<OtherFormat> {
    let [magic @ .., known, end] = HEAD;
    let found = match bytes.strip_prefix(magic)? {
        // Without an entry the head may be torn.
        [found, next, _, ..] if found.is_ascii_digit() && next == end => found,
        _ => return None,
    };
    let version = |digit: &u8| u32::from(digit - b'0');
    (found != known).then_some(OtherFormat { found: version(found), known: version(known) })
}

/// Reads the index of the stretch that begins at `start`.
pub(super) fn read_index(
    disk: &dyn Disk,
    dir: &str,
    start: u64,
) -> Result<Vec<IndexEntry>, RawError> {
    let path = index_path(dir, start);
    let limit = ByteCount::new(HEAD.len() as u64 + (MAX_ENTRIES + 1) * ENTRY_LEN as u64);
    let bytes = read_small(disk, &path, limit).map_err(|source| RawError::io(&path, source))?;
    if let Some(other) = other_format(&bytes) {
        return Err(RawError::io(&path, other.into()));
    }
    Ok(entries(&bytes, start))
}

/// Whether the piece at `offset` of a file is undamaged.
pub(super) fn read_piece(
    file: &Arc<dyn DiskFile>,
    offset: u64,
    entry: &IndexEntry,
) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = vec![0; entry.length as usize];
    let read = file.read_at(&mut bytes, ByteCount::new(offset))?;
    let is_intact = read == bytes.len() && crc(&[&bytes]) == entry.data_crc;
    Ok((bytes, is_intact))
}

pub(super) fn data_path(dir: &str, start: u64) -> String {
    format!("{dir}/{start:020}.raw")
}

pub(super) fn index_path(dir: &str, start: u64) -> String {
    format!("{dir}/{start:020}.idx")
}

/// The beginnings of the stretches of a folder, with the sizes of data and index; `None` for an
/// absent file.
pub(super) fn stretches(disk: &dyn Disk, dir: &str) -> Result<Vec<Listed>, RawError> {
    let mut found: Vec<Listed> = Vec::new();
    // Sorted by name, so that the two files of a stretch follow one another.
    for entry in disk.list(dir).map_err(|source| RawError::io(dir, source))? {
        let Some((name, ending)) = entry.name.split_once('.') else { continue };
        let is_ours =
            name.len() == 20 && entry.kind == EntryKind::File && matches!(ending, "raw" | "idx");
        let Some(start) = name.parse::<u64>().ok().filter(|_| is_ours) else { continue };
        if found.last().is_none_or(|last| last.start != start) {
            found.push(Listed { start, data: None, index: None });
        }
        if let Some(last) = found.last_mut() {
            let size = if ending == "raw" { &mut last.data } else { &mut last.index };
            *size = Some(entry.size);
        }
    }
    Ok(found)
}

/// The files of a stretch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    pub start: u64,
    pub data: Option<ByteCount>,
    pub index: Option<ByteCount>,
}

impl RawKind {
    const fn code(self) -> u8 {
        match self {
            Self::Stream => 0,
            Self::Datagram => 1,
            Self::Break => 2,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Stream),
            1 => Some(Self::Datagram),
            2 => Some(Self::Break),
            _ => None,
        }
    }
}
