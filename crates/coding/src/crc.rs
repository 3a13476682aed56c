//! The frame error control field: CRC-16 with polynomial x^16 + x^12 + x^5 + 1.

use crc_fast::{CrcAlgorithm, checksum};

/// The check value of `bytes`: initial value FFFF, bits in order, nothing inverted at the end
/// (CCSDS 132.0-B-3 4.1.6, 732.0-B 4.1.6).
pub fn fecf(bytes: &[u8]) -> u16 {
    checksum(CrcAlgorithm::Crc16Ibm3740, bytes) as u16
}

/// Whether the last two bytes of `frame` are the check value of those before them.
/// A frame shorter than the field itself is not intact.
pub fn is_intact(frame: &[u8]) -> bool {
    match frame.split_last_chunk::<2>() {
        Some((covered, field)) => fecf(covered) == u16::from_be_bytes(*field),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_answer() {
        assert_eq!(fecf(b"123456789"), 0x29B1);
    }

    #[test]
    fn a_frame_shorter_than_the_field_is_not_intact() {
        assert!(!is_intact(&[]));
        assert!(!is_intact(&[0x12]));
        assert!(is_intact(&[0xFF, 0xFF]), "the check value of nothing is the initial value");
    }

    proptest! {
        #[test]
        fn any_burst_of_up_to_16_bits_is_seen(
            mut frame in proptest::collection::vec(any::<u8>(), 4..300),
            burst in 1u16..,
            place: proptest::sample::Index,
        ) {
            let check = fecf(&frame);
            frame.extend(check.to_be_bytes());
            prop_assert!(is_intact(&frame));
            let at = place.index(frame.len() - 1);
            frame[at] ^= burst.to_be_bytes()[0];
            frame[at + 1] ^= burst.to_be_bytes()[1];
            prop_assert!(!is_intact(&frame));
        }
    }
}
