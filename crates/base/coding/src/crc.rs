//! The frame error control field: CRC-16 with polynomial x^16 + x^12 + x^5 + 1, or CRC-32 with
//! x^32 + x^23 + x^21 + x^11 + x^2 + 1; and the check of files that `cksum` prints.

use crc_fast::{CrcAlgorithm, Digest, checksum};

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

/// The 32-bit check value of `bytes`: initial value 0, bits in order, nothing inverted at the end
/// (CCSDS 732.1-B-3 4.1.7.3, 211.2-B annex C).
pub fn fecf32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |check, byte| check << 8 ^ TABLE_32[usize::from((check >> 24) as u8 ^ byte)])
}

/// Whether the last four bytes of `frame` are the 32-bit check value of those before them.
/// A frame shorter than the field itself is not intact.
pub fn is_intact32(frame: &[u8]) -> bool {
    match frame.split_last_chunk::<4>() {
        Some((covered, field)) => fecf32(covered) == u32::from_be_bytes(*field),
        None => false,
    }
}

/// The check of the utility `cksum` (POSIX.1-2017, cksum), taken as bytes go by.
#[derive(Debug)]
pub struct Cksum {
    crc: Digest,
    length: u64,
}

impl Cksum {
    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// The check of all of them, as `cksum` prints it.
    pub fn finish(mut self) -> u32 {
        // POSIX: the length follows, least significant octet first, as few octets as it takes.
        let octets = 8 - self.length.leading_zeros() as usize / 8;
        self.crc.update(&self.length.to_le_bytes()[..octets]);
        self.crc.finalize() as u32
    }
}

impl Default for Cksum {
    fn default() -> Self {
        Self { crc: Digest::new(CrcAlgorithm::Crc32Cksum), length: 0 }
    }
}

const POLYNOMIAL_32: u32 = 0x00A0_0805;

/// What each byte at the top of the register adds to it.
const TABLE_32: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut check = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            check = check << 1 ^ if check & 0x8000_0000 == 0 { 0 } else { POLYNOMIAL_32 };
            bit += 1;
        }
        table[byte] = check;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_answer() {
        assert_eq!(fecf(b"123456789"), 0x29B1);
    }

    #[test]
    fn a_check_of_bytes_in_parts_is_that_of_the_utility() {
        // As `printf 123456789 | cksum`, `cksum < /dev/null` and `head -c 70000 /dev/zero | cksum`
        // of GNU coreutils print them; the last has a length of three octets.
        let zeros = [0; 70_000];
        let cases: [(&[&[u8]], u32); 3] =
            [(&[b"1234", b"56789"], 930_766_865), (&[], 4_294_967_295), (&[&zeros], 1_774_371_287)];
        for (parts, wanted) in cases {
            let mut check = Cksum::default();
            parts.iter().for_each(|part| check.update(part));
            assert_eq!(check.finish(), wanted);
        }
    }

    #[test]
    fn a_frame_shorter_than_the_field_is_not_intact() {
        assert!(!is_intact(&[]));
        assert!(!is_intact(&[0x12]));
        assert!(is_intact(&[0xFF, 0xFF]), "the check value of nothing is the initial value");
    }

    #[test]
    fn a_single_bit_leaves_the_polynomial_in_the_32_bit_check() {
        assert_eq!(fecf32(&[1]), POLYNOMIAL_32);
        assert_eq!(fecf32(&[0; 40]), 0, "the initial value is zero");
        assert!(!is_intact32(&[0, 0, 0]));
    }

    proptest! {
        #[test]
        fn any_burst_of_up_to_32_bits_is_seen_by_the_32_bit_check(
            mut frame in proptest::collection::vec(any::<u8>(), 4..300),
            burst in 1u32..,
            place: proptest::sample::Index,
        ) {
            let check = fecf32(&frame);
            frame.extend(check.to_be_bytes());
            prop_assert!(is_intact32(&frame));
            let at = place.index(frame.len() - 3);
            for (byte, error) in frame[at..].iter_mut().zip(burst.to_be_bytes()) {
                *byte ^= error;
            }
            prop_assert!(!is_intact32(&frame));
        }

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
