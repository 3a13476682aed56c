//! The received rates of two missions, in steps of a tenth of a second.

use core::ops::Range;
use skyhaul_units::Duration;

/// Rates at the receiver, bit/s, in each [`STEP`] from the beginning of the first phase on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateSeries {
    pub first: Vec<f64>,
    pub second: Vec<f64>,
}

/// Of a course.
pub const STEP: Duration = Duration::from_millis(100);

/// How many steps `span` has, the last one whole.
pub fn steps(span: Duration) -> usize {
    usize::try_from(span.as_nanos() / STEP.as_nanos()).unwrap_or(usize::MAX)
}

/// A course of `count` steps from rates that were measured from `begin` to `end`, in seconds, in
/// any order and of any length: each counts for the steps that it covers, by how much of them.
pub fn laid_out(spans: &[(f64, f64, f64)], count: usize) -> Vec<f64> {
    let mut course = vec![0.0; count];
    let step = STEP.as_secs_f64();
    for (begin, end, rate) in spans {
        let first = (begin / step).floor().max(0.0) as usize;
        for (at, value) in course.iter_mut().enumerate().skip(first) {
            let low = (at as f64 * step).max(*begin);
            if low >= *end {
                break;
            }
            let high = ((at + 1) as f64 * step).min(*end);
            // A span that begins with a step may, by rounding, begin at the end of the one before.
            *value += rate * (high - low).max(0.0) / step;
        }
    }
    course
}

/// The mean of the steps from `begin` to `end`.
pub fn mean(course: &[f64], begin: Duration, end: Duration) -> f64 {
    let steps = course.get(steps(begin)..steps(end).min(course.len())).unwrap_or_default();
    if steps.is_empty() { 0.0 } else { steps.iter().sum::<f64>() / steps.len() as f64 }
}

/// How long after the first of `steps` the course reaches `rate`, as the mean of the half second
/// that follows. `None` where it does not within `steps`.
pub fn reaches(course: &[f64], steps: Range<usize>, rate: f64) -> Option<Duration> {
    let steps = steps.start..steps.end.min(course.len());
    let windows = course.get(steps)?.windows(SMOOTH);
    let place = windows
        .into_iter()
        .position(|window| window.iter().sum::<f64>() / SMOOTH as f64 >= rate)?;
    Some(STEP.scaled(place as u64, 1))
}

/// The first step in which anything was received, and the one after the last.
pub fn ends(course: &[f64]) -> Option<(usize, usize)> {
    let first = course.iter().position(|rate| *rate > 0.0)?;
    Some((first, course.iter().rposition(|rate| *rate > 0.0)? + 1))
}

/// Half a second: TCP's own irregularity is shorter.
const SMOOTH: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_fall_on_the_steps_that_they_cover() {
        let course = laid_out(&[(0.05, 0.25, 100.0), (0.25, 0.30, 200.0), (9.0, 9.5, 1.0)], 4);
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(
            near(course[0], 50.0) && near(course[1], 100.0) && near(course[2], 150.0),
            "{course:?}"
        );
        assert_eq!(course[3], 0.0);
        assert_eq!(laid_out(&[(-1.0, 0.1, 5.0)], 1).len(), 1);
        // 4.3 ÷ 0.1 is less than 43.
        let tenths: Vec<_> =
            (0..300).map(|at| (f64::from(at) / 10.0, f64::from(at + 1) / 10.0, 7.0)).collect();
        assert!(laid_out(&tenths, 300).into_iter().all(|rate| near(rate, 7.0)));
    }

    #[test]
    fn means_and_times_are_of_the_existing_data() {
        let course: Vec<f64> =
            (0..40).map(|step| if (10..30).contains(&step) { 8.0 } else { 0.0 }).collect();
        assert_eq!(mean(&course, Duration::from_secs(1), Duration::from_secs(3)), 8.0);
        assert_eq!(mean(&course, Duration::from_secs(9), Duration::from_secs(10)), 0.0);
        assert_eq!(ends(&course), Some((10, 30)));
        assert_eq!(ends(&[0.0; 3]), None);
        assert_eq!(reaches(&course, 5..40, 8.0), Some(Duration::from_millis(500)));
        assert_eq!(reaches(&course, 5..40, 9.0), None);
        assert_eq!(reaches(&course, 50..60, 1.0), None);
    }
}
