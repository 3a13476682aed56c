//! The queues of blocks that have something to send, by class, priority and flow, and their order.

use crate::block::BlockId;
use crate::classes::ClassId;
use crate::schedule::SendOrder;
use skyhaul_units::{FlowId, Instant, Seq};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Identifies a queue: blocks that are ranked together, and sent in the flow's order if of equal
/// rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    pub class: ClassId,
    pub priority: u8,
    pub flow: FlowId,
    /// The block of `flow` on which all of these depend.
    pub after: Option<u64>,
}

/// Blocks with something to send.
#[derive(Debug, Default)]
pub struct Queue {
    pub places: BTreeSet<u64>,
    /// Their pending bytes.
    pub bytes: u64,
}

/// All queues; bounded by the blocks held. Empty ones are dropped.
#[derive(Debug, Default)]
pub struct Queues {
    queues: BTreeMap<QueueKey, Queue>,
    /// Pending bytes of all queues.
    bytes: u64,
    /// Pending bytes of each class and priority.
    waiting: BTreeMap<(ClassId, u8), u64>,
    orders: BTreeMap<ClassId, Order>,
    /// Counts changes that may change which queue comes first.
    version: u64,
}

/// The queues of a class in the order of service at some moment, each with its block that goes
/// first.
#[derive(Debug, Default)]
pub struct Order {
    at: Instant,
    version: u64,
    ranked: BTreeSet<(SendOrder, u64, QueueKey)>,
    /// The rank of each queue; kept while there are many.
    places: BTreeMap<QueueKey, (SendOrder, u64)>,
    /// Queues to which a block was added, or from which one was removed, since.
    changed: BTreeSet<QueueKey>,
}

/// An order is valid for 1 ms while the queues keep their blocks: urgency changes little in that
/// time.
const ORDER_NANOS: u64 = 1_000_000;
/// Of more queues than this, only changed ones are ranked anew while an order is valid.
const FEW: usize = 64;
/// Validity of an order of many queues, for each of them: ranking all of them then takes a tenth of
/// the time.
const ORDER_NANOS_EACH: u64 = 10_000;

impl Queues {
    /// The pending bytes of a block changed.
    pub fn update(&mut self, key: QueueKey, seq: u64, before: u64, after: u64) {
        match after.cmp(&before) {
            Ordering::Greater => self.add(key, seq, after - before),
            Ordering::Less => self.take(key, seq, before - after, after),
            Ordering::Equal => {}
        }
    }

    /// A block has `bytes` more to send.
    pub fn add(&mut self, key: QueueKey, seq: u64, bytes: u64) {
        let queue = self.queues.entry(key).or_default();
        let is_new = queue.places.insert(seq);
        queue.bytes += bytes;
        self.bytes += bytes;
        *self.waiting.entry((key.class, key.priority)).or_default() += bytes;
        if is_new {
            self.changed(key);
        }
    }

    /// A block has `bytes` less to send, and `left` in all.
    fn take(&mut self, key: QueueKey, seq: u64, bytes: u64, left: u64) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.bytes = queue.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(waiting) = self.waiting.get_mut(&(key.class, key.priority)) {
            *waiting = waiting.saturating_sub(bytes);
        }
        if left == 0 && queue.places.remove(&seq) {
            if queue.places.is_empty() {
                self.queues.remove(&key);
            }
            self.changed(key);
        }
    }

    /// The first block of a queue may be another one than before.
    pub fn changed(&mut self, key: QueueKey) {
        self.version += 1;
        if let Some(order) = self.orders.get_mut(&key.class)
            && !order.places.is_empty()
        {
            order.changed.insert(key);
            // A class that is not served for long is ranked anew when it is served.
            if order.changed.len() > self.queues.len() + FEW {
                *order = Order::default();
            }
        }
    }

    pub fn get(&self, key: QueueKey) -> Option<&Queue> {
        self.queues.get(&key)
    }

    /// Whether there is this queue of dependents, or fewer than `most` of its flow and priority.
    pub fn has_or_fits(&self, key: QueueKey, most: usize) -> bool {
        let from = QueueKey { after: Some(0), ..key };
        let to = QueueKey { after: Some(u64::MAX), ..key };
        self.queues.contains_key(&key) || self.queues.range(from..=to).take(most).count() < most
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Bytes to send in all.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes to send of one class and priority.
    pub fn bytes_of(&self, class: ClassId, priority: u8) -> u64 {
        self.waiting.get(&(class, priority)).copied().unwrap_or_default()
    }

    /// The first block of every queue.
    pub fn heads(&self) -> impl Iterator<Item = (QueueKey, BlockId)> + '_ {
        self.queues.iter().filter_map(|(key, queue)| {
            queue.places.first().map(|seq| (*key, BlockId { flow: key.flow, seq: Seq(*seq) }))
        })
    }

    pub fn of_class(&self, class: ClassId) -> impl Iterator<Item = (QueueKey, &Queue)> {
        let from = QueueKey { class, priority: 0, flow: FlowId(0), after: None };
        self.queues
            .range(from..)
            .take_while(move |(key, _)| key.class == class)
            .map(|(key, queue)| (*key, queue))
    }

    /// Takes out the order of `class`, computed anew where it is too old; return it with
    /// [`Self::keep`]. `rank` returns the block of a queue that goes first, and its rank; a queue
    /// without one is left out.
    pub fn order(
        &mut self,
        now: Instant,
        class: ClassId,
        mut rank: impl FnMut(QueueKey, &Queue) -> Option<(SendOrder, u64)>,
    ) -> Order {
        let mut order = self.orders.get_mut(&class).map(core::mem::take).unwrap_or_default();
        let count = self.queues.len();
        let age = now.since(order.at).as_nanos();
        let serves = if count > FEW {
            ORDER_NANOS.max(ORDER_NANOS_EACH * count as u64)
        } else {
            ORDER_NANOS
        };
        let is_known = order.version > 0 && age < serves;
        if is_known && order.version == self.version {
            return order;
        }
        if is_known && count > FEW && !order.places.is_empty() {
            while let Some(key) = order.changed.pop_first() {
                let ranked = self.queues.get(&key).and_then(|queue| rank(key, queue));
                order.place(key, ranked);
            }
        } else {
            order = Order { at: now, ..Order::default() };
            for (key, queue) in self.of_class(class) {
                let Some((rank, seq)) = rank(key, queue) else { continue };
                order.ranked.insert((rank, seq, key));
                if count > FEW {
                    order.places.insert(key, (rank, seq));
                }
            }
        }
        order.version = self.version;
        order
    }

    /// Returns an order that was taken out.
    pub fn keep(&mut self, class: ClassId, order: Order) {
        self.orders.insert(class, order);
    }
}

impl Order {
    /// Queues with the block of each that goes first.
    pub fn iter(&self) -> impl Iterator<Item = (QueueKey, u64)> + '_ {
        self.ranked.iter().map(|(_, seq, key)| (*key, *seq))
    }

    /// Moves a queue to its rank, or removes it.
    fn place(&mut self, key: QueueKey, ranked: Option<(SendOrder, u64)>) {
        if let Some((rank, seq)) = self.places.remove(&key) {
            self.ranked.remove(&(rank, seq, key));
        }
        if let Some((rank, seq)) = ranked {
            self.ranked.insert((rank, seq, key));
            self.places.insert(key, (rank, seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, ORDER_NANOS, Queue, QueueKey, Queues};
    use crate::classes::ClassId;
    use crate::schedule::{Candidate, Followers, SendOrder};
    use proptest::prelude::*;
    use skyhaul_units::{ByteCount, FlowId, Instant};

    const CLASS: ClassId = ClassId(0);

    fn key(flow: u32) -> QueueKey {
        QueueKey { class: CLASS, priority: (flow % 3) as u8, flow: FlowId(flow), after: None }
    }

    /// The first block first, across queues the one with the smallest place.
    fn rank(key: QueueKey, queue: &Queue) -> Option<(SendOrder, u64)> {
        let seq = *queue.places.first()?;
        let candidate = Candidate {
            size: ByteCount::new(1),
            unsent: ByteCount::new(1),
            priority: key.priority,
            deadline: None,
            taken: Instant::ZERO,
            order: seq,
            started: false,
            followers: Followers::default(),
        };
        Some((SendOrder::new(u64::from(key.priority), seq, &candidate), seq))
    }

    fn order(queues: &mut Queues) -> Vec<(QueueKey, u64)> {
        let order = queues.order(Instant::ZERO, CLASS, rank);
        let found = order.iter().collect();
        queues.keep(CLASS, order);
        found
    }

    proptest! {
        #[test]
        fn changed_queues_are_ranked_as_if_all_were_ranked_anew(
            steps in proptest::collection::vec((0..200_u32, 0..4_u64, any::<bool>(),
                any::<bool>()), 1..400),
        ) {
            let mut queues = Queues::default();
            (0..100).for_each(|flow| queues.add(key(flow), 9, 5));
            for (flow, seq, adds, looks) in steps {
                if adds {
                    queues.add(key(flow), seq, 5);
                } else if let Some(queue) =
                    queues.get(key(flow)).filter(|queue| queue.places.contains(&seq)) {
                    let all = queue.places.len() as u64;
                    queues.take(key(flow), seq, queue.bytes / all, 0);
                }
                if looks {
                    let mut all: Vec<_> = queues
                        .of_class(CLASS)
                        .filter_map(|(key, queue)| Some((rank(key, queue)?, key)))
                        .collect();
                    all.sort();
                    let all: Vec<_> = all.into_iter().map(|((_, seq), key)| (key, seq)).collect();
                    prop_assert_eq!(order(&mut queues), all);
                }
            }
            for priority in 0..3 {
                let sum: u64 = queues
                    .of_class(CLASS)
                    .filter(|(key, _)| key.priority == priority)
                    .map(|(_, queue)| queue.bytes)
                    .sum();
                prop_assert_eq!(queues.bytes_of(CLASS, priority), sum);
            }
        }
    }

    #[test]
    fn a_change_among_many_queues_ranks_only_that_queue() {
        let mut queues = Queues::default();
        (0..10_000).for_each(|flow| queues.add(key(flow), 0, 5));
        order(&mut queues);
        queues.take(key(7), 0, 5, 0);
        queues.add(key(8), 1, 5);
        let mut ranked = Vec::new();
        let made = queues.order(Instant::ZERO, CLASS, |key, queue| {
            ranked.push(key.flow.0);
            rank(key, queue)
        });
        assert_eq!(made.iter().count(), 9_999);
        queues.keep(CLASS, made);
        assert_eq!(ranked, [8], "7 has nothing left to be ranked");
    }

    #[test]
    fn few_queues_are_ranked_anew_after_every_change_and_when_their_order_is_old() {
        let mut queues = Queues::default();
        (0..FEW as u32).for_each(|flow| queues.add(key(flow), 0, 5));
        let count = |queues: &mut Queues, at: Instant| {
            let mut ranked = 0;
            let made = queues.order(at, CLASS, |key, queue| {
                ranked += 1;
                rank(key, queue)
            });
            queues.keep(CLASS, made);
            ranked
        };
        assert_eq!(count(&mut queues, Instant::ZERO), FEW);
        assert_eq!(count(&mut queues, Instant::ZERO), 0);
        queues.add(key(3), 1, 5);
        assert_eq!(count(&mut queues, Instant::ZERO), FEW);
        assert_eq!(count(&mut queues, Instant::from_nanos(ORDER_NANOS)), FEW);
    }

    #[test]
    fn a_class_that_is_not_served_keeps_a_bounded_list_of_changes() {
        let mut queues = Queues::default();
        (0..100).for_each(|flow| queues.add(key(flow), 0, 5));
        order(&mut queues);
        for flow in 1_000..9_000 {
            queues.add(key(flow), 0, 5);
            queues.take(key(flow), 0, 5, 0);
        }
        assert!(queues.orders[&CLASS].changed.len() <= 101 + FEW);
        assert_eq!(order(&mut queues).len(), 100);
    }
}
