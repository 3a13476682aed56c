//! Finds the symbol phase of a stream by the parity checks of the code.
//!
//! Where symbols are taken rightly, certain of them add up to nothing: a check. Over seven periods
//! of the pattern of symbols sent there is one more symbol than there are bits to choose, so that
//! every code has just one check, and it begins anew with each period. For rate 1/2 it is the other
//! output's connection vector laid over each output. Of symbols that are taken wrongly, and of
//! noise, half of the checks fail.
//!
//! Signs alone are looked at, 64 places in the stream at a time, for all ways of taking the
//! symbols: a probe costs a few operations for 64 symbols, where the Viterbi decoder costs a
//! hundred times that for one way. What the checks leave is for the decoder to judge, so that a low
//! threshold costs time and no mistakes.

use super::reception::Reception;
use super::{Code, SecondOutput};

/// Periods that a check reaches over: with six bits in the encoder's register before it, the
/// seventh is determined.
const PERIODS: usize = 7;

/// Deviations of noise by which more checks have to hold than fail: one reception of noise in 740
/// passes.
///
/// Over a probe of 24 576 symbols, true ones have 5.4 deviations at 1 dB and rate 1/2, where the
/// decoder leaves one bit in 25 wrong, more than any outer code corrects: one probe in 120 is
/// refused. At 1.5 dB they have 8, at 3 dB 20. At other rates they have 7 and more wherever the
/// decoder's growth lets them pass.
const DEVIATIONS: i64 = 3;

/// The code's check, ready to be laid over a stream.
#[derive(Debug, Clone)]
pub(super) struct ParityCheck {
    /// Symbols from its start to each that takes part.
    places: Vec<u32>,
    /// What those add up to: the second output may be inverted.
    sum: bool,
    period: usize,
}

/// How the checks of a probe went, for symbols as they came and with the two of each pair changed
/// over.
#[derive(Debug)]
pub(super) struct Verdicts<'a> {
    check: &'a ParityCheck,
    straight: Counts,
    swapped: Counts,
}

/// Checks that hold less those that fail, and their number, for each place in a cycle that they
/// begin at.
#[derive(Debug, Default)]
struct Counts {
    excess: [i64; MAX_CYCLE],
    number: [i64; MAX_CYCLE],
}

/// The longest time after which both pairs and periods begin anew: at rate 7/8.
const MAX_CYCLE: usize = 8;

impl ParityCheck {
    pub fn new(code: Code) -> Self {
        let sent: Vec<(u64, bool)> = symbols(code).collect();
        let mask = dependency(&sent.iter().map(|(bits, _)| *bits).collect::<Vec<u64>>());
        let takes_part = |place: &usize| mask >> place & 1 == 1;
        let sum = (0..sent.len()).filter(takes_part).fold(false, |sum, place| sum ^ sent[place].1);
        let places = (0..sent.len()).filter(takes_part).map(|place| place as u32).collect();
        Self { places, sum, period: code.rate.period() }
    }

    /// Symbols from the start of a check to each that takes part.
    #[cfg(test)]
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Lays the check over the symbols, from each of them on.
    pub fn judge(&self, symbols: &[i8]) -> Verdicts<'_> {
        let signs = pack(symbols);
        let swap = |word: &u64| (word & EVEN) << 1 | word >> 1 & EVEN;
        let swapped: Vec<u64> = signs.iter().map(swap).collect();
        Verdicts { check: self, straight: self.count(&signs), swapped: self.count(&swapped) }
    }

    /// Symbols after which both pairs and periods begin anew.
    const fn cycle(&self) -> usize {
        if self.period.is_multiple_of(2) { self.period } else { 2 * self.period }
    }

    /// Whether an odd number of the symbols of a check that begins there are the second of their
    /// pairs.
    fn seconds(&self, begin: usize) -> bool {
        let second = |place: &&u32| !(begin + **place as usize).is_multiple_of(2);
        !self.places.iter().filter(second).count().is_multiple_of(2)
    }

    /// Lays the check over all places of a stream of bits.
    fn count(&self, signs: &[u64]) -> Counts {
        let mut counts = Counts::default();
        let cycle = self.cycle();
        // Bit 0 and every one that is a cycle further.
        let first: u64 =
            (0..u64::BITS as usize).step_by(cycle).fold(0, |mask, bit| mask | 1 << bit);
        for (index, [word, next]) in signs.array_windows().enumerate() {
            let mut sums = 0;
            for place in &self.places {
                sums ^= word >> place | next.unbounded_shl(u64::BITS - place);
            }
            let begins = index * u64::BITS as usize % cycle;
            for place in 0..cycle {
                let mask = first << ((place + cycle - begins) % cycle);
                let (failed, all) = ((sums & mask).count_ones(), mask.count_ones());
                counts.excess[place] += i64::from(all) - 2 * i64::from(failed);
                counts.number[place] += i64::from(all);
            }
        }
        counts
    }
}

impl Verdicts<'_> {
    /// Whether the symbols, taken so, may be the code's.
    pub fn allow(&self, reception: Reception) -> bool {
        let (excess, number) = self.excess(reception);
        excess > 0 && excess * excess >= DEVIATIONS * DEVIATIONS * number
    }

    /// Checks that hold less those that fail, and their number.
    fn excess(&self, reception: Reception) -> (i64, i64) {
        let counts = if reception.swapped { &self.swapped } else { &self.straight };
        let begins = (reception.skipped..self.check.cycle()).step_by(self.check.period);
        begins.fold((0, 0), |(excess, number), begin| {
            let inverted = reception.inverted_second && self.check.seconds(begin);
            let fails = inverted ^ self.check.sum;
            let here = counts.excess[begin];
            (excess + if fails { -here } else { here }, number + counts.number[begin])
        })
    }
}

/// The lower bit of each pair.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// The symbols of so many periods as a check needs: which bits each is the sum of, the register's
/// oldest one the lowest, and whether it is inverted.
fn symbols(code: Code) -> impl Iterator<Item = (u64, bool)> {
    let pattern = code.rate.sent();
    let plain = Code { second: SecondOutput::Plain, ..code };
    // In the encoder's register the newest bit is the lowest.
    let taps = [0, 1].map(|output| {
        let bits = (0..7).filter(|bit| plain.outputs(1 << bit)[output]);
        bits.fold(0, |taps, bit| taps | 1u64 << (6 - bit))
    });
    let outputs = [(taps[0], false), (taps[1], code.second == SecondOutput::Inverted)];
    let steps = (0..PERIODS).flat_map(move |_| pattern).zip(0u32..);
    steps.flat_map(move |(sent, step)| {
        let of_step = outputs.into_iter().zip(sent).filter(|(_, is_sent)| **is_sent);
        of_step.map(move |((taps, is_inverted), _)| (taps << step, is_inverted))
    })
}

/// Which of the sums together are zero, as a mask; no bits where none are.
fn dependency(sums: &[u64]) -> u64 {
    // Each sum that was reduced, and which of the given ones it is made of.
    let mut reduced: Vec<(u64, u64)> = Vec::new();
    for (place, sum) in sums.iter().enumerate() {
        let mut row = (*sum, 1u64 << place);
        for (other, made_of) in &reduced {
            if row.0 ^ other < row.0 {
                row = (row.0 ^ other, row.1 ^ made_of);
            }
        }
        if row.0 == 0 {
            return row.1;
        }
        reduced.push(row);
    }
    0
}

/// The bits that symbols say, the first the lowest, as far as they fill words.
fn pack(symbols: &[i8]) -> Vec<u64> {
    let of_eight = |symbols: &[i8; 8]| {
        let bytes = u64::from_le_bytes(symbols.map(i8::cast_unsigned));
        // Byte i has its sign at bit 8 i, which the product has at 56 + i, with no other that low
        // or carrying.
        (bytes >> 7 & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
    };
    let (words, _) = symbols.as_chunks::<64>();
    let of_word = |word: &[i8; 64]| {
        let eights = word.as_chunks::<8>().0.iter().zip(0..);
        !eights.fold(0, |word, (eight, place)| word | of_eight(eight) << (8 * place))
    };
    words.iter().map(of_word).collect()
}
