//! The inner code: from the symbols of a demodulator to the bits that the synchroniser searches.
//!
//! ```text
//! symbols → node synchronisation → Viterbi decoder → NRZ-M → bits
//! ```
//!
//! A mission's `[coding]` says which of these there are; many receivers decode them and deliver
//! bits. Positions in the bits are reported as positions in the input ([`InnerDecoder::position`]),
//! so that an input can be read again from a given frame.

mod code;

use crate::end_of_input::EndOfInput;
use crate::identify::{Identification, InputLayout, Unidentified, identify_marked};
use crate::mission::{Mission, MissionSet};
use crate::quality::BitPosition;
pub use code::{InnerCode, LineCode, Symbols};
use skyhaul_coding::convolutional::NodeSynchroniser;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::nrzm;

/// Identifies a sample of symbols: first as plain bits, then with each inner code of the missions.
///
/// # Errors
/// [`Unidentified`], for the code that came closest.
pub fn identify_symbols(
    sample: &[u8],
    symbols: Symbols,
    missions: &MissionSet,
    end: EndOfInput,
) -> Result<Identification, Unidentified> {
    let mut codes = vec![InnerCode::default()];
    for mission in missions.iter() {
        let code = mission.coding().inner;
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    let mut closest = Unidentified::Nothing;
    for code in codes {
        match identify_by(code, sample, symbols, missions, end) {
            Ok(found) => return Ok(found),
            Err(Unidentified::Nothing) => {}
            Err(closer) => closest = closer,
        }
    }
    Err(closest)
}

fn identify_by(
    code: InnerCode,
    sample: &[u8],
    symbols: Symbols,
    missions: &MissionSet,
    end: EndOfInput,
) -> Result<Identification, Unidentified> {
    let mut decoder = InnerDecoder::new(code, symbols, BitPosition::START, Kernel::best());
    let mut bits = Vec::new();
    decoder.push(sample, &mut bits);
    decoder.finish(&mut bits);
    let mut having = MissionSet::empty();
    for mission in missions.iter().filter(|mission| mission.coding().inner == code) {
        having.append(mission.clone());
    }
    // Frames are not sent without markers.
    let found = identify_marked(&bits, &having, end, None)?;
    let mission = match found.is_generic {
        true => {
            let (line, convolutional) = code.text();
            let text = found.mission.text().replace("[coding]\n", &format!("[coding]\n{line}"));
            Mission::from_toml(&format!("{text}{convolutional}"))
                .map_err(|_| Unidentified::Nothing)?
        }
        false => found.mission,
    };
    let format = match symbols {
        Symbols::Hard => InputLayout::Symbols,
        Symbols::Soft => InputLayout::Soft,
    };
    Ok(Identification { format, mission, ..found })
}

/// Decodes the inner code of a stream.
#[derive(Debug, Clone)]
pub struct InnerDecoder {
    symbols: Symbols,
    /// The bit of the input at which the first symbol begins.
    start: u64,
    node: Option<NodeSynchroniser>,
    mark: Option<nrzm::NrzmDecoder>,
    /// Signs of soft symbols of an incomplete byte; the newest is the lowest bit.
    signs: u8,
    signs_len: u32,
    /// What the decoder is given.
    soft: Vec<i8>,
}

/// Bytes of hard symbols unpacked at a time.
const PIECE: usize = 4_096;

impl InnerDecoder {
    /// Symbols before a position that must be decoded to get the bits from that position: for lock,
    /// and to fill the decoder's memory.
    const LEAD: u64 = 4 * NodeSynchroniser::MAX_WAITING as u64;

    /// The same in bits of the input.
    pub const fn lead(symbols: Symbols) -> u64 {
        symbols.bits() * Self::LEAD
    }

    /// Begins with the symbol at bit `start` of the input, which is at the beginning of a byte.
    pub fn new(code: InnerCode, symbols: Symbols, start: BitPosition, kernel: Kernel) -> Self {
        let node = code
            .convolutional
            .map(|(code, modulation)| NodeSynchroniser::with_kernel(code, modulation, kernel));
        let mark = (code.line == LineCode::Mark).then(nrzm::NrzmDecoder::default);
        let start = start.as_bits() / 8 * 8;
        Self { symbols, start, node, mark, signs: 0, signs_len: 0, soft: Vec::new() }
    }

    /// Takes the input's next bytes and appends the bits that are decided now, in whole bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let from = out.len();
        match (&mut self.node, self.symbols) {
            (None, Symbols::Hard) => out.extend_from_slice(bytes),
            (None, Symbols::Soft) => self.harden(bytes, out),
            (Some(node), Symbols::Soft) => {
                for bytes in bytes.chunks(8 * PIECE) {
                    self.soft.clear();
                    self.soft.extend(bytes.iter().map(|symbol| symbol.cast_signed()));
                    node.push(&self.soft, out);
                }
            }
            (Some(node), Symbols::Hard) => {
                for bytes in bytes.chunks(PIECE) {
                    self.soft.clear();
                    let of_byte = |byte: &u8| {
                        [7, 6, 5, 4, 3, 2, 1, 0]
                            .map(|bit| ((*byte >> bit & 1) << 1).cast_signed() - 1)
                    };
                    self.soft.extend(bytes.iter().flat_map(of_byte));
                    node.push(&self.soft, out);
                }
            }
        }
        if let Some(mark) = &mut self.mark {
            mark.decode(&mut out[from..]);
        }
    }

    /// Appends the bits that the end of the input decides.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        if let Some(node) = &mut self.node {
            node.finish(out);
        }
        if let Some(mark) = &mut self.mark {
            mark.decode(&mut out[from..]);
        }
    }

    /// The position in the input of output bit number `bit`.
    pub fn position(&self, bit: u64) -> BitPosition {
        let symbol = self.node.as_ref().map_or(bit, |node| node.symbol_of(bit));
        BitPosition::from_bits(self.start + self.symbols.bits() * symbol)
    }

    /// Whether bits come out.
    pub fn is_locked(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.reception().is_some())
    }

    fn harden(&mut self, symbols: &[u8], out: &mut Vec<u8>) {
        for symbol in symbols {
            self.signs = self.signs << 1 | u8::from(symbol.cast_signed() > 0);
            self.signs_len += 1;
            if self.signs_len == 8 {
                out.push(self.signs);
                self.signs_len = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_coding::convolutional::{Code, ConvolutionalEncoder, Modulation, Rate};

    /// Bytes as symbols of one size.
    fn symbols(code: InnerCode, data: &[u8], form: Symbols) -> Vec<u8> {
        let mut levels = data.to_vec();
        if code.line == LineCode::Mark {
            nrzm::NrzmEncoder::default().encode(&mut levels);
        }
        let mut sent = Vec::new();
        match code.convolutional {
            Some((convolutional, _)) => {
                ConvolutionalEncoder::new(convolutional).encode(&levels, |bit| sent.push(bit));
            }
            None => {
                sent.extend(
                    levels
                        .iter()
                        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)),
                );
            }
        }
        match form {
            Symbols::Soft => sent.into_iter().map(|bit| if bit { 50 } else { 206 }).collect(),
            Symbols::Hard => sent
                .chunks(8)
                .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
                .collect(),
        }
    }

    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn bits_come_back_and_know_where_they_came_from(
            rate in 0usize..6, mark: bool, is_soft: bool, seed: u64, cut in 1usize..5_000,
                junk in 0usize..3_000,
        ) {
            let convolutional = Rate::ALL.get(rate).map(|rate| (Code::new(*rate),
                Modulation::Bpsk));
            let line = if mark { LineCode::Mark } else { LineCode::Level };
            let code = InnerCode { convolutional, line };
            let form = if is_soft { Symbols::Soft } else { Symbols::Hard };
            let data = noise(20_000, seed);
            // Noise is first: the decoder must find lock by itself.
            let junk = 8 * junk;
            let mut input = noise(junk / if is_soft { 1 } else { 8 }, seed ^ 0xFFFF);
            let begins = 8 * input.len() as u64;
            input.extend(symbols(code, &data, form));
            let mut decoder = InnerDecoder::new(code, form, BitPosition::START, Kernel::best());
            let mut out = Vec::new();
            for bytes in input.chunks(cut) {
                decoder.push(bytes, &mut out);
            }
            decoder.finish(&mut out);
            // Somewhere behind the junk and the lock's finding the data stand, at any bit offset,
            // in either polarity.
            let wanted = &data[data.len() - 1_000..data.len() - 500];
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            let word = |bytes: &[u8], at: usize| (0..64).fold(0u64, |word,
                i| word << 1 | u64::from(bit(bytes, at + i)));
            let first = word(wanted, 0);
            let found = (0..8 * out.len()
                - 64).rev().find(|at| [first, !first].contains(&word(&out, *at)));
            prop_assert!(found.is_some(), "the data come out");
            let found = found.unwrap();
            let inverted = word(&out, found) != first;
            prop_assert!(!inverted || !mark, "changes of level have no polarity");
            for at in 0..8 * wanted.len() {
                let found = bit(&out, found + at) ^ u8::from(inverted);
                prop_assert_eq!(found, bit(wanted, at), "bit {}", at);
            }
            let sent = |bits: u64| match convolutional {
                Some((Code { rate: Rate::Half, .. }, _)) => 2 * bits,
                Some((Code { rate: Rate::TwoThirds, .. }, _)) => bits * 3 / 2,
                Some((Code { rate: Rate::ThreeQuarters, .. }, _)) => bits * 4 / 3,
                Some((Code { rate: Rate::FiveSixths, .. }, _)) => bits * 6 / 5,
                Some((Code { rate: Rate::SevenEighths, .. }, _)) => bits * 8 / 7,
                None => bits,
            };
            let expected = begins + if is_soft { 8 } else { 1 }
                * sent(8 * (data.len() as u64 - 1_000));
            let reached = decoder.position(found as u64).as_bits();
            let off = reached.abs_diff(expected) / if is_soft { 8 } else { 1 };
            prop_assert!(off <= 2, "{reached} for {expected}");
        }
    }
}
