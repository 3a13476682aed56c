//! Decodes LDPC codewords (low-density parity-check codes) from bits or from soft symbols.

use crate::inner::LineCode;
use crate::quality::{CorrectedSymbols, FrameVerdict, Iterations, Reason};
use skyhaul_coding::align::Polarity;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::ldpc::{Code, Decoded, LdpcDecoder, LdpcEncoder};
use skyhaul_coding::{Randomiser, Sequence};

use super::Outcome;

/// Decodes codewords.
#[derive(Debug, Clone)]
pub(super) struct ParityDecoder {
    code: Code,
    decoder: LdpcDecoder,
    encoder: LdpcEncoder,
    /// The randomiser's bits over a codeword.
    sequence: Vec<u8>,
    /// The soft values of the bits, if there are any.
    soft: Option<SoftBits>,
    symbols: Vec<i8>,
}

/// Where a block is in the soft symbols.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its first bit.
    pub position: u64,
    pub polarity: Polarity,
}

/// The newest bits of a stream, each with its reliability.
#[derive(Debug, Clone, Default)]
pub(super) struct SoftBits {
    /// Number of the first.
    start: u64,
    bits: Vec<i8>,
    line: LineCode,
    /// The symbol before.
    last: i8,
}

/// Older bits are dropped in pieces of at least this length.
const TRIM: usize = 64 * 1024;

impl SoftBits {
    /// Bits that were sent in a line code.
    pub fn new(line: LineCode) -> Self {
        Self { line, last: -1, ..Self::default() }
    }

    /// Takes symbols, positive for a one; bits before number `from` are no longer asked for.
    pub fn push(&mut self, symbols: &[u8], from: u64) {
        let passed = usize::try_from(from.saturating_sub(self.start))
            .unwrap_or(usize::MAX)
            .min(self.bits.len());
        if passed >= TRIM {
            self.bits.drain(..passed);
            self.start += passed as u64;
        }
        for symbol in symbols {
            let symbol = symbol.cast_signed();
            let last = core::mem::replace(&mut self.last, symbol);
            self.bits.push(match self.line {
                LineCode::Level => symbol,
                LineCode::Mark => change(last, symbol),
            });
        }
    }

    fn get(&self, position: u64, len: usize) -> Option<&[i8]> {
        let at = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.bits.get(at..at.checked_add(len)?)
    }
}

/// The reliability of the difference of two levels: the lower reliability of the two.
fn change(last: i8, symbol: i8) -> i8 {
    let size = last.unsigned_abs().min(symbol.unsigned_abs()).min(127).cast_signed();
    if (last > 0) == (symbol > 0) { -size } else { size }
}

impl ParityDecoder {
    pub fn new(code: Code, randomiser: Option<Randomiser>, kernel: Kernel) -> Self {
        let mut sequence = vec![0; code.codeword_len()];
        if let Some(randomiser) = randomiser {
            Sequence::apply(&randomiser.sequence(code.codeword_len()), 0, &mut sequence);
        }
        Self {
            code,
            decoder: LdpcDecoder::with_kernel(code, kernel),
            encoder: LdpcEncoder::new(code),
            sequence,
            soft: None,
            symbols: Vec::new(),
        }
    }

    /// From now on blocks have a position in the soft bits.
    pub fn take_soft(&mut self, soft: SoftBits) {
        self.soft = Some(soft);
    }

    pub const fn soft(&mut self) -> Option<&mut SoftBits> {
        self.soft.as_mut()
    }

    /// The check symbols of a frame.
    pub fn encode(&self, frame: &[u8], codeword: &mut [u8]) {
        self.encoder.encode(frame, codeword);
    }

    /// Decodes blocks as received, randomised, each with its place: appends their frames to
    /// `frames`.
    pub fn decode<'a>(
        &mut self,
        blocks: impl Iterator<Item = (&'a [u8], Place)>,
        frames: &mut Vec<u8>,
    ) -> Vec<Decoded> {
        let mut symbols = core::mem::take(&mut self.symbols);
        symbols.clear();
        for (block, place) in blocks {
            let soft = self
                .soft
                .as_ref()
                .and_then(|soft| soft.get(place.position, self.code.codeword_bits()));
            match soft {
                Some(soft) => {
                    let turned = self.sequence.iter().flat_map(|byte| bits(*byte));
                    symbols.extend(soft.iter().zip(turned).map(|(symbol, turned)| {
                        if turned == place.polarity.is_inverted() {
                            *symbol
                        } else {
                            symbol.saturating_neg()
                        }
                    }));
                }
                None => {
                    let received =
                        block.iter().zip(&self.sequence).map(|(byte, turned)| byte ^ turned);
                    symbols.extend(received.flat_map(bits).map(|bit| if bit { 1i8 } else { -1 }));
                }
            }
        }
        let decoded = self.decoder.decode(&symbols, frames);
        self.symbols = symbols;
        decoded
    }
}

fn bits(byte: u8) -> impl Iterator<Item = bool> {
    (0..8).rev().map(move |bit| byte >> bit & 1 == 1)
}

/// The decoder's result for a codeword.
pub(super) fn outcome(decoded: &Decoded) -> Outcome {
    let verdict = match (decoded.is_good(), decoded.is_clean()) {
        (false, _) => FrameVerdict::Uncorrectable,
        (true, false) => FrameVerdict::Corrected,
        (true, true) => FrameVerdict::Clean,
    };
    let iterations =
        Iterations { count: decoded.iterations(), corrected_symbols: decoded.corrected_symbols() };
    Outcome {
        verdict,
        corrected: CorrectedSymbols::EMPTY,
        iterations: Some(iterations),
        reason: Reason::Ldpc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_level_is_as_sure_as_the_less_sure_of_two_symbols() {
        let mut soft = SoftBits::new(LineCode::Mark);
        soft.push(&[100, 20, 200, 128, 127].map(|level: u8| level), 0);
        assert_eq!(soft.get(0, 5).unwrap(), [1, -20, 20, -56, 127]);
        assert_eq!(soft.get(1, 5), None);
        let mut plain = SoftBits::new(LineCode::Level);
        plain.push(&vec![7; TRIM], 0);
        plain.push(&[9], TRIM as u64);
        assert_eq!((plain.get(TRIM as u64, 1), plain.get(0, 1)), (Some(&[9i8][..]), None));
    }
}
