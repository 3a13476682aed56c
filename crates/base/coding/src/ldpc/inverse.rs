//! Inverses of the small matrices of circulants by which check bits are solved for.

use super::Rate;
use super::matrix::{Circulant, Matrix};
use super::ring::{self, Polynomial};
use std::array;

/// The polynomial of a block: what it takes that of a block of bits to that of the rows' sums with.
pub(super) fn block(size: usize, row: &[Circulant], column: usize) -> Polynomial {
    let mut polynomial = Polynomial::zero(size);
    for one in row.iter().filter(|one| one.column == column) {
        polynomial.add(&Polynomial::power(size, (size - one.shift) % size));
    }
    polynomial
}

/// Of the last two block columns, by the determinant: modulo all but x - 1, which divides every
/// block and every sum.
pub(super) fn c2_inverse(matrix: &Matrix) -> Vec<Vec<Polynomial>> {
    let [[a, b], [c, d]]: [[Polynomial; 2]; 2] = array::from_fn(|row| {
        array::from_fn(|column| block(matrix.size, &matrix.rows[row], 14 + column))
    });
    let mut determinant = a.times(&d);
    determinant.add(&b.times(&c));
    let inverse = determinant.inverse();
    [[d, b], [c, a]].map(|row| row.map(|entry| entry.times(&inverse)).to_vec()).to_vec()
}

/// Of 1 + C B.
pub(super) fn ar4ja_inverse(matrix: &Matrix, rate: Rate) -> Vec<Vec<Polynomial>> {
    let Matrix { size, rows, .. } = matrix;
    let first = 4 * rate.blocks();
    let (q, r) = (first + 4, first + 8);
    let entry = |row: usize, column: usize| {
        let mut sum = Polynomial::zero(*size);
        if row == column {
            sum.add(&Polynomial::power(*size, 0));
        }
        for between in 0..4 {
            let c = block(*size, &rows[8 + row], q + between);
            sum.add(&c.times(&block(*size, &rows[4 + between], r + column)));
        }
        sum
    };
    let product = (0..4).map(|row| (0..4).map(|column| entry(row, column)).collect()).collect();
    ring::inverse(product).expect("the standard's matrices have generators; a test makes each")
}
