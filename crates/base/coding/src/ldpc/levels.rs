//! Symbols in few levels, on a scale that follows the codeword: amplitude and gain make no
//! difference.

use super::lanes::{Lanes, Work};

/// Levels in the mean size of a symbol. With ten, codes of high rate lose twice as many codewords
/// in noise; many more leave too little room in a byte.
const MEAN: u32 = 18;

/// The most of a symbol: three and a half means, and half of what a byte holds.
const MOST: u32 = 63;

/// Brings a codeword's symbols onto levels. A level is negative where its bit is more likely a one.
pub(super) struct Levels<'a> {
    pub symbols: &'a [i8],
    /// As many.
    pub levels: &'a mut [u8],
}

impl Work for Levels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        // The compiler makes vector code of these loops, and here it knows of the instructions.
        let (mut sum, mut known) = (0u32, 0u32);
        for symbol in self.symbols {
            sum += u32::from(symbol.unsigned_abs());
            known += u32::from(*symbol != 0);
        }
        // In 256ths of a level for each step of a symbol's size. A size of four means is beyond the
        // last level: what is cut off there changes nothing and keeps the product within 16 bits.
        let factor = (256 * MEAN * known).checked_div(sum).unwrap_or(0) as u16;
        let largest = (4 * sum).checked_div(known).unwrap_or(0).min(128) as u16;
        for (level, symbol) in self.levels.iter_mut().zip(self.symbols) {
            let size = u16::from(symbol.unsigned_abs()).min(largest) * factor;
            let size = ((size + 128) >> 8).min(MOST as u16) as u8;
            *level = if *symbol > 0 { size.wrapping_neg() } else { size };
        }
    }
}
