//! Interleaved Reed-Solomon blocks (CCSDS 131.0-B 4.3, 4.4): encode, check, correct.
//!
//! Byte k of a block belongs to codeword k mod I, check symbols likewise. A codeword is checked by dividing it
//! by the generator with one table row a byte; the remainder of a clean codeword is zero, and of a damaged one
//! it gives the syndromes, so clean blocks cost the division alone. The division is done in the basis that the
//! block comes in: the dual basis is a linear map, so its table rows are mapped once and no byte of a clean
//! block ever is.

use crate::field::{EXP, FROM_DUAL, ORDER, TO_DUAL, mul, mul_exp};
use crate::key_equation::{self, PRIMITIVE};

/// Greatest interleave depth that the standard knows.
pub const MAX_INTERLEAVE: usize = 8;

/// How many symbols of a codeword can be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Correction {
    /// (255,239): 8 symbols.
    E8,
    /// (255,223): 16 symbols.
    E16,
}

impl Correction {
    /// Correctable symbols of a codeword, E.
    pub const fn symbols(self) -> usize {
        match self {
            Self::E8 => 8,
            Self::E16 => 16,
        }
    }
    /// Check symbols of a codeword, 2 E.
    pub const fn check_len(self) -> usize {
        2 * self.symbols()
    }
    /// The generator's first root is alpha^(11 j) with this j.
    const fn first_root(self) -> usize {
        128 - self.symbols()
    }
}

/// How a symbol's eight bits stand for an element of GF(256).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Berlekamp's dual basis: what the standard transmits (CCSDS 131.0-B 4.3.9).
    Dual,
    /// Powers of alpha.
    Conventional,
}

/// What a block is coded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters {
    /// Correctable symbols of a codeword.
    pub correction: Correction,
    /// Representation of the symbols.
    pub basis: Basis,
    /// Codewords of a block: 1, 2, 3, 4, 5 or 8.
    pub interleave: usize,
    /// Zero bytes assumed at the start of the block and not sent, over all codewords: a multiple of `interleave`.
    pub virtual_fill: usize,
}

/// Why coding parameters were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The interleave depth is not one of the standard.
    #[error("interleave depth {0} does not exist; it is one of 1, 2, 3, 4, 5, 8")]
    Interleave(usize),
    /// The virtual fill cannot be shared out or leaves no data.
    #[error(
        "virtual fill {fill} must be a multiple of the interleave depth {interleave} and leave data in each codeword"
    )]
    VirtualFill {
        /// Fill over all codewords, in bytes.
        fill: usize,
        /// Interleave depth.
        interleave: usize,
    },
}

/// What decoding found in one codeword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codeword {
    /// No symbol was wrong.
    Clean,
    /// This many symbols were wrong; they are corrected.
    Corrected(u8),
    /// More symbols are wrong than the code corrects; the codeword is left as received.
    Uncorrectable,
}

/// What decoding found in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    codewords: [Codeword; MAX_INTERLEAVE],
    interleave: usize,
}

impl Decoded {
    /// The outcome of each codeword, in order.
    pub fn codewords(&self) -> &[Codeword] {
        &self.codewords[..self.interleave]
    }
    /// No symbol of the block was wrong.
    pub fn is_clean(&self) -> bool {
        self.codewords().iter().all(|codeword| *codeword == Codeword::Clean)
    }
    /// All codewords are clean or corrected.
    pub fn is_good(&self) -> bool {
        !self.codewords().contains(&Codeword::Uncorrectable)
    }
    /// Symbols corrected, over all codewords that could be.
    pub fn corrected_symbols(&self) -> usize {
        self.codewords()
            .iter()
            .map(
                |codeword| {
                    if let Codeword::Corrected(symbols) = codeword { usize::from(*symbols) } else { 0 }
                },
            )
            .sum()
    }
}

/// An encoder and decoder for blocks of one kind; holds 8 KiB of tables.
#[derive(Debug, Clone)]
pub struct ReedSolomon {
    parameters: Parameters,
    rows: Rows,
}

/// For each feedback byte: the generator's multiple that is taken away, as big-endian words.
#[derive(Debug, Clone)]
enum Rows {
    E8(Box<[[u64; 2]; 256]>),
    E16(Box<[[u64; 4]; 256]>),
}

/// Longest remainder: 32 bytes.
type Remainder = [u8; 32];

impl ReedSolomon {
    /// Prepares the tables.
    ///
    /// # Errors
    /// [`ParameterError`] where the standard has no such interleave or the fill does not fit.
    pub fn new(parameters: Parameters) -> Result<Self, ParameterError> {
        let Parameters { correction, interleave, virtual_fill, .. } = parameters;
        if !matches!(interleave, 1..=5 | 8) {
            return Err(ParameterError::Interleave(interleave));
        }
        let most_fill = (ORDER - correction.check_len()) * interleave;
        if !virtual_fill.is_multiple_of(interleave) || virtual_fill >= most_fill {
            return Err(ParameterError::VirtualFill { fill: virtual_fill, interleave });
        }
        let rows = match correction {
            Correction::E8 => Rows::E8(rows(correction, parameters.basis)),
            Correction::E16 => Rows::E16(rows(correction, parameters.basis)),
        };
        Ok(Self { parameters, rows })
    }

    /// What it was made with.
    pub const fn parameters(&self) -> Parameters {
        self.parameters
    }
    /// Bytes of a block as sent: data and check symbols without virtual fill.
    pub const fn block_len(&self) -> usize {
        ORDER * self.parameters.interleave - self.parameters.virtual_fill
    }
    /// Data bytes of a block: the transfer frame.
    pub const fn data_len(&self) -> usize {
        self.block_len() - self.check_len()
    }
    /// Check symbols of a block.
    pub const fn check_len(&self) -> usize {
        self.parameters.correction.check_len() * self.parameters.interleave
    }

    /// Computes the check symbols of `data`.
    ///
    /// # Panics
    /// Where `data` is not [`Self::data_len`] or `check` not [`Self::check_len`] long.
    pub fn encode(&self, data: &[u8], check: &mut [u8]) {
        assert_eq!(data.len(), self.data_len(), "data length of the code");
        assert_eq!(check.len(), self.check_len(), "check length of the code");
        let interleave = self.parameters.interleave;
        let remainders = self.remainders(data);
        for (place, symbol) in check.iter_mut().enumerate() {
            *symbol = remainders[place % interleave][place / interleave];
        }
    }

    /// Whether the block has no wrong symbol.
    ///
    /// # Panics
    /// Where `block` is not [`Self::block_len`] long.
    pub fn is_clean(&self, block: &[u8]) -> bool {
        let remainders = self.block_remainders(block);
        remainders[..self.parameters.interleave].iter().all(|remainder| *remainder == [0; 32])
    }

    /// Corrects `block` in place, codeword by codeword. An uncorrectable codeword is left as received.
    ///
    /// # Panics
    /// Where `block` is not [`Self::block_len`] long.
    pub fn decode(&self, block: &mut [u8]) -> Decoded {
        let interleave = self.parameters.interleave;
        let remainders = self.block_remainders(block);
        let mut codewords = [Codeword::Clean; MAX_INTERLEAVE];
        for (index, outcome) in codewords.iter_mut().enumerate().take(interleave) {
            if remainders[index] != [0; 32] {
                *outcome = self.correct(block, index, &remainders[index]);
            }
        }
        Decoded { codewords, interleave }
    }

    fn correct(&self, block: &mut [u8], index: usize, remainder: &Remainder) -> Codeword {
        let Parameters { correction, basis, interleave, .. } = self.parameters;
        let check_len = correction.check_len();
        let mut syndromes = [0u8; 32];
        for (j, syndrome) in syndromes.iter_mut().enumerate().take(check_len) {
            let root = PRIMITIVE * (correction.first_root() + j) % ORDER;
            *syndrome = remainder[..check_len].iter().fold(0, |sum, symbol| {
                let symbol = if basis == Basis::Dual { FROM_DUAL[usize::from(*symbol)] } else { *symbol };
                mul_exp(sum, root) ^ symbol
            });
        }
        let length = self.block_len() / interleave;
        let solved = key_equation::solve(&syndromes[..check_len], correction.first_root(), length);
        let Some(errors) = solved else { return Codeword::Uncorrectable };
        for (place, value) in errors.places.iter().zip(errors.values).take(errors.count) {
            let value = if basis == Basis::Dual { TO_DUAL[usize::from(value)] } else { value };
            block[(length - 1 - usize::from(*place)) * interleave + index] ^= value;
        }
        Codeword::Corrected(errors.count as u8)
    }

    fn block_remainders(&self, block: &[u8]) -> [Remainder; MAX_INTERLEAVE] {
        assert_eq!(block.len(), self.block_len(), "block length of the code");
        let (data, check) = block.split_at(self.data_len());
        let interleave = self.parameters.interleave;
        let mut remainders = self.remainders(data);
        for (place, symbol) in check.iter().enumerate() {
            remainders[place % interleave][place / interleave] ^= symbol;
        }
        remainders
    }

    fn remainders(&self, data: &[u8]) -> [Remainder; MAX_INTERLEAVE] {
        match &self.rows {
            Rows::E8(rows) => divide_block(rows, self.parameters.interleave, data),
            Rows::E16(rows) => divide_block(rows, self.parameters.interleave, data),
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

/// Divides `DEPTH` interleaved codewords side by side, so that the processor overlaps their table look-ups.
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

fn rows<const WORDS: usize>(correction: Correction, basis: Basis) -> Box<[[u64; WORDS]; 256]> {
    let generator = generator(correction);
    let mut rows = Box::new([[0u64; WORDS]; 256]);
    for (feedback, row) in rows.iter_mut().enumerate() {
        let factor = if basis == Basis::Dual { FROM_DUAL[feedback] } else { feedback as u8 };
        for (i, coefficient) in generator[1..=correction.check_len()].iter().enumerate() {
            let product = mul(factor, *coefficient);
            let symbol = if basis == Basis::Dual { TO_DUAL[usize::from(product)] } else { product };
            row[i / 8] |= u64::from(symbol) << (56 - 8 * (i % 8));
        }
    }
    rows
}

/// The generator's coefficients, highest power first.
fn generator(correction: Correction) -> [u8; 33] {
    let mut generator = [0u8; 33];
    generator[0] = 1;
    for j in 0..correction.check_len() {
        let root = EXP[PRIMITIVE * (correction.first_root() + j) % ORDER];
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
            0x01, 0x5b, 0x7f, 0x56, 0x10, 0x1e, 0x0d, 0xeb, 0x61, 0xa5, 0x08, 0x2a, 0x36, 0x56, 0xab, 0x20,
            0x71,
        ];
        let half8 = [0x01, 0xa5, 0x69, 0x1b, 0x9f, 0x68, 0x98, 0x65, 0x4a];
        for (correction, half) in [(Correction::E16, half16.as_slice()), (Correction::E8, half8.as_slice())] {
            let generator = generator(correction);
            let length = correction.check_len();
            for (i, expected) in half.iter().enumerate() {
                assert_eq!(generator[i], *expected);
                assert_eq!(generator[length - i], *expected, "palindrome");
            }
        }
    }
}
