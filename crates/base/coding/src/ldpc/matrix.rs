//! Parity-check matrices, block by block: each block is a sum of circulants with a single one in
//! each row.

use super::bits::{WORD, add, low, window, words};
use super::tables::{C2, QUARTERS, SHIFTS};
use super::{Code, Rate};
use std::iter;

/// Size of the circulants of C2.
pub(super) const C2_SIZE: usize = 511;

/// Virtual zeros before the frame in C2, which are not sent. CCSDS 131.0-B-5 7.3.5.
const C2_ZEROS: usize = 18;

/// A circulant with one one in each row: row r has it in place `shift` + r, modulo the size, of
/// block column `column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Circulant {
    pub column: usize,
    pub shift: usize,
}

/// A code's matrix.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    /// Rows and columns of a circulant.
    pub size: usize,
    /// The circulants of each block row.
    pub rows: Vec<Vec<Circulant>>,
    /// Bits that are zero and not sent, the first ones.
    pub zeros: usize,
    /// Bits that are sent, after the zeros. The columns after these are not sent.
    pub sent: usize,
    /// All columns.
    pub columns: usize,
}

impl Matrix {
    pub fn new(code: Code) -> Self {
        match code {
            Code::C2 => {
                let row = |places: &[[u16; 2]; 16]| {
                    let ones = places.iter().enumerate();
                    ones.flat_map(|(column, places)| {
                        places.map(|shift| Circulant { column, shift: usize::from(shift) })
                    })
                    .collect()
                };
                let columns = 16 * C2_SIZE;
                let rows = C2.iter().map(row).collect();
                Self { size: C2_SIZE, rows, zeros: C2_ZEROS, sent: columns - C2_ZEROS, columns }
            }
            Code::Ar4ja { information, rate } => {
                let block = information.bits() / rate.blocks();
                let size = block / 4;
                let rows = (0..12).map(|row| ar4ja(rate, block, row / 4, row % 4)).collect();
                let sent = code.codeword_bits();
                Self { size, rows, zeros: 0, sent, columns: sent + block }
            }
        }
    }

    /// The columns of the ones of each row, those of zeros left out and not counted: block row by
    /// block row. The first block rows are those with the fewest ones in columns that are not sent,
    /// so that these learn something early.
    pub fn checks(&self) -> Checks {
        let first_unsent = self.zeros + self.sent;
        let unsent = |row: &&Vec<Circulant>| {
            row.iter().filter(|one| one.column * self.size >= first_unsent).count()
        };
        let mut rows: Vec<&Vec<Circulant>> = self.rows.iter().collect();
        rows.sort_by_key(unsent);
        let mut checks = Checks { columns: Vec::new(), ends: Vec::new() };
        for row in rows {
            for index in 0..self.size {
                let column =
                    |one: &Circulant| one.column * self.size + (one.shift + index) % self.size;
                let known =
                    row.iter().map(column).filter_map(|column| column.checked_sub(self.zeros));
                checks.columns.extend(known.map(|column| column as u16));
                checks.ends.push(checks.columns.len() as u32);
            }
        }
        checks
    }

    /// The sums of each row of some block rows over the bits of a word, the zeros included; a
    /// word's last bits are zero beyond the columns. The sums of a block row begin with a new word.
    pub fn sums(&self, rows: &[Vec<Circulant>], bits: &[u64]) -> Vec<u64> {
        let each = words(self.size);
        let mut sums = vec![0; each * rows.len()];
        let mut twice = vec![0; words(2 * self.size) + 1];
        for column in 0..self.columns / self.size {
            twice.fill(0);
            for (place, word) in twice[..each].iter_mut().enumerate() {
                let at = place * WORD;
                *word = window(bits, column * self.size + at) & low(self.size - at);
            }
            let once: Vec<u64> = twice[..each].to_vec();
            add(&mut twice, self.size, &once, self.size);
            for (sums, row) in sums.chunks_exact_mut(each).zip(rows) {
                for one in row.iter().filter(|one| one.column == column) {
                    for (place, sum) in sums.iter_mut().enumerate() {
                        *sum ^= window(&twice, one.shift + place * WORD);
                    }
                }
            }
        }
        for sums in sums.chunks_exact_mut(each) {
            sums[each - 1] &= low(self.size - (each - 1) * WORD);
        }
        sums
    }
}

/// The ones of a matrix, row by row.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    columns: Vec<u16>,
    /// Where each row's columns end.
    ends: Vec<u32>,
}

impl Checks {
    /// The columns of each row.
    #[inline(always)]
    pub fn rows(&self) -> impl Iterator<Item = &[u16]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = *end as usize;
            let row = &self.columns[start..end];
            start = end;
            row
        })
    }

    /// Sets the bits from `sent` on by the first checks, which have one of them each. There is a
    /// word for each bit, with a bit of a codeword of its own in each place.
    pub fn complete(&self, sent: usize, bits: &mut [u64]) {
        let unsent = |columns: &[u16]| {
            let mut unsent = columns.iter().copied().filter(|column| usize::from(*column) >= sent);
            unsent.next().filter(|_| unsent.next().is_none())
        };
        for columns in self.rows() {
            let Some(unsent) = unsent(columns) else { return };
            let unsent = usize::from(unsent);
            bits[unsent] = 0;
            bits[unsent] = columns.iter().fold(0, |sum, column| sum ^ bits[usize::from(*column)]);
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Most ones of a row.
    pub fn weight(&self) -> usize {
        self.rows().map(<[u16]>::len).max().unwrap_or(0)
    }
}

/// A quarter of a block row. CCSDS 131.0-B-5 7.4.2: the blocks are sums of the identity and of
/// permutations, which are numbered from 1.
fn ar4ja(rate: Rate, block: usize, row: usize, quarter: usize) -> Vec<Circulant> {
    /// In place of a permutation's number.
    const IDENTITY: usize = 0;
    // The blocks that all rates have, of the last five columns.
    const LAST: [&[(usize, &[usize])]; 3] = [
        &[(2, &[IDENTITY]), (4, &[IDENTITY, 1])],
        &[(0, &[IDENTITY]), (1, &[IDENTITY]), (3, &[IDENTITY]), (4, &[2, 3, 4])],
        &[(0, &[IDENTITY]), (1, &[5, 6]), (3, &[7, 8]), (4, &[IDENTITY])],
    ];
    // Pairs of columns that stand before these, the last pair first.
    const PAIRS: [[&[usize]; 2]; 3] = [
        [&[9, 10, 11], &[12, 13, 14]],
        [&[15, 16, 17], &[18, 19, 20]],
        [&[21, 22, 23], &[24, 25, 26]],
    ];
    let before = rate.blocks() - 2;
    let size = block / 4;
    let shifts = &SHIFTS[(block.ilog2() - 7) as usize][quarter];
    let one = |column: usize, number: usize| match number {
        IDENTITY => Circulant { column: 4 * column + quarter, shift: 0 },
        number => {
            let to = (usize::from(QUARTERS[number - 1]) + quarter) % 4;
            Circulant { column: 4 * column + to, shift: usize::from(shifts[number - 1]) % size }
        }
    };
    let pairs = PAIRS.iter().take(before / 2).enumerate().flat_map(|(pair, [second, third])| {
        let column = before - 2 * (pair + 1);
        match row {
            0 => [(column, &[][..]), (column, &[])],
            1 => [(column, *second), (column + 1, &[IDENTITY])],
            _ => [(column, &[IDENTITY][..]), (column + 1, *third)],
        }
    });
    let last = LAST[row].iter().map(|(column, numbers)| (before + column, *numbers));
    pairs
        .chain(last)
        .flat_map(|(column, numbers)| iter::zip(iter::repeat(column), numbers))
        .map(|(column, number)| one(column, *number))
        .collect()
}
