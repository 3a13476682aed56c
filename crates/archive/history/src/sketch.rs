//! A sketch: what is kept of many values.

/// Values are sorted into so many buckets.
pub const BUCKETS: usize = 32;
/// The bucket whose upper edge is 1. The edges are powers of two: from 2^-10, which is a
/// millisecond, to 2^20, which is twelve days.
const ONE: i32 = 10;

/// How many values there were, their sum, the least, the greatest, and how many lie in each bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistorySketch {
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) buckets: [u64; BUCKETS],
}

impl Default for HistorySketch {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            buckets: [0; BUCKETS],
        }
    }
}

/// The bucket of a value: bucket `b` holds those above `edge(b - 1)`, up to `edge(b)`.
fn bucket(value: f64) -> usize {
    if value <= edge(0) {
        return 0;
    }
    let bits = value.to_bits();
    let power = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1_023;
    let is_above = i32::from(bits & ((1 << 52) - 1) != 0);
    usize::try_from(power + is_above + ONE).unwrap_or(0).min(BUCKETS - 1)
}

/// The upper edge of a bucket.
fn edge(bucket: usize) -> f64 {
    f64::powi(2.0, i32::try_from(bucket).unwrap_or(0) - ONE)
}

impl HistorySketch {
    /// Adds a value `times` times. What is no finite number is left out.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn add(&mut self, value: f64, times: u64) {
        if !value.is_finite() || times == 0 {
            return;
        }
        self.count = self.count.saturating_add(times);
        self.sum += value * times as f64;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let place = &mut self.buckets[bucket(value)];
        *place = place.saturating_add(times);
    }

    /// Adds all values of another one.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (own, more) in self.buckets.iter_mut().zip(other.buckets) {
            *own = own.saturating_add(more);
        }
    }

    /// How many values there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether there was none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The least value; zero where there is none.
    pub const fn min(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.min }
    }

    /// The greatest value; zero where there is none.
    pub const fn max(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.max }
    }

    /// The mean; zero where there is none.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn mean(&self) -> f64 {
        let mean = self.sum / self.count.max(1) as f64;
        if self.is_empty() { 0.0 } else { mean.clamp(self.min, self.max) }
    }

    /// The value that `share` of all values do not exceed, as well as the buckets tell: within a
    /// bucket the values are taken to be evenly spread over its logarithm. None where no value was
    /// sorted into a bucket.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.buckets.iter().sum();
        if all == 0 || self.is_empty() {
            return None;
        }
        let wanted = share.clamp(0.0, 1.0) * all as f64;
        let mut below = 0.0;
        for (place, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= wanted {
                let low = if place == 0 { self.min } else { edge(place - 1).max(self.min) };
                let high = if place == BUCKETS - 1 { self.max } else { edge(place).min(self.max) };
                return Some(between(low, high, (wanted - below) / count));
            }
            below += count;
        }
        Some(self.max)
    }

    /// The share of values of at most 1; none where no value was sorted into a bucket.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn share_within_one(&self) -> Option<f64> {
        let all: u64 = self.buckets.iter().sum();
        let within: u64 = self.buckets[..=ONE.unsigned_abs() as usize].iter().sum();
        (all > 0).then(|| within as f64 / all as f64)
    }
}

/// The value at `part` of the way between two others.
fn between(low: f64, high: f64, part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    let value = match low > 0.0 && high > low {
        true => low * (high / low).powf(part),
        false => low + (high - low) * part,
    };
    // Rounding leaves it between them.
    value.max(low).min(high.max(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> HistorySketch {
        let mut sketch = HistorySketch::default();
        values.into_iter().for_each(|value| sketch.add(value, 1));
        sketch
    }

    #[test]
    fn edges_belong_to_the_bucket_below_so_that_a_budget_just_kept_is_kept() {
        assert_eq!(of([1.0, 0.5, 1.000_001, 3.0]).share_within_one(), Some(0.5));
        for place in 0..BUCKETS - 1 {
            assert_eq!(bucket(edge(place)), place);
            assert_eq!(bucket(edge(place) * 1.001), place + 1);
        }
        for (value, place) in [(0.0, 0), (-5.0, 0), (1e300, BUCKETS - 1), (f64::MIN_POSITIVE, 0)] {
            assert_eq!(bucket(value), place, "{value}");
        }
    }

    #[test]
    fn quantiles_are_as_near_as_a_bucket_and_never_outside_of_what_came() {
        let sketch = of((1..=1_000).map(|nth| f64::from(nth) / 100.0));
        for (share, exact) in [(0.5, 5.0), (0.95, 9.5), (0.99, 9.9)] {
            let found = sketch.quantile(share).unwrap();
            assert!((found / exact - 1.0).abs() < 0.15, "{share}: {found} for {exact}");
        }
        assert_eq!(sketch.quantile(1.0), Some(10.0));
        assert_eq!(of([7.0]).quantile(0.5), Some(7.0));
        assert_eq!(HistorySketch::default().quantile(0.5), None);
        let odd = of([f64::NAN, f64::INFINITY, 2.0]);
        assert_eq!((odd.count(), odd.mean()), (1, 2.0));
    }

    #[test]
    fn a_merge_is_the_sketch_of_all_values() {
        let (few, many) = (of([0.001, 4.0, 90.0]), of((0..500).map(f64::from)));
        let mut both = few;
        both.merge(&many);
        let all = of([0.001, 4.0, 90.0].into_iter().chain((0..500).map(f64::from)));
        assert_eq!((both.count, both.buckets), (all.count, all.buckets));
        assert_eq!((both.min(), both.max()), (0.0, 499.0));
        assert!((both.mean() - all.mean()).abs() < 1e-9);
    }
}
