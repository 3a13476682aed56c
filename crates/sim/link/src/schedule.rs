//! What is due when: outages merged, changes in order, both as instants.

use crate::{Change, LinkConfig, Loss, Outage};
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// A change at an instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub at: Instant,
    pub rate: Option<Rate>,
    pub one_way_delay: Option<Duration>,
    pub loss: Option<Loss>,
}

/// What is still to come. Bounded by the configuration it is made from.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    changes: VecDeque<Due>,
    /// First instant without service, first instant with it again; disjoint and in order.
    outages: VecDeque<(Instant, Instant)>,
}

impl Schedule {
    /// The plan of `config`, whose times count from `start`.
    pub fn new(config: &LinkConfig, start: Instant) -> Self {
        let mut changes: Vec<Due> =
            config.changes.iter().map(|change| due(change, start)).collect();
        changes.sort_by_key(|due| due.at);
        Self { changes: changes.into(), outages: merge(&config.outages, start) }
    }

    /// When the next change is due.
    pub fn next_change(&self) -> Option<Instant> {
        self.changes.front().map(|due| due.at)
    }

    /// Takes the next change.
    pub fn take_change(&mut self) -> Option<Due> {
        self.changes.pop_front()
    }

    /// The shortest delay that a coming change sets.
    pub fn shortest_delay(&self) -> Option<Duration> {
        self.changes.iter().filter_map(|due| due.one_way_delay).min()
    }

    /// Whether nothing gets through at `at`. `at` must not go back.
    pub fn in_outage(&mut self, at: Instant) -> bool {
        while self.outages.front().is_some_and(|(_, end)| *end <= at) {
            self.outages.pop_front();
        }
        self.outages.front().is_some_and(|(start, _)| *start <= at)
    }
}

fn due(change: &Change, start: Instant) -> Due {
    let Change { at, rate, one_way_delay, loss } = *change;
    Due { at: start + at, rate, one_way_delay, loss }
}

fn merge(outages: &[Outage], start: Instant) -> VecDeque<(Instant, Instant)> {
    let mut spans: Vec<_> = outages
        .iter()
        .map(|outage| (start + outage.start, start + outage.start + outage.length))
        .collect();
    spans.sort_unstable();
    let mut merged: VecDeque<(Instant, Instant)> = VecDeque::new();
    for (from, to) in spans {
        match merged.back_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push_back((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_outages_are_one() {
        let outage = |start, length| Outage {
            start: Duration::from_secs(start),
            length: Duration::from_secs(length),
        };
        let config = LinkConfig {
            outages: vec![outage(8, 1), outage(1, 5), outage(2, 1)],
            ..LinkConfig::default()
        };
        let mut schedule = Schedule::new(&config, Instant::ZERO + Duration::from_secs(100));
        let out: Vec<u64> = (100..112)
            .filter(|second| schedule.in_outage(Instant::ZERO + Duration::from_secs(*second)))
            .collect();
        assert_eq!(out, [101, 102, 103, 104, 105, 108]);
    }
}
