//! Symbols in few levels: what the decoder computes with.
//!
//! Fifteen levels, -7 to 7, on a scale that follows the stream: four levels are the mean size of the symbols in a
//! stretch. At the noise for which the code is made, 0 to 6 dB, seven levels are then 1.6 to 1.9 times a noiseless
//! symbol, beyond which size says little. The scale makes hard bits, soft bits of any amplitude and slow changes of gain
//! one case.

use crate::gf::Kernel;
use crate::vector::{Simd, Task};

/// The largest level.
pub(super) const MAX_LEVEL: u8 = 7;

/// Levels in the mean size of a symbol.
const MEAN_LEVELS: u32 = 4;

/// Trellis steps that have one scale: 512 symbols, whose mean size is known to 4 %.
pub(super) const STRETCH: usize = 256;

/// Two symbols of which nothing is known. A pair of levels is kept in a byte: each plus 8, the first in the upper half.
pub(super) const UNKNOWN: u8 = 0x88;

/// The levels of a pair.
pub(super) fn of(pair: u8) -> [i8; 2] {
    [(pair >> 4).cast_signed() - 8, (pair & 15).cast_signed() - 8]
}

/// Appends the pairs of one stretch; the sum of the sizes of its levels.
pub(super) fn append(kernel: Kernel, symbols: &[i8; 2 * STRETCH], pairs: &mut Vec<u8>) -> u64 {
    let start = pairs.len();
    pairs.resize(start + STRETCH, UNKNOWN);
    let stretch = Stretch { symbols, pairs: &mut pairs[start..] };
    if kernel.lanes() == 0 { Some(stretch.quantise()) } else { kernel.run(stretch) }.unwrap_or(0)
}

struct Stretch<'a> {
    symbols: &'a [i8; 2 * STRETCH],
    pairs: &'a mut [u8],
}

/// Binary places of the scale.
const SCALE: u32 = 12;

impl Stretch<'_> {
    #[inline(always)]
    fn quantise(self) -> u64 {
        // A symbol that was not sent, or of which nothing is known, is zero and does not count.
        let (mut known, mut sizes) = (0u32, 0u32);
        for symbol in self.symbols {
            known += u32::from(*symbol != 0);
            sizes += u32::from(symbol.unsigned_abs());
        }
        let sizes = sizes.max(1);
        // Levels in a symbol of size one: at most four, which the mean of hard bits of that size has.
        let scale = ((MEAN_LEVELS << SCALE) * known / sizes) as u16;
        // The least size of the largest level. Half a level is added to round; with it nothing exceeds 16 bits: the
        // limit is at most 7 1/2 levels and a size of one, together less than 12.
        let half = 1u16 << (SCALE - 1);
        let limit = ((u32::from(MAX_LEVEL) << SCALE).div_ceil(u32::from(scale).max(1))).min(128) as u16;
        let mut levels = [0u8; 2 * STRETCH];
        let mut total = 0u32;
        for (level, symbol) in levels.iter_mut().zip(self.symbols) {
            let size = u16::from(symbol.unsigned_abs()).min(limit);
            let size = ((size * scale + half) >> SCALE) as u8;
            let size = if size > MAX_LEVEL { MAX_LEVEL } else { size };
            *level = if *symbol < 0 { 8 - size } else { 8 + size };
            total += u32::from(size);
        }
        for (pair, [first, second]) in self.pairs.iter_mut().zip(levels.as_chunks::<2>().0) {
            *pair = first << 4 | second;
        }
        total.into()
    }
}

impl Task for Stretch<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> u64 {
        // The compiler makes vector code of it, and here it knows of the instructions.
        self.quantise()
    }
}
