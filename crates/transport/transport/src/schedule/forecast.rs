//! Predicts for every flow whether its waiting blocks will be on time, from the order in which they
//! will be sent.

use super::{Candidate, LineEstimate};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate};
use std::collections::BTreeMap;

/// The prediction for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The flow.
    pub flow: FlowId,
    /// Its bytes that still have to be sent.
    pub unsent: ByteCount,
    /// When the last of them arrives; none while the rate of the line is not known.
    pub done: Option<Instant>,
    /// Whether its deadlines will be kept.
    pub outlook: Outlook,
    /// Blocks that will miss their deadline.
    pub late: u64,
}

/// Whether a flow's deadlines will be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// Unknown while the rate of the line is not known.
    Unknown,
    /// All will be, with at least this time to spare; [`Duration::MAX`] where there are none.
    OnTime(Duration),
    /// The worst will be missed by this much.
    LateBy(Duration),
}

/// The forecast at `now` for each flow in `queue`, in the order of their numbers. `queue` is in the
/// order of sending; blocks behind it, in a spool, may be in it as one candidate for each deadline.
/// Memory is bounded by the number of flows.
pub fn forecast<'a>(
    now: Instant,
    line: &LineEstimate,
    queue: impl IntoIterator<Item = (FlowId, &'a Candidate)>,
) -> Vec<Forecast> {
    forecast_by(queue, |ahead| (line.rate > Rate::ZERO).then(|| line.arrival(now, ahead)))
}

/// The same, where `arrival` returns when the last of so many bytes arrives; none where that is not
/// known.
pub fn forecast_by<'a>(
    queue: impl IntoIterator<Item = (FlowId, &'a Candidate)>,
    arrival: impl Fn(ByteCount) -> Option<Instant>,
) -> Vec<Forecast> {
    let mut flows: BTreeMap<FlowId, Forecast> = BTreeMap::new();
    let mut ahead = ByteCount::ZERO;
    for (flow, candidate) in queue {
        ahead += candidate.unsent;
        let arrival = arrival(ahead);
        let outlook = judge(arrival, candidate.deadline);
        let new = Forecast { flow, unsent: ByteCount::ZERO, done: arrival, outlook, late: 0 };
        let known = flows.entry(flow).or_insert(new);
        known.unsent += candidate.unsent;
        known.done = arrival;
        known.outlook = worse(known.outlook, outlook);
        known.late += u64::from(matches!(outlook, Outlook::LateBy(_)));
    }
    flows.into_values().collect()
}

fn judge(arrival: Option<Instant>, deadline: Option<Instant>) -> Outlook {
    match (arrival, deadline) {
        (None, _) => Outlook::Unknown,
        (Some(_), None) => Outlook::OnTime(Duration::MAX),
        (Some(arrival), Some(deadline)) if arrival > deadline => {
            Outlook::LateBy(arrival.since(deadline))
        }
        (Some(arrival), Some(deadline)) => Outlook::OnTime(deadline.since(arrival)),
    }
}

fn worse(one: Outlook, other: Outlook) -> Outlook {
    match (one, other) {
        (Outlook::OnTime(one), Outlook::OnTime(other)) => Outlook::OnTime(one.min(other)),
        (one, other) => one.max(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn block(unsent: u64, deadline: Option<u64>) -> Candidate {
        Candidate {
            size: ByteCount::new(unsent),
            unsent: ByteCount::new(unsent),
            priority: 0,
            deadline: deadline.map(millis),
            taken: Instant::ZERO,
            order: 0,
            started: false,
            followers: crate::schedule::Followers::default(),
        }
    }

    const LINE: LineEstimate =
        LineEstimate { rate: Rate::from_mbps(8), one_way_delay: Duration::from_millis(80) };

    #[test]
    fn each_flow_waits_for_what_is_sent_before_it() {
        // 1 kB takes 1 ms. Arrivals: 1010, 1040, 1090, 1190 ms.
        let queue = [
            (FlowId(7), block(10_000, Some(1_020))),
            (FlowId(2), block(30_000, Some(1_000))),
            (FlowId(7), block(50_000, Some(1_095))),
            (FlowId(9), block(100_000, None)),
        ];
        let found = forecast(millis(920), &LINE, queue.iter().map(|(flow, block)| (*flow, block)));
        let of = |flow, unsent, done, outlook, late| Forecast {
            flow: FlowId(flow),
            unsent: ByteCount::new(unsent),
            done: Some(millis(done)),
            outlook,
            late,
        };
        assert_eq!(
            found,
            [
                of(2, 30_000, 1_040, Outlook::LateBy(Duration::from_millis(40)), 1),
                of(7, 60_000, 1_090, Outlook::OnTime(Duration::from_millis(5)), 0),
                of(9, 100_000, 1_190, Outlook::OnTime(Duration::MAX), 0),
            ]
        );
    }

    #[test]
    fn one_late_block_makes_its_flow_late_by_the_worst() {
        let queue = [block(10_000, Some(90)), block(10_000, Some(70)), block(10_000, Some(500))];
        let found = forecast(Instant::ZERO, &LINE, queue.iter().map(|block| (FlowId(1), block)));
        assert_eq!(found[0].outlook, Outlook::LateBy(Duration::from_millis(30)));
        assert_eq!((found.len(), found[0].late, found[0].done), (1, 1, Some(millis(110))));
    }

    #[test]
    fn nothing_is_foretold_for_a_line_of_unknown_rate() {
        let line = LineEstimate { rate: Rate::ZERO, ..LINE };
        let found = forecast(Instant::ZERO, &line, [(FlowId(1), &block(10, Some(1)))]);
        assert_eq!((found[0].outlook, found[0].done), (Outlook::Unknown, None));
        assert!(forecast(Instant::ZERO, &line, []).is_empty());
    }
}
