//! The checksum of headers, payloads and units, and the length of a header.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes of a header.
pub(crate) const HEADER_LEN: usize = 44;

/// CRC-32C (Castagnoli; RFC 3720 B.4) of the parts, one after another.
pub(crate) fn crc(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    u32::try_from(digest.finalize()).expect("a 32-bit checksum has 32 bits")
}
