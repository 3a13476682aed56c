//! Whether intervals are exponential, as those of a Poisson process: Kolmogorov and Smirnov's
//! distance with Lilliefors' and Stephens' tables, because the mean is estimated from the same
//! data.

use serde::Serialize;

/// Fewer intervals than these say nothing about their distribution.
pub const INTERVALS_MIN: usize = 20;

/// An exponential distribution fitted to intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExponentialFit {
    /// Intervals.
    pub count: u64,
    /// Their mean, which is the fitted distribution's.
    pub mean: f64,
    /// Greatest distance between the distribution of the intervals and the fitted one (Kolmogorov,
    /// Smirnov).
    pub distance: f64,
    /// The distance above which one in twenty exponential samples of this size lies.
    pub critical: f64,
    /// Whether the distance is within `critical`: the intervals may be those of a Poisson process.
    pub fits: bool,
    /// Probability of such a distance or a greater one in an exponential sample, between the tabled
    /// 0.01 and 0.15: the least that is reached, 0.15 standing for more.
    pub probability: f64,
}

/// Fits an exponential distribution to `intervals`, counted in whole datagrams, at least one each.
/// `None` for fewer than twenty.
///
/// Independent losses leave geometric intervals. Each is spread over the datagram that it ends in,
/// as the exponential distribution with the same chance for each whole number has it, so that what
/// is compared is exactly exponential where losses are independent, whatever the loss. The
/// spreading is the same for the same data.
pub fn exponential_fit(intervals: &[u64]) -> Option<ExponentialFit> {
    if intervals.len() < INTERVALS_MIN {
        return None;
    }
    let count = intervals.len() as f64;
    let whole = intervals.iter().sum::<u64>() as f64 / count;
    // Of a geometric distribution with mean m, the exponential one's rate is -ln(1 - 1/m).
    let rate = if whole > 1.0 { -(-1.0 / whole).ln_1p() } else { f64::from(u16::MAX) };
    let mut spread: Vec<f64> = intervals
        .iter()
        .zip(0u64..)
        .map(|(interval, index)| {
            let within = -(-uniform(index) * -(-rate).exp_m1()).ln_1p() / rate;
            interval.saturating_sub(1) as f64 + within.clamp(0.0, 1.0)
        })
        .collect();
    spread.sort_by(f64::total_cmp);
    let mean = spread.iter().sum::<f64>() / count;
    let distance = distance(&spread, mean);
    let probability = TABLE
        .iter()
        .filter(|(_, critical)| modified(distance, count) <= *critical)
        .map(|(probability, _)| *probability)
        .fold(0.0, f64::max);
    let critical = CRITICAL_5_PERCENT / (count.sqrt() + 0.26 + 0.5 / count.sqrt()) + 0.2 / count;
    Some(ExponentialFit {
        count: intervals.len() as u64,
        mean: whole,
        distance,
        critical,
        fits: distance <= critical,
        probability,
    })
}

/// The greatest distance between the distribution of `sorted` and the exponential one with this
/// mean.
fn distance(sorted: &[f64], mean: f64) -> f64 {
    let count = sorted.len() as f64;
    let of = |(index, value): (usize, &f64)| {
        let expected = -(-value / mean).exp_m1();
        let (before, after) = (index as f64 / count, (index + 1) as f64 / count);
        (expected - before).abs().max((after - expected).abs())
    };
    sorted.iter().enumerate().map(of).fold(0.0, f64::max)
}

/// The distance in the form that the table is for.
fn modified(distance: f64, count: f64) -> f64 {
    (distance - 0.2 / count) * (count.sqrt() + 0.26 + 0.5 / count.sqrt())
}

/// A number from 0 to 1 for each index, the same each time (SplitMix64, Steele et al. 2014).
pub(super) fn uniform(index: u64) -> f64 {
    let mut state = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((state ^ (state >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

const CRITICAL_5_PERCENT: f64 = 1.094;

/// Probability, and the modified distance that is exceeded with it where the mean is estimated
/// (Stephens, "EDF statistics for goodness of fit and some comparisons", JASA 69 (1974), table
/// 1.3).
const TABLE: &[(f64, f64)] =
    &[(0.15, 0.926), (0.10, 0.990), (0.05, 1.094), (0.025, 1.190), (0.01, 1.308)];

#[cfg(test)]
mod tests {
    use super::*;

    fn geometric(seed: u64, count: u64, loss: f64) -> Vec<u64> {
        let draw = |n: u64| uniform(seed * 1_000_000 + n + 77);
        (0..count)
            .map(|n| ((1.0 - draw(n)).ln() / (1.0 - loss).ln()).ceil().max(1.0) as u64)
            .collect()
    }

    #[test]
    fn one_in_twenty_samples_of_independent_losses_is_taken_for_something_else() {
        for loss in [0.001, 0.05, 0.3] {
            for size in [40, 400] {
                let misses = (0..1_000)
                    .filter(|seed| !exponential_fit(&geometric(*seed, size, loss)).unwrap().fits)
                    .count();
                assert!((25..=80).contains(&misses), "{misses} of 1000 at {loss}, {size}");
            }
        }
    }

    #[test]
    fn regular_and_bunched_intervals_are_not_exponential() {
        assert!(!exponential_fit(&[100; 50]).unwrap().fits);
        let bunched: Vec<u64> = (0..200).map(|n| if n % 4 == 0 { 400 } else { 1 }).collect();
        let fit = exponential_fit(&bunched).unwrap();
        assert!(!fit.fits && fit.probability < 0.01 && fit.distance > fit.critical);
        assert_eq!(exponential_fit(&[3; 19]), None);
    }

    #[test]
    fn a_distance_worked_by_hand() {
        // Mean 2: 1 - exp(-0.5) = 0.3935, 1 - exp(-1.5) = 0.7769; steps at 0, 1/2, 1.
        let far = distance(&[1.0, 3.0], 2.0);
        assert!((far - 0.393_469_340).abs() < 1e-8, "{far}");
    }
}
