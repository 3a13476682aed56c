//! Interleaved Reed-Solomon blocks (CCSDS 131.0-B 4.3, 4.4): encode, check, correct, one block at a
//! time.
//!
//! Byte k of a block belongs to codeword k mod I, check symbols likewise. A codeword is checked by
//! dividing it by the generator; the remainder of a clean codeword is zero, and of a damaged one it
//! gives the syndromes, so clean blocks cost the division alone. Many blocks at once are the work
//! of [`crate::BatchDecoder`] and
//! [`crate::BatchEncoder`].

use crate::division::{Division, Remainder};
use crate::field::{FROM_DUAL, ORDER, TO_DUAL};
use crate::key_equation;
use crate::parameters::{Basis, MAX_INTERLEAVE, ParameterError, Parameters};

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
    pub(crate) codewords: [Codeword; MAX_INTERLEAVE],
    pub(crate) interleave: usize,
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
            .map(|codeword| {
                if let Codeword::Corrected(symbols) = codeword { usize::from(*symbols) } else { 0 }
            })
            .sum()
    }
}

/// An encoder and decoder for blocks of one kind; holds 8 KiB of tables.
#[derive(Debug, Clone)]
pub struct ReedSolomon {
    parameters: Parameters,
    division: Division,
}

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
        let division =
            Division::new(correction.first_root(), correction.check_len(), parameters.basis);
        Ok(Self { parameters, division })
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
        let remainders = self.division.of_data(interleave, data);
        for (place, symbol) in check.iter_mut().enumerate() {
            *symbol = remainders[place % interleave][place / interleave];
        }
    }

    /// Whether the block has no wrong symbol.
    ///
    /// # Panics
    /// Where `block` is not [`Self::block_len`] long.
    pub fn is_clean(&self, block: &[u8]) -> bool {
        assert_eq!(block.len(), self.block_len(), "block length of the code");
        let remainders = self.division.of_block(self.parameters.interleave, block);
        remainders.iter().all(|remainder| *remainder == [0; 32])
    }

    /// Corrects `block` in place, codeword by codeword. An uncorrectable codeword is left as
    /// received.
    ///
    /// # Panics
    /// Where `block` is not [`Self::block_len`] long.
    pub fn decode(&self, block: &mut [u8]) -> Decoded {
        let interleave = self.parameters.interleave;
        assert_eq!(block.len(), self.block_len(), "block length of the code");
        let remainders = self.division.of_block(interleave, block);
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
        let mut remainder = *remainder;
        if basis == Basis::Dual {
            remainder.iter_mut().for_each(|symbol| *symbol = FROM_DUAL[usize::from(*symbol)]);
        }
        let syndromes = key_equation::syndromes(&remainder[..check_len], correction.first_root());
        let length = self.block_len() / interleave;
        let solved = key_equation::solve(&syndromes[..check_len], correction.first_root(), length);
        let Some(errors) = solved else { return Codeword::Uncorrectable };
        for (place, value) in errors.places.iter().zip(errors.values).take(errors.count) {
            let value = if basis == Basis::Dual { TO_DUAL[usize::from(value)] } else { value };
            block[(length - 1 - usize::from(*place)) * interleave + index] ^= value;
        }
        Codeword::Corrected(errors.count as u8)
    }
}
