//! Which blocks have something to send, by class, priority and flow.

use crate::block::BlockId;
use crate::classes::ClassId;
use skyhaul_units::{FlowId, Instant, Seq};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that are ranked together; of equal rank they go in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    pub class: ClassId,
    pub priority: u8,
    pub flow: FlowId,
    /// The place in `flow` of the block without which none of these is worth anything.
    pub after: Option<u64>,
}

/// Blocks with something to send.
#[derive(Debug, Default)]
pub struct Queue {
    pub places: BTreeSet<u64>,
    /// Bytes that they have to send.
    pub bytes: u64,
}

/// All queues; bounded by the blocks held. Empty ones are dropped.
#[derive(Debug, Default)]
pub struct Queues {
    queues: BTreeMap<QueueKey, Queue>,
    /// Bytes to send of all queues.
    bytes: u64,
    orders: BTreeMap<ClassId, Order>,
    /// Counts changes that may change which queue comes first.
    version: u64,
}

/// The queues of a class in the order in which they are to be served, as of some moment.
#[derive(Debug)]
struct Order {
    at: Instant,
    version: u64,
    keys: Vec<(QueueKey, u64)>,
}

/// An order serves this long where no block came or went: urgency grows slowly against it.
const ORDER_NANOS: u64 = 1_000_000;

impl Queues {
    /// A block has `bytes` more to send.
    pub fn add(&mut self, key: QueueKey, seq: u64, bytes: u64) {
        let queue = self.queues.entry(key).or_default();
        if queue.places.insert(seq) {
            self.version += 1;
        }
        queue.bytes += bytes;
        self.bytes += bytes;
    }

    /// A block has `bytes` less to send, and `left` in all.
    pub fn take(&mut self, key: QueueKey, seq: u64, bytes: u64, left: u64) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.bytes = queue.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if left == 0 && queue.places.remove(&seq) {
            self.version += 1;
            if queue.places.is_empty() {
                self.queues.remove(&key);
            }
        }
    }

    pub fn get(&self, key: QueueKey) -> Option<&Queue> {
        self.queues.get(&key)
    }

    /// Whether there is this queue behind a block, or there are fewer of its flow and priority than `most`.
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
        let from = QueueKey { class, priority, flow: FlowId(0), after: None };
        let to = QueueKey { flow: FlowId(u32::MAX), after: Some(u64::MAX), ..from };
        self.queues.range(from..=to).map(|(_, queue)| queue.bytes).sum()
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

    /// The queues of `class`, each with the block of it that goes first: the one with the smallest rank first. `rank` gives
    /// that block and its rank; a queue without one is left out.
    pub fn order<K: Ord>(
        &mut self,
        now: Instant,
        class: ClassId,
        mut rank: impl FnMut(QueueKey, &Queue) -> Option<(K, u64)>,
    ) -> Vec<(QueueKey, u64)> {
        if let Some(order) = self.orders.get(&class)
            && order.version == self.version
            && now.since(order.at).as_nanos() < ORDER_NANOS
        {
            return order.keys.clone();
        }
        let ranked = self.of_class(class).filter_map(|(key, queue)| Some((rank(key, queue)?, key)));
        let mut ranked: Vec<((K, u64), QueueKey)> = ranked.collect();
        ranked.sort();
        let keys: Vec<(QueueKey, u64)> = ranked.into_iter().map(|((_, seq), key)| (key, seq)).collect();
        self.orders.insert(class, Order { at: now, version: self.version, keys: keys.clone() });
        keys
    }
}
