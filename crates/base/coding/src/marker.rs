//! The search for a synchronisation marker (CCSDS 131.0-B-5 9) at every bit of a stream, in both
//! polarities.
//!
//! Vectors look at all eight bit offsets of a byte at once. Each nibble of the stream is looked up
//! in a table that has one bit for each offset: whether the nibble is what the marker, begun at
//! that bit, would have there. A marker with E wrong bits has at most E wrong nibbles. Places where
//! few enough of eight nibbles are wrong are candidates, whose bits are counted one by one.
//!
//! Without vectors, and where more than three bits may be wrong, each byte is looked up in a table
//! of wrong bits, again for all eight offsets at once; five of them make a marker of 32 bits.

mod counts;
mod nibbles;

use crate::gf::Kernel;
use core::ops::Range;
use counts::Counts;
use nibbles::Nibbles;

/// A synchronisation marker, its first bit the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Marker {
    /// Of 32 bits, as 1ACFFC1D.
    Bits32(u32),
    /// Of 64 bits, as 034776C7272895B0 of the turbo and some LDPC codes.
    Bits64(u64),
}

impl Marker {
    /// Its length in bits.
    pub const fn bits(self) -> usize {
        match self {
            Self::Bits32(_) => 32,
            Self::Bits64(_) => 64,
        }
    }

    /// Its length in bytes.
    pub const fn len(self) -> usize {
        self.bits() / 8
    }

    /// Never: every marker has bits.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Appends it to `out`, its first bit first.
    pub fn append_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Bits32(bits) => out.extend(bits.to_be_bytes()),
            Self::Bits64(bits) => out.extend(bits.to_be_bytes()),
        }
    }

    /// The first 32 bits, by which it is searched.
    const fn head(self) -> u32 {
        match self {
            Self::Bits32(bits) => bits,
            Self::Bits64(bits) => (bits >> 32) as u32,
        }
    }

    /// Bits from bit `position` on that differ from the marker; those beyond the end of `bytes`
    /// count as zeros.
    fn wrong_bits(self, bytes: &[u8], position: usize) -> u32 {
        let (byte, shift) = (position / 8, position % 8);
        let rest = bytes.get(byte..).unwrap_or_default();
        let head = match rest.first_chunk() {
            Some(chunk) => u64::from_be_bytes(*chunk),
            None => rest
                .iter()
                .enumerate()
                .fold(0, |head, (i, byte)| head | u64::from(*byte) << (56 - 8 * i)),
        };
        let last = u64::from(rest.get(8).copied().unwrap_or(0));
        let window = head << shift | last >> (8 - shift);
        match self {
            Self::Bits32(bits) => ((window >> 32) as u32 ^ bits).count_ones(),
            Self::Bits64(bits) => (window ^ bits).count_ones(),
        }
    }
}

/// A marker that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The place of its first bit.
    pub position: usize,
    /// Bits of it that are wrong, in the polarity that it was found in.
    pub errors: u32,
    /// It came inverted.
    pub inverted: bool,
}

/// Finds a marker.
///
/// ```
/// use skyhaul_coding::marker::{Finder, Hit, Marker};
/// let finder = Finder::new(Marker::Bits32(0x1ACF_FC1D), 1);
/// let bytes = [0x00, 0x01, 0xAC, 0xFF, 0xC1, 0xD0];
/// assert_eq!(finder.find(&bytes, 0..48), Some(Hit { position: 12, errors: 0, inverted: false }));
/// ```
#[derive(Debug, Clone)]
pub struct Finder {
    marker: Marker,
    most_errors: u32,
    kernel: Kernel,
    counts: Counts,
    nibbles: Nibbles,
}

impl Finder {
    /// Most bits that may be wrong: with them, noise has a marker of 32 bits every 500 bits.
    pub const MAX_ERRORS: u32 = 7;

    /// Takes as the marker what differs from it, or from its inverse, in at most `most_errors`
    /// bits; more than
    /// [`Self::MAX_ERRORS`] count as so many.
    pub fn new(marker: Marker, most_errors: u32) -> Self {
        Self::with_kernel(marker, most_errors, Kernel::best())
    }

    /// The same with given instructions.
    pub fn with_kernel(marker: Marker, most_errors: u32, kernel: Kernel) -> Self {
        let most_errors = most_errors.min(Self::MAX_ERRORS);
        let head = marker.head();
        let (counts, nibbles) = (Counts::new(head, most_errors), Nibbles::new(head, most_errors));
        Self { marker, most_errors, kernel, counts, nibbles }
    }

    /// The marker that is searched for.
    pub const fn marker(&self) -> Marker {
        self.marker
    }

    /// The first marker that begins in `places`, counted in bits, and ends within `bytes`.
    pub fn find(&self, bytes: &[u8], places: Range<usize>) -> Option<Hit> {
        let end = places.end.min((8 * bytes.len() + 1).saturating_sub(self.marker.bits()));
        let places = places.start..end;
        if places.is_empty() {
            return None;
        }
        let end_byte = end.div_ceil(8);
        let mut byte = places.start / 8;
        if self.nibbles.can_find() && self.kernel.lanes() > 0 {
            let scan = nibbles::Scan { finder: self, bytes, places: places.clone() };
            match self.kernel.run(scan) {
                Some(Ok(hit)) => return Some(hit),
                // A whole register may have gone beyond the last place.
                Some(Err(reached)) => byte = reached.min(end_byte),
                None => {}
            }
        }
        self.counts
            .candidates(bytes, byte..end_byte)
            .find_map(|(byte, offsets)| self.first_of(bytes, &places, byte, offsets))
    }

    /// The first marker that begins in one of a byte's bits named by `offsets`, lowest for the
    /// byte's first.
    fn first_of(
        &self,
        bytes: &[u8],
        places: &Range<usize>,
        byte: usize,
        offsets: u8,
    ) -> Option<Hit> {
        let mut offsets = offsets;
        while offsets != 0 {
            let position = 8 * byte + offsets.trailing_zeros() as usize;
            if places.contains(&position)
                && let Some(hit) = self.hit_at(bytes, position)
            {
                return Some(hit);
            }
            offsets &= offsets - 1;
        }
        None
    }

    fn hit_at(&self, bytes: &[u8], position: usize) -> Option<Hit> {
        let wrong = self.marker.wrong_bits(bytes, position);
        let right = self.marker.bits() as u32 - wrong;
        let hit = Hit { position, errors: wrong.min(right), inverted: right < wrong };
        (hit.errors <= self.most_errors).then_some(hit)
    }
}

#[cfg(test)]
mod tests;
