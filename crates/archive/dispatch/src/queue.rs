//! The deliveries to one destination: which begins next, and how many run at a time.
//!
//! A destination that fails as a whole is left alone for a pause, and then tried with one delivery.
//! So a destination that is away costs one attempt a pause, however much waits for it.

use crate::failure::DeliveryFailure;
use crate::rules::DeliveryRules;
use skyhaul_units::Utc;
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
    /// When the product was published.
    pub published: Utc,
    /// By when it should be there.
    pub deadline: Option<Utc>,
    /// Not before this time.
    pub next: Option<Utc>,
}

/// The queue of one destination.
#[derive(Debug)]
pub struct DestinationQueue {
    ordering: DeliveryOrdering,
    connections: usize,
    rules: DeliveryRules,
    /// May begin now, in order.
    ready: BTreeSet<Rank>,
    /// May begin later.
    later: BTreeSet<(Utc, u64)>,
    known: BTreeMap<u64, QueuedDelivery>,
    running: BTreeSet<u64>,
    trouble: Option<Trouble>,
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
    pub const fn new(ordering: DeliveryOrdering, connections: usize, rules: DeliveryRules) -> Self {
        Self {
            ordering,
            connections,
            rules,
            ready: BTreeSet::new(),
            later: BTreeSet::new(),
            known: BTreeMap::new(),
            running: BTreeSet::new(),
            trouble: None,
        }
    }

    /// Adds a delivery, or changes when it may begin. One that runs stays as it is.
    pub fn put(&mut self, delivery: QueuedDelivery) {
        if self.running.contains(&delivery.id) {
            return;
        }
        self.remove(delivery.id);
        match delivery.next {
            Some(next) => drop(self.later.insert((next, delivery.id))),
            None => drop(self.ready.insert(self.rank(&delivery))),
        }
        self.known.insert(delivery.id, delivery);
    }

    /// Removes a delivery that does not run.
    pub fn remove(&mut self, id: u64) {
        if let Some(delivery) = self.known.remove(&id) {
            self.ready.remove(&self.rank(&delivery));
            if let Some(next) = delivery.next {
                self.later.remove(&(next, id));
            }
        }
    }

    fn rank(&self, delivery: &QueuedDelivery) -> Rank {
        let (published, id) = (delivery.published.as_micros(), delivery.id);
        let (first, then) = match self.ordering {
            DeliveryOrdering::Oldest => (published, id),
            DeliveryOrdering::Newest => (-published, u64::MAX - id),
            DeliveryOrdering::Deadline => (delivery.deadline.map_or(i64::MAX, Utc::as_micros), id),
        };
        Rank { first, then, id }
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
        let id = self.ready.pop_first()?.id;
        self.known.remove(&id);
        self.running.insert(id);
        Some(id)
    }

    /// Whether the pause is not over. One that is longer than any is from a clock that was set
    /// back.
    fn is_paused(&self, trouble: &Trouble, now: Utc) -> bool {
        now < trouble.until && trouble.until <= now + self.rules.longest()
    }

    fn ripen(&mut self, now: Utc) {
        let farthest = now + self.rules.longest();
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
                self.ready.insert(self.rank(&delivery));
            }
        }
    }

    /// A delivery that ran has ended: well, or with this failure.
    pub fn ended(&mut self, now: Utc, id: u64, failure: Option<&DeliveryFailure>, random: u32) {
        self.running.remove(&id);
        match failure {
            Some(failure) if failure.kind.is_of_destination() => {
                let (failures, since) = self.trouble.as_ref().map_or((1, now), |trouble| {
                    (trouble.failures.saturating_add(1), trouble.since)
                });
                let until = now + self.rules.retry.pause(failures, random);
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
        let first = if self.ready.is_empty() { later } else { Some(now) };
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

#[cfg(test)]
mod tests;
