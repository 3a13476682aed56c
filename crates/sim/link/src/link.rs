//! The link: policer, queue, line, then the way.

use crate::chance::{Chance, Purpose};
use crate::line::Line;
use crate::loss::Channel;
use crate::policer::TokenBucket;
use crate::schedule::Schedule;
use crate::{LinkConfig, LinkCounters, Loss, Reordering};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Most items a link holds, waiting and under way together: two seconds at 6 Gbit/s of 1500-byte
/// packets. What comes on top is refused and counted as `overflow_dropped`; it bounds links without
/// a rate.
pub const MAX_ITEMS: usize = 1 << 20;

/// One direction of one link, carrying items of type `T`.
///
/// Call [`send`](Self::send) when something enters, and [`poll`](Self::poll) until `None` when
/// [`next_event`](Self::next_event) is due. Calls may come late: deliveries are worked out for the
/// instants at which they were due, so a late caller changes nothing but its own view. `now` that
/// goes back is taken as the latest `now` before.
#[derive(Debug)]
pub struct Link<T> {
    now: Instant,
    policer: Option<TokenBucket>,
    largest: Option<ByteCount>,
    line: Line,
    queue: Queue<T>,
    way: Way<T>,
    schedule: Schedule,
    loss: Loss,
    channel: Channel,
    loss_chance: Chance,
    counters: LinkCounters,
}

impl<T> Link<T> {
    /// A link whose plan starts at [`Instant::ZERO`]. The same seed and calls give the same
    /// deliveries.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            policer: config.policer.map(|policer| TokenBucket::new(policer, Instant::ZERO)),
            largest: config.largest,
            line: Line::new(config.rate),
            queue: Queue {
                waiting: VecDeque::new(),
                bytes: ByteCount::ZERO,
                limit: config.queue,
                sending: None,
            },
            way: Way::new(&config, seed),
            schedule: Schedule::new(&config, Instant::ZERO),
            loss: config.loss,
            channel: Channel::Good,
            loss_chance: Chance::new(seed, Purpose::Loss),
            counters: LinkCounters::default(),
        }
    }

    /// Makes the link another one from `now` on, with the plan of `config` starting now. What waits
    /// or is under way stays so; counters and chance go on.
    pub fn reconfigure(&mut self, now: Instant, config: LinkConfig) {
        let now = self.advance(now);
        self.policer = config.policer.map(|policer| TokenBucket::new(policer, now));
        self.largest = config.largest;
        self.line.set_rate(now, config.rate);
        self.queue.limit = config.queue;
        self.way.one_way_delay = config.one_way_delay;
        self.way.jitter = config.jitter;
        self.way.reordering = config.reordering;
        self.schedule = Schedule::new(&config, now);
        self.loss = config.loss;
        self.advance(now);
    }

    /// Puts an item of `size` (of the whole IP packet) in at `now`. It is queued, or dropped where
    /// the queue is full, and counted either way.
    pub fn send(&mut self, now: Instant, size: ByteCount, item: T) {
        let now = self.advance(now);
        self.counters.offered += 1;
        self.counters.offered_bytes += size;
        if self.in_flight() >= MAX_ITEMS {
            self.counters.overflow_dropped += 1;
            return;
        }
        if self.largest.is_some_and(|largest| size > largest) {
            self.counters.oversized += 1;
            return;
        }
        if self.policer.as_mut().is_some_and(|bucket| !bucket.passes(now, size)) {
            self.counters.policed += 1;
            return;
        }
        if self.line.is_busy() && self.queue.bytes + size > self.queue.limit {
            self.counters.queue_dropped += 1;
            return;
        }
        self.queue.push(Packet { offered: now, size, item });
        self.start_next(now);
        self.advance(now);
    }

    /// The next item that has arrived by `now`, in order of arrival; items of the same instant in
    /// order of transmission.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        let now = self.advance(now);
        let entry = self.way.arrivals.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let packet = entry.remove();
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += packet.size;
        Some(packet.item)
    }

    /// When to poll next. Nothing arrives before it, but it may pass without an arrival; `None`
    /// while nothing is in flight or what waits can never leave.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.way.arrivals.first_key_value().map(|((at, _), _)| *at);
        [arrival, self.earliest_from_line()].into_iter().flatten().min()
    }

    /// Totals up to the latest call.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Items that wait, are being sent, or are under way.
    pub fn in_flight(&self) -> usize {
        self.queue.len() + self.way.arrivals.len()
    }

    /// Bytes that wait for the line at the latest call, the packet being sent not counted.
    pub const fn queued(&self) -> ByteCount {
        self.queue.bytes
    }

    /// How long a packet offered now would wait for the line, should its rate stay;
    /// [`Duration::MAX`] where it stands still with packets in it.
    pub fn wait(&mut self, now: Instant) -> Duration {
        let now = self.advance(now);
        if !self.line.is_busy() {
            return Duration::ZERO;
        }
        let Some(end) = self.line.end() else { return Duration::MAX };
        let waiting =
            self.line.rate().map_or(Duration::ZERO, |rate| rate.time_for(self.queue.bytes));
        end.since(now) + waiting
    }

    /// Before this nothing that has not left the line can arrive: it has to end its transmission
    /// first, and a change of rate before that can only hasten it from the change on.
    fn earliest_from_line(&self) -> Option<Instant> {
        if !self.line.is_busy() {
            return None;
        }
        let leaves = [self.line.end(), self.schedule.next_change()].into_iter().flatten().min()?;
        let planned = self.schedule.shortest_delay().unwrap_or(Duration::MAX);
        Some(leaves + self.way.one_way_delay.min(planned).saturating_sub(self.way.jitter))
    }

    /// Works out everything up to `now` at the instants at which it was due.
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        loop {
            let end = self.line.end().filter(|at| *at <= self.now);
            let change = self.schedule.next_change().filter(|at| *at <= self.now);
            match (end, change) {
                (None, None) => return self.now,
                (Some(end), Some(change)) if change < end => self.apply_change(change),
                (Some(end), _) => self.end_transmission(end),
                (None, Some(change)) => self.apply_change(change),
            }
        }
    }

    fn end_transmission(&mut self, at: Instant) {
        self.line.finish(at);
        let packet = self.queue.sending.take().expect("the line is busy only with a packet");
        if self.schedule.in_outage(at) {
            self.counters.outage_dropped += 1;
        } else if self.channel.loses(&self.loss, &mut self.loss_chance) {
            self.counters.lost += 1;
        } else {
            self.way.enter(at, packet, &mut self.counters);
        }
        self.start_next(at);
    }

    fn start_next(&mut self, at: Instant) {
        if self.line.is_busy() {
            return;
        }
        if let Some(packet) = self.queue.next() {
            self.counters.queue_delay.add(at.since(packet.offered));
            self.line.start(at, packet.size);
        }
    }

    fn apply_change(&mut self, at: Instant) {
        let Some(due) = self.schedule.take_change() else { return };
        if due.rate.is_some() {
            self.line.set_rate(at, due.rate);
        }
        if let Some(one_way_delay) = due.one_way_delay {
            self.way.one_way_delay = one_way_delay;
        }
        if let Some(loss) = due.loss {
            self.loss = loss;
        }
    }
}

#[derive(Debug)]
struct Packet<T> {
    offered: Instant,
    size: ByteCount,
    item: T,
}

/// What waits for the line, and what is on it. Bounded by `limit` in bytes and [`MAX_ITEMS`] in
/// number.
#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<Packet<T>>,
    bytes: ByteCount,
    limit: ByteCount,
    sending: Option<Packet<T>>,
}

impl<T> Queue<T> {
    fn push(&mut self, packet: Packet<T>) {
        self.bytes += packet.size;
        self.waiting.push_back(packet);
    }

    /// Moves the first that waits onto the line.
    fn next(&mut self) -> Option<&Packet<T>> {
        let packet = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(packet.size);
        Some(self.sending.insert(packet))
    }

    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.sending.is_some())
    }
}

/// From the end of transmission to arrival.
#[derive(Debug)]
struct Way<T> {
    one_way_delay: Duration,
    jitter: Duration,
    reordering: Option<Reordering>,
    /// Latest arrival of those that keep their order.
    latest: Instant,
    /// By arrival, then by order of transmission. Bounded by [`MAX_ITEMS`].
    arrivals: BTreeMap<(Instant, u64), Packet<T>>,
    transmitted: u64,
    jitter_chance: Chance,
    reordering_chance: Chance,
}

impl<T> Way<T> {
    fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            one_way_delay: config.one_way_delay,
            jitter: config.jitter,
            reordering: config.reordering,
            latest: Instant::ZERO,
            arrivals: BTreeMap::new(),
            transmitted: 0,
            jitter_chance: Chance::new(seed, Purpose::Jitter),
            reordering_chance: Chance::new(seed, Purpose::Reordering),
        }
    }

    fn enter(&mut self, at: Instant, packet: Packet<T>, counters: &mut LinkCounters) {
        let mut arrival = at + self.delay();
        match self.reordering {
            Some(reordering) if self.reordering_chance.happens(reordering.probability) => {
                counters.reordered += 1;
                arrival = arrival.max(self.latest) + reordering.extra_delay;
            }
            _ => {
                arrival = arrival.max(self.latest);
                self.latest = arrival;
            }
        }
        self.arrivals.insert((arrival, self.transmitted), packet);
        self.transmitted += 1;
    }

    fn delay(&mut self) -> Duration {
        if self.jitter == Duration::ZERO {
            return self.one_way_delay;
        }
        let offset = self.jitter_chance.up_to(self.jitter * 2);
        (self.one_way_delay + offset).saturating_sub(self.jitter)
    }
}

#[cfg(test)]
mod tests;
