//! NRZ-M, the differential line code: a one is a change of level, a zero is none (CCSDS 131.0-B-2
//! 3.3.3).
//!
//! The data do not depend on the polarity of what is received, which phase modulation leaves open.
//! It is undone behind the convolutional decoder. One wrong bit on the line makes two wrong ones
//! behind it, side by side.

/// From levels to changes, in a stream of packed bits, the highest bit of a byte first.
///
/// ```
/// use skyhaul_coding::nrzm::{NrzmDecoder, NrzmEncoder};
/// let mut bits = *b"any bytes";
/// NrzmEncoder::default().encode(&mut bits);
/// // The wrong polarity costs the first bit alone, whose predecessor is not known.
/// bits.iter_mut().for_each(|byte| *byte ^= 0xFF);
/// NrzmDecoder::default().decode(&mut bits);
/// bits[0] ^= 0x80;
/// assert_eq!(&bits, b"any bytes");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NrzmDecoder {
    /// The bit before the next one: 0 or 1. A zero stands before the first.
    level: u64,
}

impl NrzmDecoder {
    /// Replaces the stream's next bits by what they mean.
    pub fn decode(&mut self, bits: &mut [u8]) {
        let (words, rest) = bits.as_chunks_mut::<8>();
        for word in words {
            let levels = u64::from_be_bytes(*word);
            *word = (levels ^ (levels >> 1 | self.level << 63)).to_be_bytes();
            self.level = levels & 1;
        }
        for byte in rest {
            let levels = *byte;
            *byte = levels ^ (levels >> 1 | (self.level as u8) << 7);
            self.level = u64::from(levels & 1);
        }
    }
}

/// From changes to levels: what a spacecraft does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NrzmEncoder {
    /// The level after the last bit: 0 or 1.
    level: u64,
}

impl NrzmEncoder {
    /// Replaces the stream's next bits by levels.
    pub fn encode(&mut self, bits: &mut [u8]) {
        let (words, rest) = bits.as_chunks_mut::<8>();
        for word in words {
            *word = self.levels(u64::from_be_bytes(*word)).to_be_bytes();
        }
        for byte in rest {
            let levels = self.levels(u64::from(*byte) << 56);
            *byte = (levels >> 56) as u8;
            self.level = levels >> 56 & 1;
        }
    }

    /// Each bit becomes the sum of all before it and itself; the level after the word is kept.
    fn levels(&mut self, changes: u64) -> u64 {
        let sums =
            [1, 2, 4, 8, 16, 32].into_iter().fold(changes, |sums, shift| sums ^ sums >> shift);
        let levels = if self.level == 1 { !sums } else { sums };
        self.level = levels & 1;
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(bytes: &[u8], index: usize) -> u8 {
        bytes[index / 8] >> (7 - index % 8) & 1
    }

    proptest! {
        #[test]
        fn a_one_is_a_change_and_pieces_make_the_whole(data in prop::collection::vec(any::<u8>(),
            1..60), cut in 0usize..60) {
            let cut = cut.min(data.len());
            let mut levels = data.clone();
            let mut encoder = NrzmEncoder::default();
            encoder.encode(&mut levels[..cut]);
            encoder.encode(&mut levels[cut..]);
            let mut level = 0;
            for index in 0..8 * data.len() {
                level ^= bit(&data, index);
                prop_assert_eq!(bit(&levels, index), level);
            }
            let mut decoder = NrzmDecoder::default();
            let cut = data.len() - cut;
            decoder.decode(&mut levels[..cut]);
            decoder.decode(&mut levels[cut..]);
            prop_assert_eq!(levels, data);
        }
    }
}
