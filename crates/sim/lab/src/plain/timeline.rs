//! Events by time. Those of one sort nearly always come in their order, so each sort has a queue of
//! its own.

use skyhaul_transport::PathEvent;
use skyhaul_units::Instant;
use std::collections::VecDeque;

/// Events to come, each at its instant. Bounded by what the line holds in two round trips.
#[derive(Debug, Default)]
pub struct Timeline {
    lanes: [VecDeque<(Instant, u64, PathEvent)>; LANES],
    order: u64,
}

/// Datagrams; news of arrivals; news of losses; the rest.
const LANES: usize = 4;

const fn lane(event: &PathEvent) -> usize {
    match event {
        PathEvent::Datagram(_) => 0,
        PathEvent::Acked(_) => 1,
        PathEvent::Lost(_) => 2,
        PathEvent::Up { .. } | PathEvent::Control(_) | PathEvent::Down(_) => 3,
    }
}

impl Timeline {
    /// An event at an instant, after those that are there for the same.
    pub fn add(&mut self, at: Instant, event: PathEvent) {
        self.order += 1;
        let queue = &mut self.lanes[lane(&event)];
        let mut place = queue.len();
        while place > 0 && queue[place - 1].0 > at {
            place -= 1;
        }
        queue.insert(place, (at, self.order, event));
    }

    /// When the first is.
    pub fn next_at(&self) -> Option<Instant> {
        self.lanes.iter().filter_map(VecDeque::front).map(|(at, ..)| *at).min()
    }

    /// When the path next tells of something that it sent.
    pub fn next_news(&self) -> Option<Instant> {
        self.lanes[1..=2].iter().filter_map(VecDeque::front).map(|(at, ..)| *at).min()
    }

    /// Takes the first where its time has come.
    pub fn take(&mut self, now: Instant) -> Option<PathEvent> {
        let first = |queue: &VecDeque<(Instant, u64, PathEvent)>| {
            queue.front().map(|(at, order, _)| (*at, *order)).filter(|(at, _)| *at <= now)
        };
        let (lane, _) = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(lane, queue)| Some((lane, first(queue)?)))
            .min_by_key(|(_, key)| *key)?;
        self.lanes[lane].pop_front().map(|(.., event)| event)
    }

    /// Forgets what would happen from `at` on.
    pub fn stop(&mut self, at: Instant) {
        for queue in &mut self.lanes {
            queue.retain(|(then, ..)| *then < at);
        }
    }
}
