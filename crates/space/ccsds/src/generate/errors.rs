//! Channel errors by seed.

use super::random::Random;
use crate::decode::{BlockDecoder, CheckSymbols};
use crate::mission::Mission;
use serde::Deserialize;
use skyhaul_coding::Parameters;
use skyhaul_units::Probability;

/// How often each kind of error happens to a CADU. The kinds exclude each other: their sum is at
/// most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErrorPlan {
    /// Wrong symbols, at most as many in each codeword as can be corrected. Needs Reed-Solomon.
    pub correctable: Probability,
    /// Wrong symbols, more than can be corrected in one codeword. Without Reed-Solomon: wrong bits
    /// that frame error control detects.
    pub uncorrectable: Probability,
    /// A run of wrong bytes; the code decides whether it can be corrected. Needs error control.
    pub bursts: Probability,
    /// Bytes of a burst, which ends with the block. Zero means one.
    pub burst_bytes: u32,
    /// The CADU is missing.
    pub dropped: Probability,
    /// From this CADU on, a number of CADUs is missing: the signal is lost for a while.
    pub gaps: Probability,
    /// CADUs of a gap, at most [`LONGEST_GAP`]. Zero is one.
    pub gap_frames: u32,
    /// 1 to 5 bits are deleted or inserted inside the CADU, which is then lost.
    pub slipped: Probability,
    /// 1 or 2 wrong bits in the marker.
    pub marker: Probability,
    /// From this CADU on, the polarity is inverted.
    pub inverted: Probability,
}

/// Longest gap in frames: half the range of an 8-bit frame count.
pub const LONGEST_GAP: u32 = 100;

/// Why the errors are not possible on a mission's downlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ErrorPlanError {
    /// A kind of error for which the result at a receiver cannot be predicted.
    #[error(
        "errors of the kind `{0}` need a mission with error control; without it nothing tells \
        wrong frames"
    )]
    Unchecked(&'static str),
    /// Symbols to correct, without a code.
    #[error(
        "errors of the kind `correctable` need a mission with a Reed-Solomon code; use \
        `uncorrectable`"
    )]
    NoCode,
    /// A burst whose corrections cannot be counted.
    #[error(
        "errors of the kind `bursts` need a mission with a Reed-Solomon code or none; use noise on \
        symbols (--ebn0)"
    )]
    Burst,
    /// A gap that a frame count cannot show.
    #[error(
        "a gap of {0} frames is too long; {LONGEST_GAP} are the most that every frame count can \
        tell"
    )]
    LongGap(u32),
    /// More than everything.
    #[error("the probabilities of all kinds of errors are more than 100 % together; lower them")]
    TooMany,
}

impl ErrorPlan {
    /// Checks that the result at a receiver can be predicted for a downlink of the mission with
    /// these errors.
    ///
    /// # Errors
    /// [`ErrorPlanError`].
    pub fn fits(&self, mission: &Mission) -> Result<(), ErrorPlanError> {
        let is_checked = mission.is_coded() || !mission.frame().fecf.is_empty();
        let unchecked = [
            ("uncorrectable", self.uncorrectable),
            ("bursts", self.bursts),
            ("slipped", self.slipped),
            ("marker", self.marker),
        ];
        if let Some((kind, _)) =
            unchecked.iter().find(|(_, often)| !is_checked && *often != Probability::default())
        {
            return Err(ErrorPlanError::Unchecked(kind));
        }
        if mission.coding().ldpc.is_some() && self.bursts != Probability::default() {
            return Err(ErrorPlanError::Burst);
        }
        if mission.coding().reed_solomon.is_none() && self.correctable != Probability::default() {
            return Err(ErrorPlanError::NoCode);
        }
        if self.gap_frames > LONGEST_GAP {
            return Err(ErrorPlanError::LongGap(self.gap_frames));
        }
        let all: u64 = self.kinds().into_iter().map(|often| u64::from(often.as_ppb())).sum();
        if all > BILLION { Err(ErrorPlanError::TooMany) } else { Ok(()) }
    }

    /// The probabilities, in the order in which they are drawn.
    const fn kinds(&self) -> [Probability; 8] {
        let Self {
            correctable,
            uncorrectable,
            dropped,
            slipped,
            marker,
            inverted,
            bursts,
            gaps,
            ..
        } = *self;
        [correctable, uncorrectable, dropped, slipped, marker, inverted, bursts, gaps]
    }
}

const BILLION: u64 = 1_000_000_000;

/// What happens to the bits of one CADU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelErrors {
    /// All bits are inverted.
    pub inverted: bool,
    /// At this bit, this many bits are inserted, or deleted if negative.
    pub slip: Option<(usize, i8)>,
}

/// What that means for the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    None,
    /// This many wrong symbols.
    Correctable(u64),
    Uncorrectable,
    Dropped,
}

/// Draws errors.
#[derive(Debug)]
pub(super) struct Damager {
    plan: ErrorPlan,
    code: Option<Parameters>,
    is_parity: bool,
    marker_len: usize,
    has_check: bool,
    /// Decides whether damage is beyond correction: rarely, too many wrong symbols make another
    /// codeword.
    decoder: BlockDecoder,
    random: Random,
    inverted: bool,
    /// CADUs of the present gap that are still to be dropped.
    gap: u32,
}

/// The kinds of errors, in the order of [`ErrorPlan::kinds`].
#[derive(Clone, Copy)]
enum Kind {
    Correctable,
    Uncorrectable,
    Dropped,
    Slipped,
    Marker,
    Inverted,
    Burst,
    Gap,
}

const KINDS: [Kind; 8] = [
    Kind::Correctable,
    Kind::Uncorrectable,
    Kind::Dropped,
    Kind::Slipped,
    Kind::Marker,
    Kind::Inverted,
    Kind::Burst,
    Kind::Gap,
];

impl Damager {
    pub fn new(mission: &Mission, plan: ErrorPlan, seed: u64) -> Self {
        Self {
            plan,
            code: mission.coding().reed_solomon,
            is_parity: mission.coding().ldpc.is_some(),
            marker_len: mission.coding().marker.len(),
            has_check: !mission.frame().fecf.is_empty(),
            decoder: BlockDecoder::new(mission, CheckSymbols::Dropped),
            random: Random::new(seed),
            inverted: false,
            gap: 0,
        }
    }

    /// Damages the bytes of a CADU, and returns the damage to its bits.
    pub fn damage(&mut self, cadu: &mut [u8]) -> (ChannelErrors, Damage) {
        let mut slip = None;
        let kind = self.draw();
        if self.gap > 0 {
            self.gap -= 1;
            return (ChannelErrors { inverted: self.inverted, slip }, Damage::Dropped);
        }
        let damage = match (kind, self.code) {
            (Some(Kind::Correctable), Some(code)) => {
                Damage::Correctable(self.wrong_symbols(cadu, code))
            }
            (Some(Kind::Uncorrectable), code) => self.beyond_correction(cadu, code),
            (Some(Kind::Burst), code) => self.burst(cadu, code),
            (Some(Kind::Dropped), _) => Damage::Dropped,
            (Some(Kind::Gap), _) => {
                self.gap = self.plan.gap_frames.saturating_sub(1);
                Damage::Dropped
            }
            (Some(Kind::Slipped), _) => {
                // Well inside the block, so that the codewords before and after it are damaged too.
                let at = 8 * (self.marker_len + cadu.len() / 4)
                    + self.random.below(2 * cadu.len() as u64) as usize;
                let bits = self.random.below(5) as i8 + 1;
                slip = Some((at, if self.random.below(2) == 0 { bits } else { -bits }));
                Damage::Uncorrectable
            }
            (Some(Kind::Marker), _) => {
                for _ in 0..2 {
                    let bit = self.random.below(32) as usize;
                    cadu[bit / 8] ^= 0x80 >> (bit % 8);
                }
                Damage::None
            }
            (Some(Kind::Inverted), _) => {
                self.inverted = !self.inverted;
                Damage::None
            }
            (Some(Kind::Correctable) | None, _) => Damage::None,
        };
        (ChannelErrors { inverted: self.inverted, slip }, damage)
    }

    fn draw(&mut self) -> Option<Kind> {
        let mut draw = self.random.below(BILLION);
        for (kind, often) in KINDS.into_iter().zip(self.plan.kinds()) {
            let share = u64::from(often.as_ppb());
            if draw < share {
                return Some(kind);
            }
            draw -= share;
        }
        None
    }

    fn beyond_correction(&mut self, cadu: &mut [u8], code: Option<Parameters>) -> Damage {
        let Some(code) = code else {
            if self.is_parity {
                // Every other bit: no iterative decoder converges from there.
                cadu[self.marker_len..]
                    .iter_mut()
                    .for_each(|byte| *byte ^= self.random.below(256) as u8);
                return Damage::Uncorrectable;
            }
            if self.has_check {
                let at = self.marker_len
                    + self.random.below((cadu.len() - self.marker_len) as u64) as usize;
                cadu[at] ^= self.random.below(255) as u8 + 1;
                return Damage::Uncorrectable;
            }
            return Damage::None;
        };
        let sent = cadu.to_vec();
        loop {
            self.too_many_symbols(cadu, code);
            if self.decoder.decode(&cadu[self.marker_len..]).set_aside.is_some() {
                return Damage::Uncorrectable;
            }
            cadu.copy_from_slice(&sent);
        }
    }

    /// Damages consecutive bytes.
    fn burst(&mut self, cadu: &mut [u8], code: Option<Parameters>) -> Damage {
        if code.is_none() && !self.has_check {
            return Damage::None;
        }
        let block = &mut cadu[self.marker_len..];
        let len = (self.plan.burst_bytes.max(1) as usize).min(block.len());
        let at = self.random.below((block.len() - len + 1) as u64) as usize;
        let sent = block[at..at + len].to_vec();
        loop {
            for (byte, sent) in block[at..at + len].iter_mut().zip(&sent) {
                *byte = sent ^ (self.random.below(255) as u8 + 1);
            }
            if code.is_some_and(|code| len.div_ceil(code.interleave) <= code.correction.symbols()) {
                return Damage::Correctable(len as u64);
            }
            if self.decoder.decode(block).set_aside.is_some() {
                return Damage::Uncorrectable;
            }
        }
    }

    /// Up to E wrong symbols in each codeword, at least one in the first.
    fn wrong_symbols(&mut self, cadu: &mut [u8], code: Parameters) -> u64 {
        let most = code.correction.symbols() as u64;
        let mut symbols = 0;
        for codeword in 0..code.interleave {
            let count = if codeword == 0 {
                1 + self.random.below(most)
            } else {
                self.random.below(most + 1)
            };
            self.wrong_in(cadu, code, codeword, count);
            symbols += count;
        }
        symbols
    }

    fn too_many_symbols(&mut self, cadu: &mut [u8], code: Parameters) {
        let codeword = self.random.below(code.interleave as u64) as usize;
        let most = code.correction.symbols() as u64;
        let count = most + 1 + self.random.below(most / 2);
        self.wrong_in(cadu, code, codeword, count);
    }

    /// Damages `count` different symbols of a codeword at equal distances, from a random one on.
    fn wrong_in(&mut self, cadu: &mut [u8], code: Parameters, codeword: usize, count: u64) {
        let length = (cadu.len() - self.marker_len) / code.interleave;
        let start = self.random.below(length as u64) as usize;
        let stride = length / count.max(1) as usize;
        for symbol in 0..count as usize {
            let place = (start + symbol * stride) % length;
            cadu[self.marker_len + place * code.interleave + codeword] ^=
                self.random.below(255) as u8 + 1;
        }
    }
}
