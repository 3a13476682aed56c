//! Queues in a series of delays: the shortest delay of each part, and how far these vary.

/// A series cut into parts of equal number, and the least of each, in the unit of the series.
pub(super) fn floors(delays: &[i64], parts: usize) -> Vec<i64> {
    let size = delays.len().div_ceil(parts.max(1)).max(PART_MIN);
    delays
        .chunks(size)
        .filter(|part| part.len() * 2 > size)
        .filter_map(|part| part.iter().min().copied())
        .collect()
}

/// How far a series wavers: nine in ten of its values lie so far above its least at most, where one
/// step may divide it.
pub(super) fn wavers(floors: &[i64]) -> i64 {
    spread(floors, 0)
}

/// How far a series spreads, from its lowest values, so many in a hundred left out, to nine in ten,
/// where one step may divide it.
pub(super) fn spread(values: &[i64], low: usize) -> i64 {
    let range = |part: &[i64]| quantile(part, 90) - quantile(part, low);
    let splits = (SIDE_MIN..values.len().saturating_sub(SIDE_MIN) + 1).map(|at| {
        let (early, late) = values.split_at(at);
        range(early).max(range(late))
    });
    splits.chain([range(values)]).min().unwrap_or(0)
}

/// The value that so many in a hundred are at most; zero of nothing.
pub(super) fn quantile(values: &[i64], percent: usize) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// Correlation of a value with the one `lag` places before it, at least 0; 0 where the series is
/// short or does not vary.
pub(super) fn follows(values: &[i64], lag: usize) -> f64 {
    if lag == 0 || values.len() < lag.saturating_mul(4) {
        return 0.0;
    }
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
    let apart: Vec<f64> = values.iter().map(|value| *value as f64 - mean).collect();
    let all: f64 = apart.iter().map(|value| value * value).sum();
    let with: f64 = apart.iter().zip(&apart[lag..]).map(|(early, late)| early * late).sum();
    if all > 0.0 { (with / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// Values in a part. The least of fewer says little of the others.
const PART_MIN: usize = 5;
/// Parts on either side of a step: one alone would always count as a step.
const SIDE_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_comes_and_goes_wavers_and_a_step_does_not() {
        let saw: Vec<i64> = (0..40).map(|n| n % 10 * 5).collect();
        assert!(wavers(&saw) >= 40, "{}", wavers(&saw));
        let step: Vec<i64> = (0..40).map(|n| if n < 13 { 0 } else { 200 }).collect();
        assert_eq!(wavers(&step), 0);
        assert_eq!((wavers(&[]), wavers(&[5]), quantile(&[], 90)), (0, 0, 0));
    }

    #[test]
    fn jitter_has_floors_alike_and_no_memory() {
        let jitter: Vec<i64> = (0..4_000i64).map(|n| (n * n * 7_919 + n * 31) % 1_009).collect();
        assert!(wavers(&floors(&jitter, 20)) < 30, "{:?}", floors(&jitter, 20));
        assert!(follows(&jitter, 7) < 0.3);
        let slow: Vec<i64> = (0..4_000i64).map(|n| (n % 1_000 - 500).abs()).collect();
        assert!(follows(&slow, 50) > 0.8 && follows(&[], 3) == 0.0 && follows(&[7; 40], 3) == 0.0);
    }
}
