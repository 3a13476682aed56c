//! What the codewords of C2 keep to beside the checks: of the 7156 dimensions that the matrix
//! leaves, the standard leaves two unused (CCSDS 131.0-B-5 7.3.4). Whether the sum of each block of
//! check bits is odd is settled by the frame.

use super::bits::{WORD, low, window};
use super::inverse::{block, c2_inverse};
use super::matrix::Matrix;
use super::ring::Polynomial;
use std::array;

/// Block columns of information and of check bits.
const INFORMATION: usize = 14;
const CHECK: usize = 2;

/// The two further checks.
#[derive(Debug, Clone)]
pub(super) struct Expurgation {
    size: usize,
    /// For each block of check bits: a bit for each block of information whose sum counts.
    blocks: [u16; CHECK],
}

impl Expurgation {
    /// For the matrix of C2.
    pub fn new(matrix: &Matrix) -> Self {
        let mut blocks = [0; CHECK];
        let inverse = c2_inverse(matrix);
        for column in 0..INFORMATION {
            for (blocks, row) in blocks.iter_mut().zip(first_rows(matrix, &inverse, column)) {
                *blocks |= u16::from(row.is_odd()) << column;
            }
        }
        Self { size: matrix.size, blocks }
    }

    /// Whether the sums of the two blocks of check bits are odd, by the information before them.
    pub fn odd(&self, bits: &[u64]) -> [bool; CHECK] {
        let sums: u16 =
            (0..INFORMATION).map(|column| u16::from(self.is_odd(bits, column)) << column).sum();
        self.blocks.map(|blocks| (blocks & sums).count_ones() % 2 == 1)
    }

    /// Both hold.
    pub fn holds(&self, bits: &[u64]) -> bool {
        self.odd(bits) == array::from_fn(|block| self.is_odd(bits, INFORMATION + block))
    }

    fn is_odd(&self, bits: &[u64], column: usize) -> bool {
        let word = |at| window(bits, column * self.size + at) & low(self.size - at);
        (0..self.size).step_by(WORD).fold(0, |sum, at| sum ^ word(at)).count_ones() % 2 == 1
    }
}

/// The first rows of the generator's circulants for a block of information: they solve the checks
/// and have a zero last.
pub(super) fn first_rows(
    matrix: &Matrix,
    inverse: &[Vec<Polynomial>],
    column: usize,
) -> [Polynomial; CHECK] {
    let sums = [0, 1].map(|row| block(matrix.size, &matrix.rows[row], column));
    array::from_fn(|row| {
        let [first, second]: [Polynomial; CHECK] =
            array::from_fn(|column| inverse[row][column].times(&sums[column]));
        let mut sum = first;
        sum.add(&second);
        if sum.bit(matrix.size - 1) {
            sum.complement();
        }
        sum
    })
}
