//! The convolutional code of constraint length 7 (CCSDS 131.0-B-2 3.3, 3.4): encoder, Viterbi
//! decoder, and finding out how a stream's symbols are to be taken.
//!
//! A symbol is an `i8`: its sign is the bit, positive for one, its size how sure it is, on any
//! scale; zero is a symbol of which nothing is known. Hard bits are symbols of one size.
//!
//! ```
//! use skyhaul_coding::convolutional::{Code, ViterbiDecoder, ConvolutionalEncoder, Rate};
//! let code = Code::new(Rate::Half);
//! let sent: Vec<u8> = (0..=255).collect();
//! let mut symbols = Vec::new();
//! ConvolutionalEncoder::new(code).encode(&sent, |bit| symbols.push(if bit { 60 } else { -60 }));
//! symbols[1000] = -127;
//! let mut decoder = ViterbiDecoder::new(code);
//! let mut received = Vec::new();
//! decoder.push(&symbols, &mut received);
//! decoder.finish(&mut received);
//! assert_eq!(received, sent);
//! ```

mod check;
mod decoder;
mod encoder;
mod forward;
mod levels;
mod node;
mod reception;
mod traceback;
mod trellis;

pub use decoder::{Growth, ViterbiDecoder};
pub use encoder::ConvolutionalEncoder;
pub use node::NodeSynchroniser;
pub use reception::{Modulation, Reception};

/// States of the encoder: its last six bits.
const STATES: usize = 64;

/// How many information bits there are to a symbol, by leaving out symbols of the code of rate 1/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 1/2: none is left out.
    Half,
    /// 2/3.
    TwoThirds,
    /// 3/4.
    ThreeQuarters,
    /// 5/6.
    FiveSixths,
    /// 7/8.
    SevenEighths,
}

impl Rate {
    /// All rates, the lowest first.
    pub const ALL: [Self; 5] =
        [Self::Half, Self::TwoThirds, Self::ThreeQuarters, Self::FiveSixths, Self::SevenEighths];

    /// Symbols that so many information bits are sent as, rounded down.
    pub const fn symbols(self, bits: u64) -> u64 {
        bits * self.period() as u64 / self.sent().len() as u64
    }

    /// Which of an encoder's outputs are sent, for each information bit, over and over. CCSDS
    /// 131.0-B-2 table 3-1.
    const fn sent(self) -> &'static [[bool; 2]] {
        const BOTH: [bool; 2] = [true, true];
        const FIRST: [bool; 2] = [true, false];
        const SECOND: [bool; 2] = [false, true];
        match self {
            Self::Half => &[BOTH],
            Self::TwoThirds => &[BOTH, SECOND],
            Self::ThreeQuarters => &[BOTH, SECOND, FIRST],
            Self::FiveSixths => &[BOTH, SECOND, FIRST, SECOND, FIRST],
            Self::SevenEighths => &[BOTH, SECOND, SECOND, SECOND, FIRST, SECOND, FIRST],
        }
    }

    /// Symbols after which the pattern of those sent begins again.
    const fn period(self) -> usize {
        self.sent().len() + 1
    }

    /// Trellis steps that a decision is surer for, on either side: ten constraint lengths for the
    /// code as it is, more where fewer symbols speak for each step. A multiple of 16.
    const fn memory(self) -> usize {
        match self {
            Self::Half => 64,
            Self::TwoThirds => 96,
            Self::ThreeQuarters => 128,
            Self::FiveSixths => 192,
            Self::SevenEighths => 256,
        }
    }
}

/// Whether the encoder's second output is inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecondOutput {
    /// It is sent as it is.
    Plain,
    /// It is sent inverted, so that a run of zeros or ones still has transitions.
    Inverted,
}

/// A convolutional code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// How many symbols are left out.
    pub rate: Rate,
    /// The second output's polarity.
    pub second: SecondOutput,
}

impl Code {
    /// The code as CCSDS has it: the second output inverted at rate 1/2, plain where symbols are
    /// left out.
    pub const fn new(rate: Rate) -> Self {
        let second = match rate {
            Rate::Half => SecondOutput::Inverted,
            _ => SecondOutput::Plain,
        };
        Self { rate, second }
    }

    /// The two outputs for a register of seven bits, the newest the lowest.
    fn outputs(self, register: u8) -> [bool; 2] {
        // The standard writes the newest bit first: 1111001 and 1011011.
        const CONNECTIONS: [u8; 2] = [0b100_1111, 0b110_1101];
        let [first, second] = CONNECTIONS.map(|taps| (register & taps).count_ones() % 2 == 1);
        [first, second ^ (self.second == SecondOutput::Inverted)]
    }
}

#[cfg(test)]
mod tests;
