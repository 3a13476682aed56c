//! A captured frame and the quality of its reception.

use crate::frame::Check;
use bytes::Bytes;
use skyhaul_coding::MAX_INTERLEAVE;
use skyhaul_units::Utc;

/// A position in the input, in bits from its start (bytes most significant bit first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitPosition(u64);

impl BitPosition {
    /// The input's start.
    pub const START: Self = Self(0);

    /// From a count of bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
    /// Bits since the input's start.
    pub const fn as_bits(self) -> u64 {
        self.0
    }
    /// The byte with the bit, from which a file must be read again.
    pub const fn byte(self) -> u64 {
        self.0 / 8
    }
    /// The place `bits` further on.
    pub const fn plus_bits(self, bits: u64) -> Self {
        Self(self.0.saturating_add(bits))
    }
}

/// The result of error control for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameVerdict {
    /// Checked, and no error.
    Clean,
    /// Errors, all corrected.
    Corrected,
    /// Errors that could not be corrected: the frame is set aside.
    Uncorrectable,
    /// Nothing to check by.
    NotChecked,
}

/// Symbols corrected in each codeword of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CorrectedSymbols {
    symbols: [u8; MAX_INTERLEAVE],
    codewords: u8,
}

impl CorrectedSymbols {
    /// Nothing was corrected.
    pub const EMPTY: Self = Self { symbols: [0; MAX_INTERLEAVE], codewords: 0 };
    /// Stands for a codeword that could not be corrected.
    pub const UNCORRECTABLE: u8 = u8::MAX;

    /// From the counts of each codeword; those after the eighth are left out.
    pub fn new(by_codeword: &[u8]) -> Self {
        let codewords = by_codeword.len().min(MAX_INTERLEAVE);
        let mut symbols = [0; MAX_INTERLEAVE];
        symbols[..codewords].copy_from_slice(&by_codeword[..codewords]);
        Self { symbols, codewords: codewords as u8 }
    }
    /// The counts in the order of the codewords; empty if nothing was corrected.
    pub fn by_codeword(&self) -> &[u8] {
        &self.symbols[..usize::from(self.codewords)]
    }
    /// Over all codewords that could be corrected.
    pub fn total(&self) -> u32 {
        let corrected =
            self.by_codeword().iter().filter(|symbols| **symbols != Self::UNCORRECTABLE);
        corrected.map(|symbols| u32::from(*symbols)).sum()
    }
    /// Codewords that were corrected, and codewords that could not be.
    pub fn codewords(&self) -> (u32, u32) {
        self.by_codeword().iter().fold((0, 0), |(corrected, lost), symbols| match *symbols {
            0 => (corrected, lost),
            Self::UNCORRECTABLE => (corrected, lost + 1),
            _ => (corrected + 1, lost),
        })
    }
}

/// What an iterative decoder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    /// Iterations over all checks of the code; zero if nothing was wrong.
    pub count: u16,
    /// Channel symbols with a wrong sign, in a codeword that was decoded.
    pub corrected_symbols: u32,
}

/// How well a frame was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quality {
    /// Wrong bits in the marker before it.
    pub marker_errors: u8,
    /// The bits were received inverted (and inverted again).
    pub inverted: bool,
    /// Bits by which the marker was later (or, if negative, earlier) than predicted by the one
    /// before.
    pub slip: i8,
    /// No marker was found: the frame is at the position predicted by the one before.
    pub flywheel: bool,
    /// What error control said.
    pub verdict: FrameVerdict,
    /// Symbols corrected.
    pub corrected: CorrectedSymbols,
    /// Of a low-density parity-check code.
    pub iterations: Option<Iterations>,
    /// Header error control (AOS).
    pub fhec: Check,
    /// Frame error control.
    pub fecf: Check,
}

impl Quality {
    /// A frame without any check.
    pub const NOT_CHECKED: Self = Self {
        marker_errors: 0,
        inverted: false,
        slip: 0,
        flywheel: false,
        verdict: FrameVerdict::NotChecked,
        corrected: CorrectedSymbols::EMPTY,
        iterations: None,
        fhec: Check::None,
        fecf: Check::None,
    };

    /// Symbols corrected, by whatever code.
    pub fn corrected_symbols(&self) -> u32 {
        self.corrected.total()
            + self.iterations.map_or(0, |iterations| iterations.corrected_symbols)
    }
}

/// Why a frame is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// More wrong symbols than Reed-Solomon corrects.
    ReedSolomon,
    /// Not all checks of the low-density parity-check code could be met.
    Ldpc,
    /// The frame error control field disagrees.
    FrameErrorControl,
    /// The frame header is not one of the mission's kind.
    Header,
}

impl Reason {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::ReedSolomon => "more wrong symbols than Reed-Solomon corrects",
            Self::Ldpc => "the checks of the low-density parity-check code could not all be met",
            Self::FrameErrorControl => "the frame error control field disagrees",
            Self::Header => "the frame header is not one of the mission's kind",
        }
    }
}

/// A frame as captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When its last bit was received, to the microsecond.
    pub received: Utc,
    /// Position in the input of its marker, or of a bare frame's first bit.
    pub position: BitPosition,
    /// How well it was received.
    pub quality: Quality,
    /// Why it is set aside; `None` for a good frame.
    pub set_aside: Option<Reason>,
    /// For a good frame, the transfer frame. For one set aside, everything after the marker as
    /// received, still randomised and with its check symbols, in true polarity. Frames decoded in
    /// one run share their memory: copy a frame that is kept longer than the others.
    pub bytes: Bytes,
    /// The block's check symbols after correction, where they are kept; otherwise empty.
    pub check_symbols: Bytes,
}

impl CapturedFrame {
    /// Whether the frame can be used.
    pub const fn is_good(&self) -> bool {
        self.set_aside.is_none()
    }
}
