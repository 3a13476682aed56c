//! Symbols in few levels: what the decoder computes with.
//!
//! Fifteen levels, -7 to 7, on a scale that follows the stream: four levels are the mean size of the symbols in a
//! stretch. At the noise for which the code is made, 0 to 6 dB, seven levels are then 1.6 to 1.9 times a noiseless
//! symbol, beyond which size says little. The scale makes hard bits, soft bits of any amplitude and slow changes of gain
//! one case.

/// The largest level.
pub(super) const MAX_LEVEL: u8 = 7;

/// Levels in the mean size of a symbol.
const MEAN_LEVELS: u64 = 4;

/// Trellis steps that have one scale: 512 symbols, whose mean size is known to 4 %.
pub(super) const STRETCH: usize = 256;

/// Two symbols of which nothing is known. A pair of levels is kept in a byte: each plus 8, the first in the upper half.
pub(super) const UNKNOWN: u8 = 0x88;

/// The levels of a pair.
pub(super) fn of(pair: u8) -> [i8; 2] {
    [(pair >> 4).cast_signed() - 8, (pair & 15).cast_signed() - 8]
}

/// Appends the pairs of one stretch; the sum of the sizes of its levels.
pub(super) fn append(symbols: &[i8], pairs: &mut Vec<u8>) -> u64 {
    // A symbol that was not sent, or of which nothing is known, is zero and does not count.
    let known: u64 = symbols.iter().map(|symbol| u32::from(*symbol != 0)).sum::<u32>().into();
    let sizes: u64 = symbols.iter().map(|symbol| u32::from(symbol.unsigned_abs())).sum::<u32>().into();
    // Levels in a symbol of size one, times 2^16: at most four levels, which the mean of hard bits of size one has.
    let scale = (MEAN_LEVELS << 16) * known / sizes.max(1);
    let scale = scale as i32;
    let level = |symbol: i8| {
        // From 127 x 4 x 2^16 no overflow; rounded to the nearest, alike on both sides of zero.
        let size = (i32::from(symbol.unsigned_abs()) * scale + (1 << 15)) >> 16;
        let size = size.min(i32::from(MAX_LEVEL));
        if symbol < 0 { 8 - size } else { 8 + size }
    };
    let start = pairs.len();
    pairs.extend(
        symbols.as_chunks::<2>().0.iter().map(|[first, second]| (level(*first) << 4 | level(*second)) as u8),
    );
    pairs[start..].iter().map(|pair| SIZES[usize::from(*pair)]).map(u64::from).sum()
}

/// The sum of the sizes of two levels.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut pair = 0;
    while pair < 256 {
        sizes[pair] = (pair >> 4).abs_diff(8) as u8 + (pair & 15).abs_diff(8) as u8;
        pair += 1;
    }
    sizes
};
