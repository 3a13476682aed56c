//! Circulants: square matrices over GF(2) of which each row is the one above it, turned by one
//! place.
//!
//! They multiply as polynomials modulo x^n - 1 do. For the sizes that the codes have, powers give
//! the inverses:
//!
//! - n = 2^m: squaring m times turns a polynomial into the sum of its coefficients, so that the
//!   power n - 1 of one with an odd sum is its inverse;
//! - n = 2^m - 1: squaring m times changes nothing, so that the power n - 1 of any polynomial
//!   inverts it modulo every factor of x^n - 1 that it has not in common with it, and is zero
//!   modulo the others.

use super::bits::{WORD, low, window, words};

/// A polynomial modulo x^n - 1, the lowest power first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Polynomial {
    size: usize,
    words: Vec<u64>,
}

impl Polynomial {
    /// Zero.
    pub fn zero(size: usize) -> Self {
        Self { size, words: vec![0; words(size)] }
    }

    /// A power of x.
    pub fn power(size: usize, exponent: usize) -> Self {
        let mut power = Self::zero(size);
        power.words[exponent / WORD] = 1 << (exponent % WORD);
        power
    }

    /// From `size` bits.
    pub fn new(size: usize, bits: impl Iterator<Item = u64>) -> Self {
        let mut polynomial = Self { size, words: bits.take(words(size)).collect() };
        polynomial.trim();
        polynomial
    }

    /// The bits, and zeros to a whole word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The coefficient of a power.
    pub fn bit(&self, exponent: usize) -> bool {
        self.words[exponent / WORD] >> (exponent % WORD) & 1 == 1
    }

    /// The sum of the coefficients is odd.
    pub fn is_odd(&self) -> bool {
        self.words.iter().fold(0, |sum, word| sum ^ word).count_ones() % 2 == 1
    }

    /// All coefficients change.
    pub fn complement(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    /// Adds a polynomial.
    pub fn add(&mut self, other: &Self) {
        for (to, from) in self.words.iter_mut().zip(&other.words) {
            *to ^= from;
        }
    }

    /// Adds the product of two polynomials.
    pub fn add_product(&mut self, dense: &Twice, other: &Self) {
        for (index, word) in other.words.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let exponent = index * WORD + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                for (place, to) in self.words.iter_mut().enumerate() {
                    *to ^= window(&dense.0, self.size - exponent + place * WORD);
                }
            }
        }
        self.trim();
    }

    /// The product of two polynomials.
    pub fn times(&self, other: &Self) -> Self {
        let mut product = Self::zero(self.size);
        product.add_product(&Twice::new(self), other);
        product
    }

    /// The square: each power of x doubled.
    fn squared(&self) -> Self {
        let mut square = Self::zero(self.size);
        for exponent in (0..self.size).filter(|exponent| self.bit(*exponent)) {
            let double = 2 * exponent % self.size;
            square.words[double / WORD] ^= 1 << (double % WORD);
        }
        square
    }

    /// The power n - 1, which is the inverse as far as there is one; n is a power of two or one
    /// less.
    pub fn inverse(&self) -> Self {
        let mut inverse = Self::power(self.size, 0);
        let mut square = self.clone();
        // The binary digits of n - 1: all ones, or all but the lowest.
        for digit in 0..usize::BITS - (self.size - 1).leading_zeros() {
            if (self.size - 1) >> digit & 1 == 1 {
                inverse = inverse.times(&square);
            }
            square = square.squared();
        }
        inverse
    }

    fn trim(&mut self) {
        if let Some(last) = self.words.last_mut()
            && !self.size.is_multiple_of(WORD)
        {
            *last &= low(self.size % WORD);
        }
    }
}

/// A polynomial twice over, so that what it is turned by any number of places is one run of bits.
#[derive(Debug, Clone)]
pub(super) struct Twice(Vec<u64>);

impl Twice {
    pub fn new(polynomial: &Polynomial) -> Self {
        let mut twice = vec![0; words(2 * polynomial.size)];
        super::bits::add(&mut twice, 0, &polynomial.words, polynomial.size);
        super::bits::add(&mut twice, polynomial.size, &polynomial.words, polynomial.size);
        Self(twice)
    }
}

/// The inverse of a square matrix of polynomials modulo x^n - 1 with n a power of two. Such a
/// polynomial has an inverse where its coefficients' sum is odd, and a matrix where that of its
/// sums has; `None` elsewhere.
pub(super) fn inverse(mut matrix: Vec<Vec<Polynomial>>) -> Option<Vec<Vec<Polynomial>>> {
    let order = matrix.len();
    let size = matrix.first()?.first()?.size;
    let mut inverse: Vec<Vec<Polynomial>> = (0..order)
        .map(|row| {
            let unit = |column| {
                if row == column { Polynomial::power(size, 0) } else { Polynomial::zero(size) }
            };
            (0..order).map(unit).collect()
        })
        .collect();
    for column in 0..order {
        let pivot = (column..order).find(|row| matrix[*row][column].is_odd())?;
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let factor = matrix[column][column].inverse();
        for entry in matrix[column].iter_mut().chain(&mut inverse[column]) {
            *entry = entry.times(&factor);
        }
        for row in (0..order).filter(|row| *row != column) {
            let factor = Twice::new(&matrix[row][column]);
            for side in [&mut matrix, &mut inverse] {
                let [to, from] = side.get_disjoint_mut([row, column]).ok()?;
                for (to, from) in to.iter_mut().zip(from) {
                    to.add_product(&factor, from);
                }
            }
        }
    }
    Some(inverse)
}
