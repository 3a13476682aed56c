//! Round trips of a line at rest: its spread, its queue, and its outages.

use super::evidence::Rest;
use super::waver::{floors, quantile, spread, wavers};
use crate::clock::Ping;
use skyhaul_units::Duration;

/// Pings of one time at rest, the earliest first.
pub(super) type Phase<'a> = &'a [Ping];

/// What two times at rest show, on a line whose shortest round trip is `shortest`.
pub(super) fn rest(phases: [Phase<'_>; 2], shortest: Duration) -> Rest {
    let shortest = nanos(shortest);
    let trips =
        phases.map(|phase| phase.iter().map(|ping| nanos(ping.round_trip())).collect::<Vec<_>>());
    let floors = trips.each_ref().map(|trips| floors(trips, trips.len() / HALF_SECOND));
    let most = |of: &dyn Fn(usize) -> i64| of(0).max(of(1)) as f64 / 1e6;
    Rest {
        spread_ms: most(&|phase| spread(&trips[phase], 10)),
        queue_ms: most(&|phase| {
            if floors[phase].is_empty() { 0 } else { quantile(&floors[phase], 50) - shortest }
        }),
        wavers_ms: most(&|phase| wavers(&floors[phase])),
    }
}

/// The longest time between two questions that were answered, beyond their spacing.
pub(super) fn gap(phases: [Phase<'_>; 2], spacing: Duration) -> Duration {
    let gaps = phases
        .into_iter()
        .flat_map(|phase| phase.windows(2))
        .map(|pair| pair[1].sent.since(pair[0].sent));
    gaps.max().unwrap_or_default().saturating_sub(spacing)
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Pings in half a second, at their spacing of 50 ms.
const HALF_SECOND: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Utc;

    fn phase(of: impl Fn(i64) -> i64) -> Vec<Ping> {
        let ping = |n: i64| {
            let (sent, utc) = (n * 50_000, Utc::from_micros);
            Ping {
                sent: utc(sent),
                reached: utc(sent),
                answered: utc(sent),
                back: utc(sent + of(n)),
            }
        };
        (0..60).map(ping).collect()
    }

    #[test]
    fn a_queue_of_others_shows_at_rest_and_jitter_is_none() {
        let shortest = Duration::from_millis(20);
        let (still, filled) = (phase(|_| 20_000), phase(|n| 60_000 + n % 30 * 1_000));
        let found = rest([&filled, &still], shortest);
        assert!(
            found.queue_ms > 40.0 && found.wavers_ms > 5.0 && found.spread_ms > 20.0,
            "{found:?}"
        );
        let jitter = phase(|n| 20_000 + n * 7 % 10 * 2_000);
        let found = rest([&jitter, &jitter], shortest);
        assert!(
            found.queue_ms < 1.0 && found.wavers_ms < 1.0 && found.spread_ms > 10.0,
            "{found:?}"
        );
        assert_eq!(rest([&[], &[]], shortest), Rest::default());
    }

    #[test]
    fn questions_without_an_answer_leave_a_gap() {
        let mut pings = phase(|_| 20_000);
        pings.drain(20..40);
        assert_eq!(gap([&pings, &[]], Duration::from_millis(50)), Duration::from_millis(1_000));
    }
}
