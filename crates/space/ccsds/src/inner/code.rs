//! The inner code of a mission, and the representation of its symbols.

use skyhaul_coding::convolutional::{Code, Modulation, Rate, SecondOutput};

/// The line code: how bits become levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineCode {
    /// NRZ-L: a one is one level, a zero the other.
    #[default]
    Level,
    /// NRZ-M: a one is a change of level.
    Mark,
}

/// The inner code of a mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InnerCode {
    /// The convolutional code, and what its symbols do not determine.
    pub convolutional: Option<(Code, Modulation)>,
    /// The line code.
    pub line: LineCode,
}

impl InnerCode {
    /// Whether symbols are bits.
    pub const fn is_none(self) -> bool {
        self.convolutional.is_none() && matches!(self.line, LineCode::Level)
    }

    /// Bits of the input for this many decoded bits, in the representation `symbols`.
    pub fn input_bits(self, symbols: Symbols, bits: u64) -> u64 {
        let symbols_sent = self.convolutional.map_or(bits, |(code, _)| code.rate.symbols(bits));
        symbols.bits() * symbols_sent
    }

    /// As a mission's `[coding]` says it: the line code before other tables, the convolutional code
    /// behind them.
    pub(crate) fn text(self) -> (String, String) {
        let line = match self.line {
            LineCode::Level => String::new(),
            LineCode::Mark => "line_code = \"nrz-m\"\n".to_owned(),
        };
        let convolutional = self.convolutional.map(|(code, modulation)| {
            let rate = match code.rate {
                Rate::Half => "1/2",
                Rate::TwoThirds => "2/3",
                Rate::ThreeQuarters => "3/4",
                Rate::FiveSixths => "5/6",
                Rate::SevenEighths => "7/8",
            };
            let second = match code.second {
                SecondOutput::Plain => "plain",
                SecondOutput::Inverted => "inverted",
            };
            let modulation = match modulation {
                Modulation::Bpsk => "bpsk",
                Modulation::Qpsk => "qpsk",
            };
            format!(
                "\n[coding.convolutional]\nrate = \"{rate}\"\nsecond_output = \
                    \"{second}\"\nmodulation = \"{modulation}\"\n"
            )
        });
        (line, convolutional.unwrap_or_default())
    }
}

/// How symbols come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// One bit each, packed, the highest bit of a byte first.
    Hard,
    /// One signed byte each: the sign is the bit, positive for one; the magnitude is its
    /// reliability.
    Soft,
}

impl Symbols {
    /// Bits of the input for each symbol.
    pub(crate) const fn bits(self) -> u64 {
        match self {
            Self::Hard => 1,
            Self::Soft => 8,
        }
    }
}
