//! Wrong bits by byte, for the eight bit offsets at once: a count in each byte of a word.

use core::ops::Range;

/// Bytes that a marker of 32 bits can touch.
const SPAN: usize = 5;

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// For each byte that the marker touches, by its value: the wrong bits that it holds, at each
/// offset.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    tables: Box<[[u64; 256]; SPAN]>,
    most_errors: u64,
    /// For the bytes that lie wholly within the marker, by value: the offsets at which a marker
    /// without wrong bits, of either polarity, has that value there. With it a search for such
    /// markers passes most places by at one look.
    right: Option<Box<[[u8; 256]; WHOLE]>>,
}

/// Bytes that lie wholly within the marker, whatever bit of the byte before them it begins at.
const WHOLE: usize = 3;

impl Counts {
    pub fn new(head: u32, most_errors: u32) -> Self {
        let mut tables = Box::new([[0; 256]; SPAN]);
        for (byte, table) in tables.iter_mut().enumerate() {
            for (value, counts) in (0..=u8::MAX).zip(table) {
                for offset in 0..8 {
                    let (bits, mask) = expected(head, offset, byte);
                    *counts |= u64::from(((value ^ bits) & mask).count_ones()) << (8 * offset);
                }
            }
        }
        Self {
            tables,
            most_errors: u64::from(most_errors),
            right: (most_errors == 0).then(|| right(head)),
        }
    }

    /// Bytes in which a marker may begin, and at which bits, the lowest for the byte's first. Bytes
    /// beyond the end count as zeros.
    pub fn candidates<'a>(
        &'a self,
        bytes: &'a [u8],
        range: Range<usize>,
    ) -> impl Iterator<Item = (usize, u8)> + 'a {
        let whole = bytes.len().saturating_sub(SPAN - 1).clamp(range.start, range.end);
        let windows =
            bytes.get(range.start..).unwrap_or_default().windows(SPAN).take(whole - range.start);
        let inside = (range.start..)
            .zip(windows.filter_map(|window| window.first_chunk().copied()))
            .filter(|(_, window)| self.may_be_right(*window));
        let cut = (whole..range.end).map(|byte| {
            let rest = bytes.get(byte..).unwrap_or_default();
            (byte, core::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)))
        });
        inside.chain(cut).filter_map(|(byte, window)| {
            let few = self.few(window);
            (few != 0).then(|| (byte, offsets(few)))
        })
    }

    /// Whether a look at the inner bytes leaves it open that few enough bits are wrong.
    #[inline(always)]
    fn may_be_right(&self, window: [u8; SPAN]) -> bool {
        self.right.as_ref().is_none_or(|right| {
            let at = |byte: usize| right[byte][usize::from(window[byte + 1])];
            at(0) & at(1) & at(2) != 0
        })
    }

    /// The highest bit of each byte is set where few enough bits are wrong, in one polarity or the
    /// other.
    #[inline(always)]
    fn few(&self, window: [u8; SPAN]) -> u64 {
        let wrong = window
            .iter()
            .zip(&*self.tables)
            .fold(0, |sum, (byte, table)| sum + table[usize::from(*byte)]);
        // 0 .. E and 32 - E .. 32 become E .. 2 E and 0 .. E, modulo 32. No byte carries into the
        // next: none exceeds 39, nor 127 after the second sum.
        let turned = (wrong + self.most_errors * ONES) & (31 * ONES);
        !(turned + (127 - 2 * self.most_errors) * ONES) & (128 * ONES)
    }
}

fn right(head: u32) -> Box<[[u8; 256]; WHOLE]> {
    let mut right = Box::new([[0; 256]; WHOLE]);
    for (byte, right) in (1..).zip(&mut *right) {
        for offset in 0..8 {
            let (bits, _) = expected(head, offset, byte);
            right[usize::from(bits)] |= 1 << offset;
            right[usize::from(!bits)] |= 1 << offset;
        }
    }
    right
}

/// Gathers the highest bits of the bytes, that of the lowest byte lowest.
fn offsets(few: u64) -> u8 {
    (0..8).fold(0, |offsets, byte| offsets | ((few >> (8 * byte + 7) & 1) as u8) << byte)
}

/// The bits that a byte has in common with a marker that begins at bit `offset` of the first one,
/// and which those are.
pub(super) fn expected(head: u32, offset: usize, byte: usize) -> (u8, u8) {
    let place = |bits: u32| (u64::from(bits) << 32 >> offset).to_be_bytes()[byte];
    (place(head), place(u32::MAX))
}
