//! The file beside a partial file that says which of its chunks are on disk.
//!
//! ```text
//!   magic (8)  stamp (16)  size (8)  check (4)          then for each chunk from the first on:
//!   chaining value (32)  check (4)                      numbers are big-endian
//! ```
//!
//! A check is the beginning of the BLAKE3 hash of what stands before it, with the head and the
//! chunk's number. A chunk is entered after its bytes were synced; reading stops at the first entry
//! that is not whole or has another check, so that a map never claims more than there is.

use crate::entry::SourceStamp;
use crate::hash::{Chain, Chunk};
use skyhaul_units::wire::ByteReader;

/// The contents of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The version of the source.
    pub stamp: SourceStamp,
    /// The length of the whole file.
    pub size: u64,
    /// The chaining values of the chunks that are on disk, from the first on.
    pub chains: Vec<Chain>,
}

impl Map {
    /// Reads a map; `None` where its head is invalid.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = ByteReader::new(bytes);
        let head = fields.take(HEAD)?;
        let (body, check) = head.split_last_chunk::<CHECK>()?;
        let mut inner = ByteReader::new(body);
        if inner.array()? != MAGIC || *check != check_of(&[body]) {
            return None;
        }
        let mut map =
            Self { stamp: SourceStamp(inner.array()?), size: inner.u64()?, chains: Vec::new() };
        let most = Chunk::of(map.size).count(map.size).saturating_sub(1);
        while (map.chains.len() as u64) < most {
            let (Some(chain), Some(check)) = (fields.array::<32>(), fields.array::<CHECK>()) else {
                break;
            };
            if check != entry_check(head, map.chains.len() as u64, &chain) {
                break;
            }
            map.chains.push(chain);
        }
        Some(map)
    }
}

/// The beginning of a map's file.
pub fn head(stamp: SourceStamp, size: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(stamp.0);
    head.extend(size.to_be_bytes());
    let check = check_of(&[&head]);
    head.extend(check);
    head
}

/// The entries of further chunks, of which the first has the number `first`.
pub fn entries(head: &[u8], first: u64, chains: &[Chain]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chains.len() * ENTRY);
    for (number, chain) in (first..).zip(chains) {
        out.extend(chain);
        out.extend(entry_check(head, number, chain));
    }
    out
}

/// The length of a map with this many entries: what is behind it is no part of it.
pub const fn len(entries: u64) -> u64 {
    HEAD as u64 + entries * ENTRY as u64
}

/// The longest map, in bytes.
pub const LEN_MAX: u64 = len(Chunk::COUNT_MAX);

fn entry_check(head: &[u8], number: u64, chain: &Chain) -> [u8; CHECK] {
    check_of(&[head, &number.to_be_bytes(), chain])
}

fn check_of(parts: &[&[u8]]) -> [u8; CHECK] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    [a, b, c, d]
}

const MAGIC: [u8; 8] = *b"skymap\x00\x01";
const CHECK: usize = 4;
const HEAD: usize = 8 + 16 + 8 + CHECK;
const ENTRY: usize = 32 + CHECK;

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 5 * Chunk::MIN;

    fn map(count: u8) -> (Vec<u8>, Map) {
        let chains: Vec<Chain> = (0..count).map(|number| [number; 32]).collect();
        let mut bytes = head(SourceStamp([3; 16]), SIZE);
        let entries = entries(&bytes, 0, &chains);
        bytes.extend(entries);
        (bytes, Map { stamp: SourceStamp([3; 16]), size: SIZE, chains })
    }

    #[test]
    fn a_map_cut_anywhere_has_the_entries_that_are_whole() {
        let (bytes, map) = map(4);
        assert_eq!(Map::read(&bytes), Some(map));
        for end in 0..bytes.len() {
            let read = Map::read(&bytes[..end]);
            assert_eq!(read.is_some(), end >= HEAD);
            assert_eq!(read.map_or(0, |map| map.chains.len()), end.saturating_sub(HEAD) / ENTRY);
        }
    }

    #[test]
    fn a_changed_byte_ends_the_map_there() {
        let (bytes, _) = map(4);
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let read = Map::read(&bytes);
            if at < HEAD {
                assert_eq!(read, None);
            } else {
                assert_eq!(read.unwrap().chains.len(), (at - HEAD) / ENTRY);
            }
        }
    }

    #[test]
    fn entries_of_another_map_or_beyond_the_file_are_none() {
        let (mut bytes, _) = map(4);
        let more = entries(&bytes[..HEAD], 4, &[[9; 32], [9; 32]]);
        bytes.extend(more);
        assert_eq!(Map::read(&bytes).unwrap().chains.len(), 4, "the last chunk has no entry");
        let other = head(SourceStamp([4; 16]), SIZE);
        bytes.splice(..HEAD, other);
        assert_eq!(Map::read(&bytes).unwrap().chains.len(), 0);
    }
}
