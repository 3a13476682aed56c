//! The checksum of heads and cells.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli; RFC 3720 B.4) of the parts, one after another.
pub fn crc(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    parts.iter().for_each(|part| digest.update(part));
    u32::try_from(digest.finalize()).expect("a 32-bit checksum has 32 bits")
}
