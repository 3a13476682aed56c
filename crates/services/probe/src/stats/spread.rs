//! How values spread: quantiles, mean and deviation, histograms.

use serde::Serialize;

/// The spread of some values, in their unit. All zero where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// All but one in ten are less.
    pub p90: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// All but one in a thousand.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation, of the values themselves (divided by their number).
    pub deviation: f64,
}

impl Spread {
    /// Of `values`, each multiplied by `unit`: the nearest rank is taken, never something between
    /// two values.
    pub fn of(values: &[i64], unit: f64) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let Some((first, last)) = sorted.first().zip(sorted.last()) else { return Self::default() };
        let count = sorted.len() as f64;
        let at = |quantile: f64| {
            let rank = (quantile * count).ceil().max(1.0) as usize;
            sorted[rank.min(sorted.len()) - 1] as f64 * unit
        };
        // About the first value, so that large numbers that differ by little lose nothing.
        let about = |value: i64| value.saturating_sub(*first) as f64;
        let mean = sorted.iter().map(|value| about(*value)).sum::<f64>() / count;
        let variance =
            sorted.iter().map(|value| (about(*value) - mean).powi(2)).sum::<f64>() / count;
        Self {
            count: sorted.len() as u64,
            min: *first as f64 * unit,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: *last as f64 * unit,
            mean: (*first as f64 + mean) * unit,
            deviation: variance.sqrt() * unit,
        }
    }
}

/// A field of a histogram: from `from` up to, not including, `to`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
    /// Values in it.
    pub count: u64,
}

/// A histogram of `bins` equal fields from the least value to the greatest, each multiplied by
/// `unit`. Where a hundredth of the values at either end would take more than half of it, those
/// count in the last field on their side.
pub fn histogram(values: &[i64], unit: f64, bins: usize) -> Vec<Bin> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    if sorted.is_empty() || bins == 0 {
        return Vec::new();
    }
    let rank =
        |quantile: f64| sorted[((sorted.len() - 1) as f64 * quantile) as usize] as f64 * unit;
    let (mut low, mut high) = (rank(0.0), rank(1.0));
    let (inner_low, inner_high) = (rank(0.01), rank(0.99));
    if high - low > 2.0 * (inner_high - inner_low) && inner_high > inner_low {
        let margin = (inner_high - inner_low) * 0.1;
        (low, high) = ((inner_low - margin).max(low), (inner_high + margin).min(high));
    }
    let width = ((high - low) / bins as f64).max(f64::MIN_POSITIVE);
    let mut counts = vec![0u64; bins];
    for value in &sorted {
        let place = ((*value as f64 * unit - low) / width).clamp(0.0, (bins - 1) as f64);
        counts[place as usize] += 1;
    }
    let bin = |(index, count)| Bin {
        from: low + width * index as f64,
        to: low + width * (index + 1) as f64,
        count,
    };
    counts.into_iter().enumerate().map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<i64> = (1..=1_000).rev().collect();
        let spread = Spread::of(&values, 0.1);
        assert_eq!((spread.min, spread.p50, spread.p99, spread.max), (0.1, 50.0, 99.0, 100.0));
        assert!((spread.mean - 50.05).abs() < 1e-9);
        assert!((spread.deviation - 28.867_499).abs() < 1e-6);
        assert_eq!(Spread::of(&[], 1.0), Spread::default());
    }

    #[test]
    fn every_value_has_a_field() {
        let mut values: Vec<i64> = (0..1_000).collect();
        values.push(1_000_000);
        let bins = histogram(&values, 1.0, 20);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 1_001);
        assert!(
            bins.len() == 20 && bins[19].to < 1_200.0,
            "one value far away does not flatten the rest"
        );
        assert_eq!(histogram(&[7, 7], 1.0, 4).iter().map(|bin| bin.count).sum::<u64>(), 2);
    }
}
