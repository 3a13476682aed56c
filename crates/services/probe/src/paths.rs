//! Parallel routes of different length, found by the shortest round trips of flows that differ in
//! their source port alone.
//!
//! Routers spread flows over equal routes by a hash of addresses and ports, so that a flow keeps
//! its route. Flows whose shortest round trips form groups further apart than the same flow's
//! shortest round trip varies took different ones.

use crate::stats::clusters;
use serde::Serialize;
use skyhaul_units::Duration;

/// What the pings of one flow found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFlow {
    /// Its source port.
    pub port: u16,
    /// Round trips, in the order in which they were asked for.
    pub round_trips: Vec<Duration>,
    /// Questions.
    pub asked: u64,
}

/// The routes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Routes {
    /// Flows that had answers.
    pub flows: Vec<FlowFound>,
    /// Source ports of flows that had none, or fewer than ten: these take a route that fails.
    pub silent: Vec<u16>,
    /// Groups of flows, the shortest route first.
    pub routes: Vec<Route>,
    /// How far the shortest round trip of the same flow varies between two halves of the
    /// measurement, for nine in ten flows.
    pub noise_ms: f64,
    /// Groups are further apart than this: four times that, and a fifth of a millisecond at least.
    pub gap_ms: f64,
}

/// A flow as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FlowFound {
    /// Its source port.
    pub port: u16,
    /// Its shortest round trip.
    pub min_ms: f64,
    /// Pings sent.
    pub pings: u64,
    /// Pings without an answer.
    pub lost: u64,
}

/// Flows that took routes of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Route {
    /// The shortest round trip of all of them.
    pub min_ms: f64,
    /// The longest of their shortest round trips.
    pub max_ms: f64,
    /// Their source ports.
    pub ports: Vec<u16>,
    /// Part of their pings without an answer: a route that fails shows here.
    pub loss: f64,
}

impl Routes {
    /// Of flows; those without ten answers say nothing of their length.
    pub fn of(flows: &[PathFlow]) -> Self {
        let (flows, silent): (Vec<&PathFlow>, Vec<&PathFlow>) =
            flows.iter().partition(|flow| flow.round_trips.len() >= ANSWERS_MIN);
        let silent = silent.into_iter().map(|flow| flow.port).collect();
        let shortest = |trips: &[Duration]| trips.iter().min().copied().unwrap_or(Duration::ZERO);
        let mut noises: Vec<Duration> = flows
            .iter()
            .map(|flow| {
                let (early, late) = flow.round_trips.split_at(flow.round_trips.len() / 2);
                let (early, late) = (shortest(early), shortest(late));
                early.max(late) - early.min(late)
            })
            .collect();
        noises.sort_unstable();
        let noise = noises.get(noises.len() * 9 / 10).copied().unwrap_or(Duration::ZERO);
        let gap = (noise * 4).max(GAP_MIN);
        let least: Vec<Duration> = flows.iter().map(|flow| shortest(&flow.round_trips)).collect();
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let lost = |flow: &PathFlow| flow.asked.saturating_sub(flow.round_trips.len() as u64);
        let routes = clusters(&least, gap).into_iter().map(|group| {
            let members = || group.members.iter().filter_map(|index| flows.get(*index));
            let asked: u64 = members().map(|flow| flow.asked).sum();
            let missing: u64 = members().map(|flow| lost(flow)).sum();
            Route {
                min_ms: millis(group.least),
                max_ms: millis(group.greatest),
                ports: members().map(|flow| flow.port).collect(),
                loss: missing as f64 / asked.max(1) as f64,
            }
        });
        Self {
            routes: routes.collect(),
            flows: flows
                .iter()
                .zip(&least)
                .map(|(flow, min)| FlowFound {
                    port: flow.port,
                    min_ms: millis(*min),
                    pings: flow.asked,
                    lost: lost(flow),
                })
                .collect(),
            silent,
            noise_ms: millis(noise),
            gap_ms: millis(gap),
        }
    }
}

/// Fewer answers have no shortest one that means anything.
const ANSWERS_MIN: usize = 10;

/// Routes that differ by less, 20 km of fibre, are not told apart: hosts vary as much.
const GAP_MIN: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16, micros: u64, jitter: u64) -> PathFlow {
        let trip = |n: u64| Duration::from_micros(micros + n * 7_919 % jitter);
        PathFlow { port, round_trips: (0..50).map(trip).collect(), asked: 52 }
    }

    #[test]
    fn the_8_and_12_ms_of_two_routes_are_told_apart_in_jitter_of_a_millisecond() {
        let flows: Vec<PathFlow> = (0..16)
            .map(|n| flow(5_000 + n, if n % 3 == 0 { 12_000 } else { 8_000 }, 1_000))
            .collect();
        let found = Routes::of(&flows);
        assert_eq!(found.routes.len(), 2, "{found:?}");
        assert_eq!((found.routes[0].ports.len(), found.routes[1].ports.len()), (10, 6));
        assert!(
            (found.routes[1].min_ms - 12.0).abs() < 0.1
                && (found.routes[0].loss - 2.0 / 52.0).abs() < 1e-9
        );
    }

    #[test]
    fn one_route_is_one_group_and_a_flow_without_answers_is_left_out() {
        let mut flows: Vec<PathFlow> = (0..16).map(|n| flow(5_000 + n, 20_000, 3_000)).collect();
        flows.push(PathFlow { port: 9, round_trips: vec![], asked: 50 });
        let found = Routes::of(&flows);
        assert_eq!((found.routes.len(), found.flows.len()), (1, 16));
        assert_eq!(found.silent, [9]);
        assert_eq!(Routes::of(&[]).routes, []);
    }
}
