//! Steps in a series of pings: of the round trip, when the route became another one, and of the
//! clocks' difference, when one of them was set.
//!
//! Load only ever lengthens a round trip, so the shortest before and after an instant are compared.
//! The measurement begins and ends with the line at rest, so that either side has some without
//! load.

use crate::clock::Ping;
use skyhaul_units::Duration;

/// What the pings show.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Steps {
    /// Change of the shortest round trip, in nanoseconds.
    pub route: i64,
    /// Nanoseconds from the first ping.
    pub route_at: u64,
    /// Change of the clocks' difference that no change of the route explains.
    pub clock: i64,
    /// Nanoseconds from the first ping.
    pub clock_at: u64,
    /// What both may be wrong by.
    pub noise: i64,
}

/// Looks for steps in pings, the earliest first.
pub(super) fn steps(pings: &[Ping]) -> Steps {
    let count = pings.len();
    let Some(first) = pings.first().filter(|_| count >= 2 * SIDE_MIN) else {
        return Steps::default();
    };
    let before = running(pings.iter());
    let mut after = running(pings.iter().rev());
    after.reverse();
    let noise = noise(pings);
    let split = |at: usize| {
        let (early, late) = (before[at - 1], after[at]);
        let route = nanos(late.round_trip()).saturating_sub(nanos(early.round_trip()));
        // Where one way alone became longer, half of that shows as a difference of the clocks; and
        // clocks drift.
        let between = late.sent.since(early.sent).as_nanos();
        let drift = i64::try_from(between / 1_000_000 * DRIFT_PPM).unwrap_or(i64::MAX);
        let apart = late.ahead().saturating_sub(early.ahead());
        let explained = (route.abs() / 2).saturating_add(drift);
        let clock = apart.saturating_abs().saturating_sub(explained).max(0) * apart.signum();
        (route, clock, pings[at].sent.since(first.sent).as_nanos())
    };
    let splits: Vec<(i64, i64, u64)> = (SIDE_MIN..=count - SIDE_MIN).map(split).collect();
    let (route, mut route_at) = greatest(splits.iter().map(|(route, _, at)| (*route, *at)));
    if route < 0 {
        // What comes later is shorter already before the step: it is where that ends.
        route_at = greatest(splits.iter().rev().map(|(route, _, at)| (*route, *at))).1;
    }
    let (clock, clock_at) = greatest(splits.iter().map(|(_, clock, at)| (*clock, *at)));
    Steps { route, route_at, clock, clock_at, noise }
}

/// The greatest step either way, and the first instant at which nine tenths of it show.
fn greatest(steps: impl Iterator<Item = (i64, u64)> + Clone) -> (i64, u64) {
    let greatest =
        steps.clone().map(|(step, _)| step).max_by_key(|step| step.unsigned_abs()).unwrap_or(0);
    let is_much = |(step, _): &(i64, u64)| {
        step.signum() == greatest.signum()
            && step.unsigned_abs() >= greatest.unsigned_abs() / 10 * 9
    };
    (greatest, steps.into_iter().find(is_much).map_or(0, |(_, at)| at))
}

/// For each ping, a short one of those up to it: not the shortest, since what was under way while a
/// clock was set shows any round trip, but the one that so many are shorter than.
fn running<'a>(pings: impl Iterator<Item = &'a Ping>) -> Vec<Ping> {
    let mut shortest: Vec<Ping> = Vec::with_capacity(ASTRIDE + 2);
    pings
        .map(|ping| {
            let place = shortest.partition_point(|other| other.round_trip() <= ping.round_trip());
            shortest.insert(place, *ping);
            shortest.truncate(ASTRIDE + 1);
            shortest[shortest.len() - 1]
        })
        .collect()
}

/// How far a short one of [`SIDE_MIN`] pings may lie above the truth: what the first ones, sent at
/// rest, vary by.
fn noise(pings: &[Ping]) -> i64 {
    let mut first: Vec<i64> =
        pings.iter().take(2 * SIDE_MIN).map(|ping| nanos(ping.round_trip())).collect();
    first.sort_unstable();
    first[first.len() / 2] - first[0]
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Pings on either side of a step: at 50 ms each they take 0.8 s, most of the time at rest.
const SIDE_MIN: usize = 16;

/// Pings that may be under way at one instant: ten a second and more, on lines of up to half a
/// second.
const ASTRIDE: usize = 6;

/// Parts per million. Two clocks without discipline drift apart by less than this, since a crystal
/// keeps 100.
const DRIFT_PPM: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Utc;

    fn ping(at: i64, up: i64, down: i64, ahead: i64) -> Ping {
        let utc = Utc::from_micros;
        Ping {
            sent: utc(at),
            reached: utc(at + up + ahead),
            answered: utc(at + up + ahead),
            back: utc(at + up + down),
        }
    }

    fn series(of: impl Fn(i64) -> (i64, i64, i64)) -> Steps {
        let pings: Vec<Ping> = (0..200)
            .map(|n| {
                let (up, down, ahead) = of(n);
                ping(n * 100_000, up + n * 7 % 90, down, ahead)
            })
            .collect();
        steps(&pings)
    }

    #[test]
    fn a_longer_way_is_a_step_of_the_route_and_none_of_the_clocks() {
        let found = series(|n| (if n < 120 { 20_000 } else { 32_000 }, 20_000, 5_000));
        assert!(
            (found.route - 12_000_000).abs() < 200_000 && found.clock.abs() < 200_000,
            "{found:?}"
        );
        assert!((11_000_000_000..13_500_000_000).contains(&found.route_at), "{found:?}");
    }

    #[test]
    fn a_clock_that_was_set_is_no_step_of_the_route() {
        let found = series(|n| (20_000, 20_000, if n < 60 { 0 } else { -40_000 }));
        assert!(
            (found.clock + 40_000_000).abs() < 4_000_000 && found.route.abs() < 200_000,
            "{found:?}"
        );
    }

    #[test]
    fn pings_under_way_while_a_clock_is_set_do_not_make_a_step_of_the_route() {
        // Our own clock goes back: some round trips seem shorter than the way is long.
        let found = series(|n| match n {
            0..=99 => (20_000, 20_000, 0),
            100..=103 => (20_000, -20_000, 0),
            _ => (20_000, 20_000, 40_000),
        });
        assert!(
            found.route.abs() < 200_000 && (found.clock - 40_000_000).abs() < 4_000_000,
            "{found:?}"
        );
    }

    #[test]
    fn load_in_between_and_clocks_that_drift_are_no_steps() {
        let loaded =
            series(|n| (if (40..160).contains(&n) { 300_000 } else { 20_000 }, 20_000, n * 10));
        assert!(loaded.route.abs() < 200_000 && loaded.clock.abs() < 200_000, "{loaded:?}");
        assert_eq!(steps(&[]), Steps::default());
    }
}
