//! The pseudo-randomisers (CCSDS 131.0-B-5 10.4): XOR over everything after the marker, restarted
//! at each block.

use crate::gf::Kernel;

/// Which pseudo-random sequence a downlink is XORed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Randomiser {
    /// x^8 + x^7 + x^5 + x^3 + 1, all-ones start, period 255 bits.
    Ccsds255,
    /// x^17 + x^14 + 1, period 131071 bits; since issue 5 of the standard.
    Ccsds131071,
}

impl Randomiser {
    /// The first `len` bytes of the sequence, ready to apply to blocks of up to that length.
    pub fn sequence(self, len: usize) -> Sequence {
        let bytes = match self {
            Self::Ccsds255 => bytes_of(len, 0xFF, |register| {
                let bit = (register ^ register >> 3 ^ register >> 5 ^ register >> 7) & 1;
                register >> 1 | bit << 7
            }),
            Self::Ccsds131071 => bytes_of(len, 0x18E38, |register| {
                let bit = (register ^ register >> 14) & 1;
                register >> 1 | bit << 16
            }),
        };
        Sequence { bytes }
    }
}

/// A stretch of a pseudo-random sequence, from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    bytes: Vec<u8>,
}

impl Sequence {
    /// Randomises or derandomises `block`, whose first byte stands `skip` bytes after the
    /// sequence's start.
    ///
    /// # Panics
    /// Where `block` reaches past the length that the sequence was made for.
    pub fn apply(&self, skip: usize, block: &mut [u8]) {
        self.apply_with(Kernel::best(), skip, block);
    }

    /// The same with given instructions.
    ///
    /// # Panics
    /// Where `block` reaches past the length that the sequence was made for.
    pub fn apply_with(&self, kernel: Kernel, skip: usize, block: &mut [u8]) {
        kernel.add(block, &self.bytes[skip..skip + block.len()]);
    }

    /// Writes `block`, which stands at the sequence's start, randomised or derandomised to `out`.
    pub(crate) fn apply_to(&self, kernel: Kernel, block: &[u8], out: &mut [u8]) {
        kernel.sum(out, block, &self.bytes[..block.len()]);
    }
}

/// Collects the register's lowest bits, most significant first.
fn bytes_of(len: usize, start: u32, step: impl Fn(u32) -> u32) -> Vec<u8> {
    let mut register = start;
    let mut bytes = vec![0u8; len];
    for byte in &mut bytes {
        for _ in 0..8 {
            *byte = *byte << 1 | (register & 1) as u8;
            register = step(register);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_sequence_known_answer() {
        let expected = [
            0xFF, 0x48, 0x0E, 0xC0, 0x9A, 0x0D, 0x70, 0xBC, 0x8E, 0x2C, 0x93, 0xAD, 0xA7, 0xB7,
            0x46, 0xCE, 0x5A, 0x97, 0x7D, 0xCC, 0x32, 0xA2, 0xBF, 0x3E, 0x0A, 0x10, 0xF1, 0x88,
            0x94, 0xCD, 0xEA, 0xB1, 0xFE, 0x90, 0x1D, 0x81, 0x34, 0x1A, 0xE1, 0x79,
        ];
        assert_eq!(Randomiser::Ccsds255.sequence(40).bytes, expected);
        let long = Randomiser::Ccsds255.sequence(510).bytes;
        assert_eq!(long[..255], long[255..], "255 bits repeat every 255 bytes");
    }

    #[test]
    fn seventeen_bit_sequence_known_answer() {
        let expected = [
            0x1C, 0x71, 0xB9, 0x1B, 0xA9, 0xBA, 0x84, 0x57, 0xB4, 0xBC, 0x50, 0x54, 0xBF, 0xD0,
            0x55, 0x40,
        ];
        assert_eq!(Randomiser::Ccsds131071.sequence(16).bytes, expected);
    }

    #[test]
    fn applying_in_two_pieces_equals_applying_at_once() {
        let sequence = Randomiser::Ccsds131071.sequence(100);
        let mut whole = [0u8; 100];
        sequence.apply(0, &mut whole);
        let mut pieces = [0u8; 100];
        sequence.apply(0, &mut pieces[..37]);
        sequence.apply(37, &mut pieces[37..]);
        assert_eq!(whole, pieces);
        sequence.apply(0, &mut whole);
        assert_eq!(whole, [0u8; 100]);
    }
}
