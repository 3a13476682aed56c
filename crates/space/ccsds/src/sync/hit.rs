//! Compares a word of the input with the marker: wrong bits and polarity.

use super::bits::BitView;
use skyhaul_coding::align::Polarity;
use skyhaul_coding::marker::Marker;

/// The supposed position of a frame, with the evidence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub position: u64,
    /// Wrong bits in the marker.
    pub errors: u8,
    pub polarity: Polarity,
    /// Bits later than due.
    pub slip: i8,
    /// Not for its marker's sake.
    pub flywheel: bool,
}

/// The marker of the downlink, and the block after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaduLayout {
    pub marker: Marker,
    /// Bytes of the block.
    pub block_len: usize,
}

impl CaduLayout {
    pub const fn marker_bits(&self) -> u64 {
        self.marker.bits() as u64
    }

    /// Bits of marker and block.
    pub const fn cadu_bits(&self) -> u64 {
        self.marker_bits() + 8 * self.block_len as u64
    }

    /// The bits at a possible marker, as many as it has.
    pub fn marker_at(&self, bits: BitView<'_>, position: u64) -> u64 {
        match self.marker {
            Marker::Bits32(_) => u64::from(bits.word(position)),
            Marker::Bits64(_) => {
                u64::from(bits.word(position)) << 32 | u64::from(bits.word(position + 32))
            }
        }
    }

    /// The marker `word` read at `position`, in the polarity that fits better.
    pub const fn hit_of(&self, word: u64, position: u64) -> Hit {
        let (wrong, bits) = (self.wrong_bits(word), self.marker_bits() as u8);
        let (errors, polarity) = if wrong > bits / 2 {
            (bits - wrong, Polarity::Inverted)
        } else {
            (wrong, Polarity::Upright)
        };
        Hit { position, errors, polarity, slip: 0, flywheel: false }
    }

    /// A frame at `position` without regard to its marker `word`, in a given polarity.
    pub const fn coasting(&self, word: u64, position: u64, polarity: Polarity) -> Hit {
        let wrong = self.wrong_bits(word);
        let errors = if polarity.is_inverted() { self.marker_bits() as u8 - wrong } else { wrong };
        Hit { position, errors, polarity, slip: 0, flywheel: true }
    }

    const fn wrong_bits(&self, word: u64) -> u8 {
        let marker = match self.marker {
            Marker::Bits32(marker) => marker as u64,
            Marker::Bits64(marker) => marker,
        };
        (word ^ marker).count_ones() as u8
    }
}
