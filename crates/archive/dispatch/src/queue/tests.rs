//! Which delivery begins next, and what a destination that is away costs.

use super::*;
use crate::failure::FailureKind;
use skyhaul_units::Duration;

fn at(seconds: u64) -> Utc {
    Utc::from_day(20_783, Duration::from_secs(seconds))
}

fn lane(ordering: DeliveryOrdering) -> QueueLane {
    QueueLane { ordering, rules: DeliveryRules::default() }
}

fn queue(ordering: DeliveryOrdering, connections: usize) -> DestinationQueue {
    DestinationQueue::new(vec![lane(ordering)], connections)
}

fn delivery(id: u64, published: u64, deadline: Option<u64>) -> QueuedDelivery {
    let (published, deadline) = (at(published), deadline.map(at));
    QueuedDelivery { id, lane: 0, published, deadline, next: None, has_failed: false }
}

fn line() -> DeliveryFailure {
    DeliveryFailure::new(FailureKind::Line, "no route to host")
}

/// All that begin, each ending well at once.
fn order(queue: &mut DestinationQueue) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some(id) = queue.poll(at(1_000)) {
        queue.ended(at(1_000), id, None, 0);
        ids.push(id);
    }
    ids
}

#[test]
fn deliveries_begin_in_the_order_of_the_rules() {
    for (ordering, wanted) in [
        (DeliveryOrdering::Newest, [4, 3, 1, 2]),
        (DeliveryOrdering::Oldest, [2, 1, 3, 4]),
        (DeliveryOrdering::Deadline, [1, 3, 2, 4]),
    ] {
        let mut queue = queue(ordering, 2);
        for (id, published, deadline) in
            [(1, 20, Some(50)), (2, 10, None), (3, 30, Some(60)), (4, 30, None)]
        {
            queue.put(delivery(id, published, deadline));
        }
        assert_eq!(order(&mut queue), wanted, "{ordering:?}");
        assert_eq!(queue.counts(), (0, 0));
    }
}

#[test]
fn no_more_run_than_the_destination_takes_and_none_twice() {
    let mut queue = queue(DeliveryOrdering::Oldest, 2);
    (1..=4).for_each(|id| queue.put(delivery(id, id, None)));
    assert_eq!((queue.poll(at(9)), queue.poll(at(9)), queue.poll(at(9))), (Some(1), Some(2), None));
    // It runs: what is said of it meanwhile does not begin it again.
    queue.put(delivery(1, 1, None));
    assert_eq!(queue.counts(), (2, 2));
    queue.ended(at(9), 2, None, 0);
    assert_eq!((queue.poll(at(9)), queue.poll(at(9))), (Some(3), None));
}

#[test]
fn a_destination_that_is_away_costs_one_attempt_a_pause_whatever_waits() {
    let mut queue = queue(DeliveryOrdering::Newest, 4);
    (0..1_000).for_each(|id| queue.put(delivery(id, id, None)));
    let (mut now, mut attempts) = (at(0), 0);
    while now < at(86_400) {
        if let Some(id) = queue.poll(now) {
            attempts += 1;
            assert_eq!(queue.counts().1, 1, "one at a time");
            queue.ended(now, id, Some(&line()), 0);
            queue.put(QueuedDelivery {
                next: Some(now + Duration::from_secs(1_800)),
                ..delivery(id, id, None)
            });
        }
        assert_eq!(queue.trouble(), Some((at(0), "no route to host")));
        now = queue.next_timeout(now).unwrap();
    }
    // Eight while the pause grows to half an hour, then two an hour.
    assert_eq!(attempts, 55);
    // It is back: the first success opens it for all connections.
    let id = queue.poll(now).unwrap();
    assert_eq!(queue.poll(now), None);
    queue.ended(now, id, None, 0);
    assert_eq!(queue.trouble(), None);
    assert_eq!((0..5).filter(|_| queue.poll(now).is_some()).count(), 4);
}

#[test]
fn what_is_refused_for_itself_holds_up_no_other() {
    let mut queue = queue(DeliveryOrdering::Oldest, 1);
    (1..=2).for_each(|id| queue.put(delivery(id, id, None)));
    let id = queue.poll(at(0)).unwrap();
    let refused = DeliveryFailure::new(FailureKind::Refused, "the name is too long");
    queue.ended(at(0), id, Some(&refused), 0);
    assert_eq!(queue.poll(at(0)), Some(2));
}

#[test]
fn a_clock_that_is_set_back_opens_the_destination() {
    let mut queue = queue(DeliveryOrdering::Oldest, 1);
    (1..=2).for_each(|id| queue.put(delivery(id, id, None)));
    let id = queue.poll(at(1_000_000)).unwrap();
    queue.ended(at(1_000_000), id, Some(&line()), 0);
    let next = Some(at(1_000_000));
    queue.put(QueuedDelivery { next, ..delivery(id, id, None) });
    assert_eq!(queue.poll(at(0)), Some(1));
}

#[test]
fn lanes_take_turns_and_each_keeps_its_order() {
    let lanes = vec![lane(DeliveryOrdering::Newest), lane(DeliveryOrdering::Deadline)];
    let mut queue = DestinationQueue::new(lanes, 1);
    for id in 1..=4 {
        queue.put(delivery(id, id, None));
    }
    for (id, due) in [(11, 70), (12, 60)] {
        queue.put(QueuedDelivery { lane: 1, ..delivery(id, id, Some(due)) });
    }
    // One of a subscription that is gone waits.
    queue.put(QueuedDelivery { lane: 2, ..delivery(99, 1, None) });
    assert_eq!(order(&mut queue), [4, 12, 3, 11, 2, 1]);
    assert_eq!(queue.counts(), (1, 0));
}

#[test]
fn a_destination_that_is_back_ends_the_pauses_of_failures_and_no_other() {
    let mut queue = queue(DeliveryOrdering::Newest, 4);
    (1..=9).for_each(|id| queue.put(delivery(id, id, None)));
    let later = Some(at(1_800));
    // Four failed together; one waits for a better version.
    let failed: Vec<u64> = (0..4).filter_map(|_| queue.poll(at(0))).collect();
    for id in &failed {
        queue.ended(at(0), *id, Some(&line()), 0);
        queue.put(QueuedDelivery { next: later, has_failed: true, ..delivery(*id, *id, None) });
    }
    queue.put(QueuedDelivery { next: later, ..delivery(10, 10, None) });
    assert_eq!((failed, queue.poll(at(5))), (vec![9, 8, 7, 6], None));
    queue.wake(at(5));
    assert_eq!((queue.poll(at(5)), queue.poll(at(5))), (Some(9), None), "one tries for all");
    queue.ended(at(6), 9, None, 0);
    let next: Vec<u64> = std::iter::from_fn(|| queue.poll(at(6))).collect();
    assert_eq!(next, [8, 7, 6, 5], "as many as connections, newest first");
    // Where it was not back after all, the pause is as long as before.
    let mut queue = self::queue(DeliveryOrdering::Newest, 4);
    (1..=2).for_each(|id| queue.put(delivery(id, id, None)));
    for failure in 0..3 {
        queue.wake(at(failure));
        let id = queue.poll(at(failure)).unwrap();
        queue.ended(at(failure), id, Some(&line()), 0);
        queue.put(QueuedDelivery { next: later, has_failed: true, ..delivery(id, id, None) });
    }
    assert_eq!((queue.poll(at(41)), queue.poll(at(42))), (None, Some(1)));
}

#[test]
fn several_that_fail_together_make_one_pause() {
    let mut queue = queue(DeliveryOrdering::Oldest, 4);
    (1..=4).for_each(|id| queue.put(delivery(id, id, None)));
    let ids: Vec<u64> = (0..4).filter_map(|_| queue.poll(at(0))).collect();
    ids.iter().for_each(|id| queue.ended(at(0), *id, Some(&line()), 0));
    ids.iter().for_each(|id| queue.put(delivery(*id, *id, None)));
    let pause = DeliveryRules::default().retry.first;
    assert_eq!(queue.next_timeout(at(0)), Some(at(0) + pause));
    assert_eq!(queue.poll(at(0) + pause), Some(1));
    assert_eq!(queue.poll(at(0) + pause), None, "one tries for all");
}
