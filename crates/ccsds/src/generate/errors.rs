//! Channel errors by seed.

use crate::mission::{MARKER_LEN, Mission};
use skyhaul_coding::Parameters;
use skyhaul_units::Probability;

/// How often each kind of error happens to a CADU. The kinds exclude each other: their sum is at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorPlan {
    /// Wrong symbols, as many as can be corrected at most in each codeword. Needs Reed-Solomon.
    pub correctable: Probability,
    /// Wrong symbols, more than can be corrected in one codeword. Needs Reed-Solomon.
    pub uncorrectable: Probability,
    /// The CADU is missing.
    pub dropped: Probability,
    /// 1 to 5 bits are deleted or inserted inside the CADU, which is lost by it.
    pub slipped: Probability,
    /// 1 or 2 wrong bits in the marker.
    pub marker: Probability,
    /// From this CADU on the polarity is the other one.
    pub inverted: Probability,
}

/// What happens to the bits of one CADU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelErrors {
    /// All bits are inverted.
    pub inverted: bool,
    /// At this bit, so many bits are inserted, or deleted where negative.
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
    random: u64,
    inverted: bool,
}

impl Damager {
    pub fn new(mission: &Mission, plan: ErrorPlan, seed: u64) -> Self {
        Self { plan, code: mission.coding().reed_solomon, random: seed, inverted: false }
    }

    /// Damages the bytes of a CADU; what its bits suffer is returned.
    pub fn damage(&mut self, cadu: &mut [u8]) -> (ChannelErrors, Damage) {
        let mut slip = None;
        let mut draw = self.below(1_000_000_000);
        let mut is = |probability: Probability| {
            let share = u64::from(probability.as_ppb());
            let hit = draw < share;
            draw = if hit { u64::MAX } else { draw - share };
            hit
        };
        let ErrorPlan { correctable, uncorrectable, dropped, slipped, marker, inverted } = self.plan;
        let happens =
            [is(correctable), is(uncorrectable), is(dropped), is(slipped), is(marker), is(inverted)];
        let damage = match (happens, self.code) {
            ([true, ..], Some(code)) => Damage::Correctable(self.wrong_symbols(cadu, code)),
            ([_, true, ..], Some(code)) => {
                self.too_many_symbols(cadu, code);
                Damage::Uncorrectable
            }
            ([_, _, true, ..], _) => Damage::Dropped,
            ([_, _, _, true, ..], _) => {
                // Well inside, so that codewords before and behind are hit.
                let at = 8 * (MARKER_LEN + cadu.len() / 4) + self.below(2 * cadu.len() as u64) as usize;
                let bits = self.below(5) as i8 + 1;
                slip = Some((at, if self.below(2) == 0 { bits } else { -bits }));
                Damage::Uncorrectable
            }
            ([_, _, _, _, true, _], _) => {
                for _ in 0..2 {
                    let bit = self.below(32) as usize;
                    cadu[bit / 8] ^= 0x80 >> (bit % 8);
                }
                Damage::None
            }
            ([.., true], _) => {
                self.inverted = !self.inverted;
                Damage::None
            }
            _ => Damage::None,
        };
        (ChannelErrors { inverted: self.inverted, slip }, damage)
    }

    /// Up to E wrong symbols in each codeword, at least one in the first.
    fn wrong_symbols(&mut self, cadu: &mut [u8], code: Parameters) -> u64 {
        let most = code.correction.symbols() as u64;
        let mut symbols = 0;
        for codeword in 0..code.interleave {
            let count = if codeword == 0 { 1 + self.below(most) } else { self.below(most + 1) };
            self.wrong_in(cadu, code, codeword, count);
            symbols += count;
        }
        symbols
    }

    fn too_many_symbols(&mut self, cadu: &mut [u8], code: Parameters) {
        let codeword = self.below(code.interleave as u64) as usize;
        let most = code.correction.symbols() as u64;
        let count = most + 1 + self.below(most / 2);
        self.wrong_in(cadu, code, codeword, count);
    }

    /// Makes `count` different symbols of a codeword wrong: every so many, from a random one on.
    fn wrong_in(&mut self, cadu: &mut [u8], code: Parameters, codeword: usize, count: u64) {
        let length = (cadu.len() - MARKER_LEN) / code.interleave;
        let start = self.below(length as u64) as usize;
        let stride = length / count.max(1) as usize;
        for symbol in 0..count as usize {
            let place = (start + symbol * stride) % length;
            cadu[MARKER_LEN + place * code.interleave + codeword] ^= self.below(255) as u8 + 1;
        }
    }

    /// A number below `bound`, by splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % bound
    }
}
