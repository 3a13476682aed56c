//! A downlink's bits as the symbols of a demodulator: line code, convolutional code, noise.

use super::random::Random;
use crate::inner::{LineCode, Symbols};
use crate::mission::Mission;
use serde::Serialize;
use skyhaul_coding::convolutional::ConvolutionalEncoder;
use skyhaul_coding::nrzm;

/// How symbols come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SymbolOptions {
    /// A bit each, or a signed byte each.
    pub form: Symbols,
    /// Eb/N0: energy of a bit of the transfer frames to noise density, in dB; `None`: no noise.
    pub ebn0_db: Option<f64>,
    /// Of the noise.
    pub seed: u64,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SymbolTruth {
    /// Noise, if any.
    pub ebn0_db: Option<f64>,
    /// Symbols sent.
    pub symbols: u64,
    /// Of which noise turned the sign.
    pub wrong_symbols: u64,
}

/// Makes symbols of bits.
#[derive(Debug)]
pub struct SymbolWriter {
    options: SymbolOptions,
    line: Option<nrzm::NrzmEncoder>,
    convolutional: Option<ConvolutionalEncoder>,
    /// Standard deviation of the noise, for symbols of amplitude one.
    deviation: f64,
    random: Random,
    /// Signs of an incomplete byte.
    signs: u8,
    signs_len: u32,
    truth: SymbolTruth,
}

/// The level of a one without noise; that of a zero is the opposite.
const ONE: f64 = 1.0;
/// The amplitude of a soft symbol without noise: three times as much still fits a byte.
const SIZE: f64 = 40.0;
/// Bytes sent behind the last frame, so that a decoder is sure of its last bits: more than the
/// memory of any rate.
const TAIL: [u8; 64] = [0x55; 64];

impl SymbolWriter {
    /// For a mission's downlink.
    pub fn new(mission: &Mission, options: SymbolOptions) -> Self {
        let inner = mission.coding().inner;
        let sent = inner.input_bits(Symbols::Hard, 8 * mission.cadu_len() as u64);
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let rate = 8.0 * mission.frame().length as f64 / sent as f64;
        let noise = |ebn0_db: f64| (1.0 / (2.0 * rate * 10f64.powf(ebn0_db / 10.0))).sqrt();
        Self {
            options,
            line: (inner.line == LineCode::Mark).then(nrzm::NrzmEncoder::default),
            convolutional: inner.convolutional.map(|(code, _)| ConvolutionalEncoder::new(code)),
            deviation: options.ebn0_db.map_or(0.0, noise),
            random: Random::new(options.seed ^ NOISE),
            signs: 0,
            signs_len: 0,
            truth: SymbolTruth { ebn0_db: options.ebn0_db, symbols: 0, wrong_symbols: 0 },
        }
    }

    /// The symbols of the downlink's next bits.
    pub fn push(&mut self, bits: &[u8]) -> Vec<u8> {
        let level = |bit| if bit { ONE } else { -ONE };
        let mut levels = bits.to_vec();
        if let Some(line) = &mut self.line {
            line.encode(&mut levels);
        }
        let mut out = Vec::new();
        match self.convolutional.take() {
            Some(mut encoder) => {
                encoder.encode(&levels, |bit| self.send(level(bit), &mut out));
                self.convolutional = Some(encoder);
            }
            None => {
                let symbols = levels
                    .iter()
                    .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
                symbols.for_each(|bit| self.send(level(bit), &mut out));
            }
        }
        out
    }

    /// The symbols after the last bit.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = self.push(&TAIL);
        while self.signs_len > 0 {
            self.send(-ONE, &mut out);
        }
        out
    }

    /// What was sent so far.
    pub const fn truth(&self) -> SymbolTruth {
        self.truth
    }

    /// Sends a symbol of this level, with noise.
    fn send(&mut self, sent: f64, out: &mut Vec<u8>) {
        let received =
            if self.deviation > 0.0 { sent + self.deviation * self.normal() } else { sent };
        self.truth.symbols += 1;
        self.truth.wrong_symbols += u64::from((received > 0.0) != (sent > 0.0));
        match self.options.form {
            Symbols::Soft => {
                // Zero has no sign: the smallest value keeps the sign of the received symbol.
                let least = if received > 0.0 { 1.0 } else { -1.0 };
                let level = (SIZE * received).clamp(-127.0, 127.0).trunc();
                let level = if level == 0.0 { least } else { level };
                out.push((level as i8).cast_unsigned());
            }
            Symbols::Hard => {
                self.signs = self.signs << 1 | u8::from(received > 0.0);
                self.signs_len += 1;
                if self.signs_len == 8 {
                    out.push(self.signs);
                    self.signs_len = 0;
                }
            }
        }
    }

    /// The sum of twelve random numbers: nearly normal, of deviation one, and the same on every
    /// processor.
    #[allow(clippy::cast_precision_loss, reason = "32 bits")]
    fn normal(&mut self) -> f64 {
        let draws = (0..6).map(|_| {
            let two = self.random.next();
            (two >> 32) + (two & 0xFFFF_FFFF)
        });
        draws.sum::<u64>() as f64 / (1u64 << 32) as f64 - 6.0
    }
}

/// The noise is independent of the other errors of the same seed.
const NOISE: u64 = 0x0A15_E000_0000_0001;
