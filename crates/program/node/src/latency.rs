//! The latency of frames in each stage, as distributions of fixed size.

use hdrhistogram::Histogram;
use skyhaul_units::Duration;

/// Times of one stage, in 10 us steps to 0.1 %, from 10 us to 12 days; about 200 kB at the most.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

/// A distribution as a summary, in seconds. Zero where nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LatencySummary {
    /// Frames measured.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// All but one in a hundred are shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

const STEP_NANOS: u64 = 10_000;
const LONGEST_STEPS: u64 = 1 << 36;

impl Default for Latency {
    fn default() -> Self {
        Self(
            Histogram::new_with_bounds(1, LONGEST_STEPS, 3)
                .expect("the bounds and digits are constants in range"),
        )
    }
}

impl Latency {
    /// Counts `times` frames that took `span`.
    pub fn record(&mut self, span: Duration, times: u64) {
        self.0.saturating_record_n((span.as_nanos() / STEP_NANOS).max(1), times);
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The figures.
    #[allow(clippy::cast_precision_loss, reason = "a report")]
    pub fn summary(&self) -> LatencySummary {
        if self.0.is_empty() {
            return LatencySummary::default();
        }
        let seconds = |steps: u64| steps as f64 * (STEP_NANOS as f64 / 1e9);
        LatencySummary {
            count: self.0.len(),
            min: seconds(self.0.min()),
            p50: seconds(self.0.value_at_quantile(0.5)),
            p99: seconds(self.0.value_at_quantile(0.99)),
            max: seconds(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_times_recorded() {
        let mut latency = Latency::default();
        assert_eq!(latency.summary(), LatencySummary::default());
        for millis in 1..=100 {
            latency.record(Duration::from_millis(millis), 2);
        }
        let summary = latency.summary();
        assert_eq!(summary.count, 200);
        for (got, wanted) in
            [(summary.min, 0.001), (summary.p50, 0.050), (summary.p99, 0.099), (summary.max, 0.100)]
        {
            assert!((got - wanted).abs() < 0.0002, "{got} for {wanted}");
        }
    }
}
