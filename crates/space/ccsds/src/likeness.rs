//! Detects soft symbols that were declared as bits, and bits declared as soft symbols, from the
//! histogram of their bytes.
//!
//! Packed bits of a randomised downlink make all 256 bytes equally frequent. Soft symbols cluster
//! around two values of opposite sign, with equal numbers on both sides.

use crate::identify::{InputLayout, Unidentified};

/// The probable format of an input that was not identified, if it differs from the declared one.
pub fn mistaken(sample: &[u8], format: Option<InputLayout>) -> Option<Unidentified> {
    if sample.len() < LEAST {
        return None;
    }
    let counts = counts(sample);
    let evenness = evenness(&counts, sample.len());
    match format {
        Some(InputLayout::Soft) => (evenness < EVEN).then_some(Unidentified::BitsAsSoft),
        // A caller that declares this knows the format; data that is not randomised may look like
        // any format.
        Some(InputLayout::Frames) => None,
        _ if evenness > UNEVEN && is_two_sided(&counts, sample.len()) => {
            Some(Unidentified::SoftAsBits)
        }
        _ => None,
    }
}

/// Fewest bytes for a decision: chance then changes the figure by less than a hundredth.
const LEAST: usize = 4_096;
/// Below this, bytes are as frequent as those of random bits.
const EVEN: f64 = 1.05;
/// Above this they are not. Strong noise spreads soft symbols nearly as evenly.
const UNEVEN: f64 = 1.1;
/// Largest share of the bytes of soft symbols that has no counterpart of the other sign.
const UNPAIRED: f64 = 0.25;
/// Least share of the bytes of each sign: a randomised downlink has about as many ones as zeros.
const LEAST_SIDE: f64 = 0.35;

fn counts(sample: &[u8]) -> [u64; 256] {
    let mut counts = [0; 256];
    for byte in sample {
        counts[usize::from(*byte)] += 1;
    }
    counts
}

/// The probability that two bytes are the same, in 256ths: one for evenly spread bytes, more for
/// others.
#[allow(clippy::cast_precision_loss, reason = "a figure to judge by")]
fn evenness(counts: &[u64; 256], len: usize) -> f64 {
    let same: u64 = counts.iter().map(|count| count * count.saturating_sub(1)).sum();
    256.0 * same as f64 / (len as f64 * (len - 1) as f64)
}

/// Whether there are about as many bytes of each sign, each with its counterpart.
#[allow(clippy::cast_precision_loss, reason = "a figure to judge by")]
fn is_two_sided(counts: &[u64; 256], len: usize) -> bool {
    let (mut ones, mut zeros, mut unpaired) = (0, 0, 0);
    for size in 1..128 {
        let (one, zero) = (counts[size], counts[256 - size]);
        ones += one;
        zeros += zero;
        unpaired += one.abs_diff(zero);
    }
    let part = |count: u64| count as f64 / len as f64;
    part(unpaired) < UNPAIRED && part(ones) > LEAST_SIDE && part(zeros) > LEAST_SIDE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn random(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Soft symbols of random bits: the sum of noise, and the bit's level.
    fn soft(seed: u64, level: i32, noise: i32) -> Vec<u8> {
        let draws = random(seed, 5 * 20_000);
        let symbol = |draws: &[u8]| {
            let sum: i32 = draws[1..].iter().map(|draw| i32::from(*draw) - 128).sum();
            let level = if draws[0] & 1 == 1 { level } else { -level };
            (level + sum * noise / 128).clamp(-127, 127) as i8 as u8
        };
        draws.chunks_exact(5).map(symbol).collect()
    }

    proptest! {
        #[test]
        fn each_is_told_when_taken_for_the_other(seed in any::<u64>(), level in 20i32..100,
            noise in 2i32..30) {
            let (symbols, bits) = (soft(seed, level, noise), random(seed, 20_000));
            let offset: Vec<u8> = symbols.iter().map(|symbol| symbol ^ 0x80).collect();
            prop_assert_eq!(mistaken(&symbols, None), Some(Unidentified::SoftAsBits));
            prop_assert_eq!(mistaken(&offset, Some(InputLayout::Bits)),
                Some(Unidentified::SoftAsBits));
            prop_assert_eq!(mistaken(&symbols, Some(InputLayout::Soft)), None);
            prop_assert_eq!(mistaken(&symbols, Some(InputLayout::Frames)), None);
            prop_assert_eq!(mistaken(&bits, Some(InputLayout::Soft)),
                Some(Unidentified::BitsAsSoft));
            prop_assert_eq!(mistaken(&bits, None), None);
        }
    }

    /// Many noisy symbols of a level at which most values of an octet occur.
    #[test]
    fn soft_symbols_that_spread_nearly_evenly_are_told_from_bits() {
        assert_eq!(
            mistaken(&soft(1_608_043_669_752_029_338, 54, 29), None),
            Some(Unidentified::SoftAsBits)
        );
    }

    #[test]
    fn what_is_neither_is_not_taken_for_either() {
        let text: Vec<u8> =
            b"a log file, given by mistake; ".iter().copied().cycle().take(20_000).collect();
        for sample in [&*text, &[0; 20_000], &[0x55, 0xAA].repeat(10_000), &random(1, 100)] {
            assert_eq!(mistaken(sample, None), None, "{:02x?}", &sample[..8]);
        }
    }
}
