//! Right nibbles by look-up, for the eight bit offsets at once: one bit for each.

use super::counts::expected;
use super::{Finder, Hit};
use crate::vector::{MAX_LANES, Simd, Task};
use core::ops::Range;

/// Nibbles that are looked at: from the second of the byte in which the marker begins on. At each offset these are seven
/// or eight of the marker's own; where the marker ends within one, only its bits count.
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
    /// One for both polarities, or one for each where that would let too much pass: with up to two wrong nibbles, noise
    /// has a candidate in each 2000 bits; with three it would have one in 200, with two tables in 1300.
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

/// Searches as far as whole registers go: the first marker, or the byte from which on there may be one.
pub(super) struct Scan<'a> {
    pub finder: &'a Finder,
    pub bytes: &'a [u8],
    pub places: Range<usize>,
}

impl Task for Scan<'_> {
    type Output = Result<Hit, usize>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<Hit, usize> {
        let Nibbles { tables, most_wrong } = &self.finder.nibbles;
        match (most_wrong, &tables[..]) {
            (0, [both]) => {
                let both = registers(simd, both);
                self.scan(simd, |bytes, byte| whole_bytes(simd, &both, bytes, byte))
            }
            (1, [both]) => {
                let both = registers(simd, both);
                self.scan(simd, |bytes, byte| few_wrong::<S, 1>(simd, &both, &nibbles(simd, bytes, byte)))
            }
            (2, [both]) => {
                let both = registers(simd, both);
                self.scan(simd, |bytes, byte| few_wrong::<S, 2>(simd, &both, &nibbles(simd, bytes, byte)))
            }
            (3, [upright, inverted]) => {
                let (upright, inverted) = (registers(simd, upright), registers(simd, inverted));
                self.scan(simd, |bytes, byte| {
                    let nibbles = nibbles(simd, bytes, byte);
                    let upright = few_wrong::<S, 3>(simd, &upright, &nibbles);
                    simd.or(upright, few_wrong::<S, 3>(simd, &inverted, &nibbles))
                })
            }
            _ => Err(self.places.start / 8),
        }
    }
}

impl Scan<'_> {
    #[inline(always)]
    fn scan<S: Simd>(&self, simd: S, candidates: impl Fn(&[u8], usize) -> S::Register) -> Result<Hit, usize> {
        let mut byte = self.places.start / 8;
        let end = self.places.end.div_ceil(8).min((self.bytes.len() + 1).saturating_sub(S::LANES + AHEAD));
        let none = u64::MAX >> (MAX_LANES - S::LANES);
        while byte < end {
            let candidates = candidates(self.bytes, byte);
            if simd.zeros(candidates) != none {
                let mut offsets = [0; MAX_LANES];
                simd.store(candidates, &mut offsets, 0);
                if let Some(hit) = self.first_of(byte, &offsets) {
                    return Ok(hit);
                }
            }
            byte += S::LANES;
        }
        Err(byte)
    }

    /// The first marker among the candidates of the bytes from `byte` on.
    #[inline(never)]
    fn first_of(&self, byte: usize, offsets: &[u8; MAX_LANES]) -> Option<Hit> {
        let candidates = (byte..).zip(offsets.iter().copied()).filter(|(_, offsets)| *offsets != 0);
        candidates.into_iter().find_map(|candidate| self.finder.first_of(self.bytes, &self.places, candidate))
    }
}

#[inline(always)]
fn registers<S: Simd>(simd: S, table: &Table) -> [S::Register; NIBBLES] {
    core::array::from_fn(|nibble| simd.gather(|_| &table[nibble]))
}

/// The offsets at which the three bytes that lie wholly within the marker are right.
#[inline(always)]
fn whole_bytes<S: Simd>(simd: S, tables: &[S::Register; NIBBLES], bytes: &[u8], byte: usize) -> S::Register {
    let right = [1, 2, 3].map(|ahead| {
        let (low, high) = simd.halves(simd.load(bytes, byte + ahead));
        let (first, second) = (tables[2 * ahead - 1], tables[2 * ahead]);
        simd.and(simd.shuffle(first, high), simd.shuffle(second, low))
    });
    simd.and(simd.and(right[0], right[1]), right[2])
}

/// The nibbles of the stream behind each byte.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, bytes: &[u8], byte: usize) -> [S::Register; NIBBLES] {
    let halves: [_; AHEAD + 1] = core::array::from_fn(|ahead| simd.halves(simd.load(bytes, byte + ahead)));
    core::array::from_fn(|index| {
        let (low, high) = halves[index.div_ceil(2)];
        if index % 2 == 0 { low } else { high }
    })
}

/// The offsets at which at most `WRONG` nibbles are not right.
#[inline(always)]
fn few_wrong<S: Simd, const WRONG: usize>(
    simd: S,
    tables: &[S::Register; NIBBLES],
    nibbles: &[S::Register; NIBBLES],
) -> S::Register {
    let all = simd.splat(0xFF);
    // For each nibble: offsets at which at most 0, 1, 2, 3 of one are wrong. Then of two, four and eight.
    let one: [_; NIBBLES] = core::array::from_fn(|i| [simd.shuffle(tables[i], nibbles[i]), all, all, all]);
    let two: [_; 4] = core::array::from_fn(|i| at_most::<S, WRONG>(simd, one[2 * i], one[2 * i + 1]));
    let four: [_; 2] = core::array::from_fn(|i| at_most::<S, WRONG>(simd, two[2 * i], two[2 * i + 1]));
    at_most::<S, WRONG>(simd, four[0], four[1])[WRONG]
}

/// From "at most 0, 1, 2, 3 are wrong" of two groups to that of both together, as far as `WRONG`.
#[inline(always)]
fn at_most<S: Simd, const WRONG: usize>(
    simd: S,
    a: [S::Register; 4],
    b: [S::Register; 4],
) -> [S::Register; 4] {
    let none = simd.splat(0);
    core::array::from_fn(|wrong| {
        if wrong > WRONG {
            return none;
        }
        (0..=wrong).fold(none, |any, of_a| simd.or(any, simd.and(a[of_a], b[wrong - of_a])))
    })
}
