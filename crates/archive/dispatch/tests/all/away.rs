//! Two destinations of which one is away for a day, in virtual time.

use skyhaul_dispatch::{
    Delivery, DeliveryFailure, DeliveryInput, DeliveryOrdering, DeliveryOutput, DeliveryRules,
    DeliveryState, DestinationQueue, FailureKind, Proof, QueueLane, QueuedDelivery,
};
use skyhaul_units::{Duration, Utc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A product each 20 s: 4,320 a day.
const EACH: u64 = 20;
const DAY: u64 = 86_400;
/// How long products are published, in seconds.
const LAST: u64 = DAY + 6 * 3_600;
/// How long a transfer takes, in seconds.
const TRANSFER: u64 = 3;

fn at(second: u64) -> Utc {
    Utc::from_day(20_783, Duration::from_secs(second))
}

/// A destination with two connections.
struct Place {
    queue: DestinationQueue,
    rules: DeliveryRules,
    /// It answers from this second on.
    back: u64,
    deliveries: BTreeMap<u64, Delivery>,
    /// When those under way end; of one second, the newest first.
    ends: BTreeSet<(u64, Reverse<u64>)>,
    /// When each product was placed, in the order in which they were.
    placed: Vec<(u64, u64)>,
    attempts: usize,
}

impl Place {
    fn new(back: u64) -> Self {
        let rules = DeliveryRules::default();
        let lane = QueueLane { ordering: DeliveryOrdering::Newest, rules };
        Self {
            queue: DestinationQueue::new(vec![lane], 2),
            rules,
            back,
            deliveries: BTreeMap::new(),
            ends: BTreeSet::new(),
            placed: Vec::new(),
            attempts: 0,
        }
    }

    fn put(&mut self, id: u64) {
        let next = self.deliveries[&id].next;
        let (published, deadline) = (at(id), None);
        let has_failed = next.is_some();
        self.queue.put(QueuedDelivery { id, lane: 0, published, deadline, next, has_failed });
    }

    fn handle(&mut self, second: u64, id: u64, input: DeliveryInput) {
        let delivery = self.deliveries.get_mut(&id).unwrap();
        let output = delivery.handle(at(second), input, &self.rules);
        assert_eq!(output, DeliveryOutput::Quiet, "{id} at {second}: {delivery:?}");
    }

    fn second(&mut self, second: u64) {
        while let Some((_, Reverse(id))) = self.ends.first().copied().filter(|end| end.0 <= second)
        {
            self.ends.pop_first();
            self.handle(second, id, DeliveryInput::Placed(Proof::Digest));
            self.handle(second, id, DeliveryInput::Recorded);
            self.queue.ended(at(second), id, None, 0);
            self.placed.push((id, second));
        }
        while let Some(id) = self.queue.poll(at(second)) {
            self.attempts += 1;
            self.handle(second, id, DeliveryInput::Begin);
            if second >= self.back {
                self.ends.insert((second + TRANSFER, Reverse(id)));
                continue;
            }
            let failure = DeliveryFailure::new(FailureKind::Line, "no route to host");
            self.handle(second, id, DeliveryInput::Failed(failure.clone(), 0));
            self.queue.ended(at(second), id, Some(&failure), 0);
            self.put(id);
        }
    }

    /// The longest time from publication to the place, of products published from `from` on.
    fn slowest(&self, from: u64) -> u64 {
        let late = |(id, second): &(u64, u64)| (*id >= from).then(|| second - id);
        self.placed.iter().filter_map(late).max().unwrap()
    }
}

#[test]
fn a_destination_that_is_away_for_a_day_delays_no_other_and_gets_the_newest_first() {
    let mut places = [Place::new(0), Place::new(DAY)];
    let mut second = 0;
    while second <= LAST || places.iter().any(|place| place.queue.counts() != (0, 0)) {
        for place in &mut places {
            if second <= LAST && second % EACH == 0 {
                place.deliveries.insert(second, Delivery::offered(at(second)));
                place.put(second);
            }
            place.second(second);
        }
        second += 1;
    }
    for place in &places {
        let is_there = |delivery: &Delivery| delivery.state == DeliveryState::Accepted;
        assert!(place.deliveries.values().all(is_there));
        let once: BTreeSet<u64> = place.placed.iter().map(|(id, _)| *id).collect();
        assert_eq!((place.placed.len(), once.len()), (place.deliveries.len(), once.len()));
    }
    let [near, away] = &places;
    assert_eq!(near.slowest(0), TRANSFER);
    // One attempt a pause while it was away, and the first after the day within half an hour.
    let failed = away.attempts - away.placed.len();
    assert!((48..60).contains(&failed), "{failed}");
    let (_, first) = away.placed[0];
    assert!(first <= DAY + 1_800 + TRANSFER, "{first}");
    // A product that is published then waits for one transfer of the backlog at most.
    assert!(away.slowest(first) <= 2 * TRANSFER, "{}", away.slowest(first));
    // The backlog goes newest first, and is gone within the time of its transfers.
    let backlog: Vec<u64> =
        away.placed[1..].iter().map(|(id, _)| *id).filter(|id| *id < DAY).collect();
    let pairs = backlog.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!(pairs <= 2, "{pairs} of {} out of order", backlog.len());
    let (_, last) = away.placed.iter().rfind(|(id, _)| *id < DAY).unwrap();
    let work = DAY / EACH * TRANSFER / 2;
    assert!(*last < first + work * 5 / 4, "{last}");
}
