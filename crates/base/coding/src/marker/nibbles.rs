//! Right nibbles by look-up, for the eight bit offsets at once: one bit for each.

use super::counts::expected;
use super::{Finder, Hit};
use crate::vector::{MAX_LANES, Simd, Task};
use core::ops::Range;

/// Nibbles that are looked at: from the second of the byte in which the marker begins on. At each
/// offset these are seven or eight of the marker's own; where the marker ends within one, only its
/// bits count.
const NIBBLES: usize = 8;

/// Bytes behind the one in which the marker begins, up to that of the last nibble.
const AHEAD: usize = NIBBLES / 2;

/// By nibble and its value, the offsets at which it is right.
type Table = [[u8; 16]; NIBBLES];

/// Most wrong nibbles for which candidates are rare. With four, half of the nibbles would do.
const MAX_WRONG: u32 = 3;

/// What to look nibbles up in.
#[derive(Debug, Clone)]
pub(super) struct Nibbles {
    /// One for both polarities, or one for each where that would let too much pass: with up to two
    /// wrong nibbles, noise has a candidate in each 2000 bits; with three it would have one in 200,
    /// with two tables in 1300.
    tables: Vec<Table>,
    most_wrong: u32,
}

impl Nibbles {
    pub fn new(head: u32, most_errors: u32) -> Self {
        let tables = match most_errors {
            0..MAX_WRONG => vec![table(&[head, !head])],
            MAX_WRONG => vec![table(&[head]), table(&[!head])],
            _ => Vec::new(),
        };
        Self { tables, most_wrong: most_errors }
    }

    /// Whether candidates are rare enough.
    pub fn can_find(&self) -> bool {
        self.most_wrong <= MAX_WRONG
    }
}

fn table(heads: &[u32]) -> Table {
    let mut table = [[0; 16]; NIBBLES];
    for (nibble, entries) in (1..).zip(&mut table) {
        for (value, offsets) in (0u8..).zip(entries) {
            let is_right = |offset: &usize| {
                heads.iter().any(|head| {
                    let (bits, mask) = expected(*head, *offset, nibble / 2);
                    let shift = if nibble % 2 == 0 { 4 } else { 0 };
                    (value ^ bits >> shift) & mask >> shift & 15 == 0
                })
            };
            *offsets = (0..8).filter(is_right).fold(0, |offsets, offset| offsets | 1 << offset);
        }
    }
    table
}

/// Searches as far as whole registers go: the first marker, or the byte from which on there may be
/// one.
pub(super) struct Scan<'a> {
    pub finder: &'a Finder,
    pub bytes: &'a [u8],
    pub places: Range<usize>,
}

impl Task for Scan<'_> {
    type Output = Result<Hit, usize>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<Hit, usize> {
        match self.finder.nibbles.most_wrong {
            0 => self.scan::<S, 0>(simd),
            1 => self.scan::<S, 1>(simd),
            2 => self.scan::<S, 2>(simd),
            MAX_WRONG => self.scan::<S, 3>(simd),
            _ => Err(self.places.start / 8),
        }
    }
}

// Closures over vectors are not sure to be inlined where the compiler knows of the instructions:
// there are none below.
impl Scan<'_> {
    #[inline(always)]
    fn scan<S: Simd, const WRONG: usize>(&self, simd: S) -> Result<Hit, usize> {
        let Some((first, second)) = self.finder.nibbles.tables.split_first() else {
            return Err(self.places.start / 8);
        };
        let first = registers(simd, first);
        let second = second.first().map_or(first, |second| registers(simd, second));
        let mut byte = self.places.start / 8;
        let end = self
            .places
            .end
            .div_ceil(8)
            .min((self.bytes.len() + 1).saturating_sub(S::LANES + AHEAD));
        let none = u64::MAX >> (MAX_LANES - S::LANES);
        while byte < end {
            let mut candidates;
            if WRONG == 0 {
                candidates = whole_bytes(simd, &first, self.bytes, byte);
            } else {
                let nibbles = nibbles(simd, self.bytes, byte);
                candidates = few_wrong::<S, WRONG>(simd, &first, &nibbles);
                if WRONG == MAX_WRONG as usize {
                    candidates =
                        simd.or(candidates, few_wrong::<S, WRONG>(simd, &second, &nibbles));
                }
            }
            let lanes = simd.zeros(candidates) ^ none;
            if lanes != 0 {
                let mut offsets = [0; MAX_LANES];
                simd.store(candidates, &mut offsets, 0);
                if let Some(hit) = self.first_of(byte, lanes, &offsets) {
                    return Ok(hit);
                }
            }
            byte += S::LANES;
        }
        Err(byte)
    }

    /// The first marker among the candidates of the bytes from `byte` on, of which `lanes` names
    /// those that have any.
    #[inline(never)]
    fn first_of(&self, byte: usize, lanes: u64, offsets: &[u8; MAX_LANES]) -> Option<Hit> {
        let mut lanes = lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            let hit = self.finder.first_of(self.bytes, &self.places, byte + lane, offsets[lane]);
            if hit.is_some() {
                return hit;
            }
            lanes &= lanes - 1;
        }
        None
    }
}

#[inline(always)]
fn registers<S: Simd>(simd: S, table: &Table) -> [S::Register; NIBBLES] {
    let mut registers = [simd.splat(0); NIBBLES];
    for (register, entries) in registers.iter_mut().zip(table) {
        *register = simd.gather(|_| entries);
    }
    registers
}

/// The offsets at which the three bytes that lie wholly within the marker are right.
#[inline(always)]
fn whole_bytes<S: Simd>(
    simd: S,
    tables: &[S::Register; NIBBLES],
    bytes: &[u8],
    byte: usize,
) -> S::Register {
    let mut right = simd.splat(0xFF);
    for ahead in 1..AHEAD {
        let (low, high) = simd.halves(simd.load(bytes, byte + ahead));
        right = simd.and(right, simd.shuffle(tables[2 * ahead - 1], high));
        right = simd.and(right, simd.shuffle(tables[2 * ahead], low));
    }
    right
}

/// The nibbles of the stream behind each byte.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, bytes: &[u8], byte: usize) -> [S::Register; NIBBLES] {
    let mut nibbles = [simd.splat(0); NIBBLES];
    for ahead in 0..=AHEAD {
        let (low, high) = simd.halves(simd.load(bytes, byte + ahead));
        if ahead > 0 {
            nibbles[2 * ahead - 1] = high;
        }
        if ahead < AHEAD {
            nibbles[2 * ahead] = low;
        }
    }
    nibbles
}

/// The offsets at which at most `WRONG` nibbles are not right.
#[inline(always)]
fn few_wrong<S: Simd, const WRONG: usize>(
    simd: S,
    tables: &[S::Register; NIBBLES],
    nibbles: &[S::Register; NIBBLES],
) -> S::Register {
    let mut right = [simd.splat(0); NIBBLES];
    for (right, (table, nibble)) in right.iter_mut().zip(tables.iter().zip(nibbles)) {
        *right = simd.shuffle(*table, *nibble);
    }
    let [a, b, c, d, e, f, g, h] = right;
    let (low, high) = (of_four(simd, [a, b, c, d]), of_four(simd, [e, f, g, h]));
    match WRONG {
        0 => simd.and(low[0], high[0]),
        1 => simd.or(simd.and(low[0], high[1]), simd.and(low[1], high[0])),
        2 => {
            let uneven = simd.or(simd.and(low[0], high[2]), simd.and(low[2], high[0]));
            simd.or(uneven, simd.and(low[1], high[1]))
        }
        _ => {
            let far = simd.or(simd.and(low[0], high[3]), simd.and(low[3], high[0]));
            simd.or(far, simd.or(simd.and(low[1], high[2]), simd.and(low[2], high[1])))
        }
    }
}

/// From "is right" of four nibbles to "at most 0, 1, 2, 3 of them are wrong".
#[inline(always)]
fn of_four<S: Simd>(simd: S, right: [S::Register; 4]) -> [S::Register; 4] {
    let [a, b, c, d] = right;
    let (none_of_first, one_of_first) = (simd.and(a, b), simd.or(a, b));
    let (none_of_second, one_of_second) = (simd.and(c, d), simd.or(c, d));
    let one =
        simd.or(simd.and(none_of_first, one_of_second), simd.and(one_of_first, none_of_second));
    let two =
        simd.or(simd.or(none_of_first, none_of_second), simd.and(one_of_first, one_of_second));
    [simd.and(none_of_first, none_of_second), one, two, simd.or(one_of_first, one_of_second)]
}
