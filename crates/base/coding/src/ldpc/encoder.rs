//! Check symbols of a frame.
//!
//! The rows of the parity-check matrix are solved for the check bits, with the inverse of a small
//! matrix of circulants; everything else is as sparse as the checks are. CCSDS 131.0-B-5 7.3.4 and
//! 7.4.3 describe the same codewords by generator matrices.

use super::Code;
use super::bits::{add, add_bytes, words, write_bytes};
use super::expurgation::Expurgation;
use super::inverse::{ar4ja_inverse, c2_inverse};
use super::matrix::Matrix;
use super::ring::{Polynomial, Twice};

/// Encodes frames, one at a time. To make one takes some milliseconds for the longest code; it
/// keeps at most 16 KiB.
#[derive(Debug, Clone)]
pub struct LdpcEncoder {
    code: Code,
    matrix: Matrix,
    /// What takes sums of rows to check bits, by row and column; a polynomial twice over.
    inverse: Vec<Vec<Twice>>,
    /// In C2, what else a codeword keeps to.
    expurgation: Option<Expurgation>,
}

impl LdpcEncoder {
    /// For a code.
    pub fn new(code: Code) -> Self {
        let matrix = Matrix::new(code);
        let inverse = match code {
            Code::C2 => c2_inverse(&matrix),
            Code::Ar4ja { rate, .. } => ar4ja_inverse(&matrix, rate),
        };
        let twice = |row: &Vec<Polynomial>| row.iter().map(Twice::new).collect();
        let expurgation = (code == Code::C2).then(|| Expurgation::new(&matrix));
        Self { code, matrix, inverse: inverse.iter().map(twice).collect(), expurgation }
    }

    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Writes the codeword of a frame: [`Code::codeword_len`] bytes for [`Code::frame_len`], the
    /// first bit of a byte the highest.
    ///
    /// # Panics
    /// Where the lengths are others.
    pub fn encode(&self, frame: &[u8], codeword: &mut [u8]) {
        assert_eq!(
            frame.len(),
            self.code.frame_len(),
            "a frame fills the information bits of the code"
        );
        assert_eq!(codeword.len(), self.code.codeword_len(), "a codeword is of the code's length");
        let mut bits = vec![0; words(self.matrix.columns)];
        add_bytes(&mut bits, self.matrix.zeros, frame);
        match self.code {
            Code::C2 => self.check_c2(&mut bits),
            Code::Ar4ja { .. } => self.check_ar4ja(&mut bits),
        }
        write_bytes(&bits, self.matrix.zeros, codeword);
    }

    /// Adds the check bits: both block rows have them in the last two block columns.
    fn check_c2(&self, bits: &mut [u64]) {
        let sums = self.matrix.sums(&self.matrix.rows, bits);
        let mut check = self.solve(&sums);
        if let Some(expurgation) = &self.expurgation {
            let odd = expurgation.odd(bits);
            for (check, odd) in check.iter_mut().zip(odd) {
                if check.is_odd() != odd {
                    check.complement();
                }
            }
        }
        self.put(bits, &check);
    }

    /// Adds the check bits p, q, r, a block each, from the sums s, t, u of the three block rows
    /// over the information: p + A r = s, q + B r = t, C q + r = u; so that (1 + C B) r = u + C t.
    fn check_ar4ja(&self, bits: &mut [u64]) {
        let Matrix { size, rows, columns, .. } = &self.matrix;
        let place = |blocks: usize| columns - 4 * blocks * size;
        let [p, q, r] = [place(3), place(2), place(1)];
        let put = |bits: &mut [u64], at: usize, sums: &[u64]| {
            for (quarter, sums) in sums.chunks_exact(words(*size)).enumerate() {
                add(bits, at + quarter * size, sums, *size);
            }
        };
        let t = self.matrix.sums(&rows[4..8], bits);
        put(bits, q, &t);
        let sums = self.matrix.sums(&rows[8..], bits);
        put(bits, q, &t);
        let last: Vec<u64> =
            self.solve(&sums).iter().flat_map(|quarter| quarter.words().to_vec()).collect();
        put(bits, r, &last);
        let sums = self.matrix.sums(&rows[..8], bits);
        let (first, second) = sums.split_at(sums.len() / 2);
        put(bits, p, first);
        put(bits, q, second);
    }

    /// The product of the inverse and sums of rows.
    fn solve(&self, sums: &[u64]) -> Vec<Polynomial> {
        let size = self.matrix.size;
        let sums: Vec<Polynomial> = sums
            .chunks_exact(words(size))
            .map(|words| Polynomial::new(size, words.iter().copied()))
            .collect();
        let row = |row: &Vec<Twice>| {
            let mut product = Polynomial::zero(size);
            for (factor, sum) in row.iter().zip(&sums) {
                product.add_product(factor, sum);
            }
            product
        };
        self.inverse.iter().map(row).collect()
    }

    /// Adds polynomials to the last block columns.
    fn put(&self, bits: &mut [u64], last: &[Polynomial]) {
        let start = self.matrix.columns - last.len() * self.matrix.size;
        for (index, polynomial) in last.iter().enumerate() {
            add(bits, start + index * self.matrix.size, polynomial.words(), self.matrix.size);
        }
    }
}
