//! Symbols in few levels: what the decoder computes with.
//!
//! Fifteen levels, -7 to 7, on a scale that follows the stream: four levels are the mean size of
//! the symbols in a stretch. At the noise for which the code is made, 0 to 6 dB, seven levels are
//! then 1.6 to 1.9 times a noiseless symbol, beyond which size says little. The scale makes hard
//! bits, soft bits of any amplitude and slow changes of gain one case.

use crate::gf::Kernel;
use crate::vector::{MAX_LANES, Simd, Task};

/// The largest level.
pub(super) const MAX_LEVEL: u8 = 7;

/// Levels in the mean size of a symbol.
const MEAN_LEVELS: u32 = 4;

/// Trellis steps that have one scale: 512 symbols, whose mean size is known to 4 %.
pub(super) const STRETCH: usize = 256;

/// Two symbols of which nothing is known. A pair of levels is kept in a byte: each plus 8, the
/// first in the upper half.
pub(super) const UNKNOWN: u8 = 0x88;

/// The levels of a pair.
pub(super) fn of(pair: u8) -> [i8; 2] {
    [(pair >> 4).cast_signed() - 8, (pair & 15).cast_signed() - 8]
}

/// Appends the pairs of one stretch; the sum of the sizes of its levels.
pub(super) fn append(kernel: Kernel, symbols: &[i8; 2 * STRETCH], pairs: &mut Vec<u8>) -> u64 {
    let start = pairs.len();
    pairs.resize(start + STRETCH, UNKNOWN);
    let stretch = Stretch { symbols: &symbols.map(i8::cast_unsigned), pairs: &mut pairs[start..] };
    if kernel.lanes() == 0 { Some(stretch.one_by_one()) } else { kernel.run(stretch) }.unwrap_or(0)
}

struct Stretch<'a> {
    symbols: &'a [u8; 2 * STRETCH],
    pairs: &'a mut [u8],
}

impl Stretch<'_> {
    /// The least size of each level from 1 on. Symbols that were not sent, or of which nothing is
    /// known, are zero: they do not count, so that the mean is of `known` symbols.
    #[inline(always)]
    fn thresholds(&self, known: u32) -> [u8; MAX_LEVEL as usize] {
        let mut sizes = 0u32;
        for symbol in self.symbols {
            sizes += u32::from(symbol.cast_signed().unsigned_abs());
        }
        let mut thresholds = [0; MAX_LEVEL as usize];
        for (level, threshold) in (1..).zip(&mut thresholds) {
            // (level - 1/2) x mean / 4, rounded up: at most 206, which no size reaches.
            let least = ((2 * level - 1) * sizes).div_ceil(2 * MEAN_LEVELS * known.max(1));
            *threshold = least.max(1) as u8;
        }
        thresholds
    }

    /// Without vectors.
    fn one_by_one(self) -> u64 {
        let known = self.symbols.iter().filter(|symbol| **symbol != 0).count() as u32;
        let thresholds = self.thresholds(known);
        let mut levels = [0u8; 2 * STRETCH];
        for threshold in thresholds {
            for (level, symbol) in levels.iter_mut().zip(self.symbols) {
                *level += u8::from(symbol.cast_signed().unsigned_abs() >= threshold);
            }
        }
        let mut total = 0;
        for (level, symbol) in levels.iter_mut().zip(self.symbols) {
            total += u32::from(*level);
            *level = if *symbol >= 128 { 8 - *level } else { 8 + *level };
        }
        pack(&levels, self.pairs);
        total.into()
    }
}

#[inline(always)]
fn pack(levels: &[u8; 2 * STRETCH], pairs: &mut [u8]) {
    for (pair, [first, second]) in pairs.iter_mut().zip(levels.as_chunks::<2>().0) {
        *pair = first << 4 | second;
    }
}

impl Task for Stretch<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let mut known = 2 * STRETCH as u32;
        for at in (0..2 * STRETCH).step_by(S::LANES) {
            known -= simd.zeros(simd.load(self.symbols, at)).count_ones();
        }
        let thresholds = self.thresholds(known);
        let mut levels = [0u8; 2 * STRETCH];
        let (zero, eight) = (simd.splat(0), simd.splat(8));
        // Of at most 32 symbols in a lane: no lane exceeds 7 x 32.
        let mut total = zero;
        for at in (0..2 * STRETCH).step_by(S::LANES) {
            let symbols = simd.load(self.symbols, at);
            let negative = simd.at_most(simd.splat(128), symbols);
            let sizes = simd.select(negative, simd.minus(zero, symbols), symbols);
            let mut size = zero;
            for threshold in thresholds {
                // A mask of all bits is minus one.
                size = simd.minus(size, simd.at_most(simd.splat(threshold), sizes));
            }
            total = simd.plus(total, size);
            let level = simd.select(negative, simd.minus(eight, size), simd.plus(eight, size));
            simd.store(level, &mut levels, at);
        }
        pack(&levels, self.pairs);
        let mut lanes = [0; MAX_LANES];
        simd.store(total, &mut lanes, 0);
        let mut total = 0;
        for lane in lanes {
            total += u64::from(lane);
        }
        total
    }
}
