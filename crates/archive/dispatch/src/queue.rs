//! The deliveries to one destination: which begins next, and how many run at a time.
//!
//! Each subscription has a lane with an order of its own, and the lanes take turns: the backlog of
//! one holds up no other. A destination that fails as a whole is left alone for a pause, and then
//! tried with one delivery. So a destination that is away costs one attempt a pause, however much
//! waits for it.

use crate::failure::DeliveryFailure;
use crate::rules::{DeliveryRules, RetryRules};
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// In which order deliveries begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOrdering {
    /// The newest product first: for users who want the present.
    Newest,
    /// The oldest product first.
    Oldest,
    /// The one whose deadline is nearest first; those without deadline last.
    Deadline,
}

/// A delivery that may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedDelivery {
    /// Its number in the catalogue.
    pub id: u64,
    /// The lane of its subscription.
    pub lane: usize,
    /// When the product was published.
    pub published: Utc,
    /// By when it should be there.
    pub deadline: Option<Utc>,
    /// Not before this time.
    pub next: Option<Utc>,
    /// Whether it waits because an attempt failed.
    pub has_failed: bool,
}

/// The deliveries of one subscription at a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLane {
    /// In which order they begin.
    pub ordering: DeliveryOrdering,
    /// When failed attempts are repeated.
    pub rules: DeliveryRules,
}

/// The queue of one destination.
#[derive(Debug)]
pub struct DestinationQueue {
    lanes: Vec<Lane>,
    connections: usize,
    /// The lane that has the next turn.
    turn: usize,
    /// May begin later.
    later: BTreeSet<(Utc, u64)>,
    known: BTreeMap<u64, QueuedDelivery>,
    /// Those under way, each with its lane.
    running: BTreeMap<u64, usize>,
    trouble: Option<Trouble>,
}

/// One lane.
#[derive(Debug)]
struct Lane {
    terms: QueueLane,
    /// May begin now, in order.
    ready: BTreeSet<Rank>,
}

/// The place of a delivery among those that may begin: the smallest begins first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    first: i64,
    then: u64,
    id: u64,
}

/// The destination as a whole failed.
#[derive(Debug)]
struct Trouble {
    failures: u32,
    since: Utc,
    until: Utc,
    sentence: String,
}

impl DestinationQueue {
    /// Of a destination that takes so many deliveries at a time.
    pub fn new(lanes: Vec<QueueLane>, connections: usize) -> Self {
        let lane = |terms| Lane { terms, ready: BTreeSet::new() };
        Self {
            lanes: lanes.into_iter().map(lane).collect(),
            connections,
            turn: 0,
            later: BTreeSet::new(),
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            trouble: None,
        }
    }

    /// Adds a delivery, or changes when it may begin. One that runs stays as it is; one of a lane
    /// that is not there does not begin.
    pub fn put(&mut self, delivery: QueuedDelivery) {
        if self.is_running(delivery.id) {
            return;
        }
        self.remove(delivery.id);
        match delivery.next {
            Some(next) => drop(self.later.insert((next, delivery.id))),
            None => self.ready(&delivery),
        }
        self.known.insert(delivery.id, delivery);
    }

    fn ready(&mut self, delivery: &QueuedDelivery) {
        if let Some(lane) = self.lanes.get_mut(delivery.lane) {
            lane.ready.insert(rank(lane.terms.ordering, delivery));
        }
    }

    /// Removes a delivery that does not run.
    pub fn remove(&mut self, id: u64) {
        let Some(delivery) = self.known.remove(&id) else { return };
        if let Some(lane) = self.lanes.get_mut(delivery.lane) {
            lane.ready.remove(&rank(lane.terms.ordering, &delivery));
        }
        if let Some(next) = delivery.next {
            self.later.remove(&(next, id));
        }
    }

    /// Whether a delivery is under way.
    pub fn is_running(&self, id: u64) -> bool {
        self.running.contains_key(&id)
    }

    /// The delivery that begins now; it runs until [`DestinationQueue::ended`].
    pub fn poll(&mut self, now: Utc) -> Option<u64> {
        self.ripen(now);
        let most = match &self.trouble {
            Some(trouble) if self.is_paused(trouble, now) => 0,
            Some(_) => 1,
            None => self.connections,
        };
        if self.running.len() >= most {
            return None;
        }
        let count = self.lanes.len();
        let mut turns = (0..count).map(|step| (self.turn + step) % count);
        let lane = turns.find(|lane| !self.lanes[*lane].ready.is_empty())?;
        let id = self.lanes[lane].ready.pop_first()?.id;
        self.turn = (lane + 1) % count;
        self.known.remove(&id);
        self.running.insert(id, lane);
        Some(id)
    }

    /// Whether the pause is not over. One that is longer than any is from a clock that was set
    /// back.
    fn is_paused(&self, trouble: &Trouble, now: Utc) -> bool {
        now < trouble.until && trouble.until <= now + self.longest()
    }

    /// The longest time for which a delivery waits for its next attempt.
    fn longest(&self) -> Duration {
        self.lanes.iter().map(|lane| lane.terms.rules.longest()).max().unwrap_or_default()
    }

    fn ripen(&mut self, now: Utc) {
        let farthest = now + self.longest();
        let is_due = |next: Utc| next <= now || next > farthest;
        while let Some((next, id)) = self
            .later
            .first()
            .copied()
            .filter(|(next, _)| is_due(*next))
            .or_else(|| self.later.last().copied().filter(|(next, _)| is_due(*next)))
        {
            self.later.remove(&(next, id));
            if let Some(delivery) = self.known.get_mut(&id) {
                delivery.next = None;
                let delivery = *delivery;
                self.ready(&delivery);
            }
        }
    }

    /// The destination can be reached again: what waits because an attempt failed need not wait any
    /// longer. One delivery tries it first, as after a pause.
    pub fn wake(&mut self, now: Utc) {
        if let Some(trouble) = &mut self.trouble {
            trouble.until = trouble.until.min(now);
        }
        let waits = |(_, delivery): &(&u64, &mut QueuedDelivery)| {
            delivery.has_failed && delivery.next.is_some()
        };
        let mut woken = Vec::new();
        for (id, delivery) in self.known.iter_mut().filter(waits) {
            if let Some(next) = delivery.next.take() {
                self.later.remove(&(next, *id));
                woken.push(*delivery);
            }
        }
        woken.iter().for_each(|delivery| self.ready(delivery));
    }

    /// A delivery that ran has ended: well, or with this failure. Of several that fail together,
    /// the first makes the pause.
    pub fn ended(&mut self, now: Utc, id: u64, failure: Option<&DeliveryFailure>, random: u32) {
        let lane = self.running.remove(&id);
        match failure {
            Some(failure) if failure.kind.is_of_destination() => {
                if self.trouble.as_ref().is_some_and(|trouble| self.is_paused(trouble, now)) {
                    return;
                }
                let retry = lane.and_then(|lane| self.lanes.get(lane));
                let retry = retry.map_or_else(RetryRules::default, |lane| lane.terms.rules.retry);
                let (failures, since) = self.trouble.as_ref().map_or((1, now), |trouble| {
                    (trouble.failures.saturating_add(1), trouble.since)
                });
                let until = now + retry.pause(failures, random);
                let sentence = failure.sentence.clone();
                self.trouble = Some(Trouble { failures, since, until, sentence });
            }
            // What was refused for itself was refused by a destination that answers.
            Some(_) | None => self.trouble = None,
        }
    }

    /// When [`DestinationQueue::poll`] may have another one, if nothing ends before.
    pub fn next_timeout(&self, now: Utc) -> Option<Utc> {
        let pause = self.trouble.as_ref().map(|trouble| trouble.until).filter(|until| *until > now);
        let later = self.later.first().map(|(next, _)| *next);
        let is_idle = self.lanes.iter().all(|lane| lane.ready.is_empty());
        let first = if is_idle { later } else { Some(now) };
        match (first, pause) {
            (Some(first), Some(pause)) => Some(first.max(pause)),
            (first, None) => first,
            (None, Some(_)) => None,
        }
    }

    /// How many deliveries wait, and how many run.
    pub fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.running.len())
    }

    /// Since when the destination fails, and how; none where it does not.
    pub fn trouble(&self) -> Option<(Utc, &str)> {
        self.trouble.as_ref().map(|trouble| (trouble.since, trouble.sentence.as_str()))
    }
}

/// The place of a delivery in a lane of this order.
fn rank(ordering: DeliveryOrdering, delivery: &QueuedDelivery) -> Rank {
    let (published, id) = (delivery.published.as_micros(), delivery.id);
    let (first, then) = match ordering {
        DeliveryOrdering::Oldest => (published, id),
        DeliveryOrdering::Newest => (-published, u64::MAX - id),
        DeliveryOrdering::Deadline => (delivery.deadline.map_or(i64::MAX, Utc::as_micros), id),
    };
    Rank { first, then, id }
}

#[cfg(test)]
mod tests;
