//! The mark of a block: a digest that distinguishes blocks of the same flow and sequence number.

use crc_fast::{CrcAlgorithm, checksum};
use skyhaul_units::BlockMark;

/// The mark of a block in the spool. It never equals the mark of an unknown block.
pub fn mark(block: &[u8]) -> BlockMark {
    BlockMark(checksum(CrcAlgorithm::Crc64Nvme, block).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_the_published_checksum_and_never_that_of_nothing_known() {
        assert_eq!(mark(b"123456789"), BlockMark(0xae8b_1486_0a79_9888));
        assert_eq!(mark(b""), BlockMark(1));
    }
}
