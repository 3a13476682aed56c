//! Division of interleaved codewords by a generator polynomial, one table row a symbol.
//!
//! The remainder of a codeword is zero, that of data is its check symbols, and of a damaged
//! codeword it gives the syndromes. The division is done in the basis that the block comes in: the
//! dual basis is a linear map, so the table rows are mapped once and no symbol ever is.

use crate::field::{EXP, FROM_DUAL, ORDER, TO_DUAL, mul};
use crate::key_equation::PRIMITIVE;
use crate::parameters::{Basis, MAX_INTERLEAVE};

/// Longest remainder: 32 symbols.
pub(crate) type Remainder = [u8; 32];

/// A generator with 16 or 32 consecutive roots, ready to divide by.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    rows: Rows,
    check_len: usize,
}

/// For each feedback symbol: the generator's multiple that is taken away, as big-endian words.
#[derive(Debug, Clone)]
enum Rows {
    Checks16(Box<[[u64; 2]; 256]>),
    Checks32(Box<[[u64; 4]; 256]>),
}

impl Division {
    /// By the polynomial with the roots beta^`first_root` .., 16 or 32 of them.
    ///
    /// # Panics
    /// For another number of roots.
    pub(crate) fn new(first_root: usize, check_len: usize, basis: Basis) -> Self {
        let generator = generator(first_root, check_len);
        let rows = match check_len {
            16 => Rows::Checks16(rows(&generator, basis)),
            32 => Rows::Checks32(rows(&generator, basis)),
            _ => unreachable!("the standard has 16 or 32 check symbols"),
        };
        Self { rows, check_len }
    }

    /// The remainders of whole codewords, check symbols included; those after `interleave` are
    /// zero.
    pub(crate) fn of_block(&self, interleave: usize, block: &[u8]) -> [Remainder; MAX_INTERLEAVE] {
        let (data, check) = block.split_at(block.len() - self.check_len * interleave);
        let mut remainders = self.of_data(interleave, data);
        for (place, symbol) in check.iter().enumerate() {
            remainders[place % interleave][place / interleave] ^= symbol;
        }
        remainders
    }

    /// The check symbols that belong to data.
    pub(crate) fn of_data(&self, interleave: usize, data: &[u8]) -> [Remainder; MAX_INTERLEAVE] {
        match &self.rows {
            Rows::Checks16(rows) => divide_block(rows, interleave, data),
            Rows::Checks32(rows) => divide_block(rows, interleave, data),
        }
    }
}

fn divide_block<const WORDS: usize>(
    rows: &[[u64; WORDS]; 256],
    interleave: usize,
    data: &[u8],
) -> [Remainder; MAX_INTERLEAVE] {
    match interleave {
        1 => divide::<WORDS, 1>(rows, data),
        2 => divide::<WORDS, 2>(rows, data),
        3 => divide::<WORDS, 3>(rows, data),
        4 => divide::<WORDS, 4>(rows, data),
        5 => divide::<WORDS, 5>(rows, data),
        8 => divide::<WORDS, 8>(rows, data),
        _ => unreachable!("the constructor refuses other depths"),
    }
}

/// Divides `DEPTH` interleaved codewords side by side, so that the processor overlaps their table
/// look-ups.
fn divide<const WORDS: usize, const DEPTH: usize>(
    rows: &[[u64; WORDS]; 256],
    data: &[u8],
) -> [Remainder; MAX_INTERLEAVE] {
    let mut registers = [[0u64; WORDS]; DEPTH];
    for symbols in data.chunks_exact(DEPTH) {
        for (register, symbol) in registers.iter_mut().zip(symbols) {
            let row = &rows[usize::from((register[0] >> 56) as u8 ^ symbol)];
            for word in 0..WORDS {
                let carried = if word + 1 < WORDS { register[word + 1] >> 56 } else { 0 };
                register[word] = (register[word] << 8 | carried) ^ row[word];
            }
        }
    }
    let mut remainders = [[0u8; 32]; MAX_INTERLEAVE];
    for (remainder, register) in remainders.iter_mut().zip(registers) {
        for (bytes, word) in remainder.chunks_exact_mut(8).zip(register) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
    remainders
}

fn rows<const WORDS: usize>(generator: &[u8], basis: Basis) -> Box<[[u64; WORDS]; 256]> {
    let mut rows = Box::new([[0u64; WORDS]; 256]);
    for (feedback, row) in rows.iter_mut().enumerate() {
        let factor = if basis == Basis::Dual { FROM_DUAL[feedback] } else { feedback as u8 };
        for (i, coefficient) in generator[1..].iter().enumerate() {
            let product = mul(factor, *coefficient);
            let symbol = if basis == Basis::Dual { TO_DUAL[usize::from(product)] } else { product };
            row[i / 8] |= u64::from(symbol) << (56 - 8 * (i % 8));
        }
    }
    rows
}

/// The coefficients of the polynomial with these roots, highest power first.
pub(crate) fn generator(first_root: usize, check_len: usize) -> Vec<u8> {
    let mut generator = vec![0u8; check_len + 1];
    generator[0] = 1;
    for j in 0..check_len {
        let root = EXP[PRIMITIVE * (first_root + j) % ORDER];
        for i in (0..=j).rev() {
            generator[i + 1] ^= mul(generator[i], root);
        }
    }
    generator
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_coefficients_known_answers() {
        let half16 = [
            0x01, 0x5b, 0x7f, 0x56, 0x10, 0x1e, 0x0d, 0xeb, 0x61, 0xa5, 0x08, 0x2a, 0x36, 0x56,
            0xab, 0x20, 0x71,
        ];
        let half8 = [0x01, 0xa5, 0x69, 0x1b, 0x9f, 0x68, 0x98, 0x65, 0x4a];
        for (first_root, length, half) in
            [(112, 32, half16.as_slice()), (120, 16, half8.as_slice())]
        {
            let generator = generator(first_root, length);
            for (i, expected) in half.iter().enumerate() {
                assert_eq!(generator[i], *expected);
                assert_eq!(generator[length - i], *expected, "palindrome");
            }
        }
    }
}
