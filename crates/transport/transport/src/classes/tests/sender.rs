//! A line of fixed rate in virtual time that sends whatever the tree picks.

use super::*;
use skyhaul_units::Duration;

/// What one leaf has to send.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) leaf: ClassId,
    /// Datagrams of these sizes, round and round.
    pub(super) sizes: Vec<u64>,
    /// How fast data comes in; `None` is faster than any line.
    pub(super) rate: Option<Rate>,
    /// Data comes only between these.
    pub(super) active: (Instant, Instant),
    pub(super) sent: ByteCount,
    turn: usize,
}

/// One datagram that left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departure {
    pub(super) at: Instant,
    pub(super) leaf: ClassId,
    pub(super) bytes: ByteCount,
}

pub(super) struct Sender {
    pub(super) tree: ClassTree,
    pub(super) line: Rate,
    pub(super) sources: Vec<Source>,
    pub(super) departures: Vec<Departure>,
    pub(super) now: Instant,
    /// How often it woke with the line free, for nothing or for a datagram after a wait.
    pub(super) wakes: u64,
}

impl Source {
    pub(super) fn greedy(leaf: ClassId) -> Self {
        let active = (Instant::ZERO, Instant::FAR_FUTURE);
        Self { leaf, sizes: vec![1_500], rate: None, active, sent: ByteCount::ZERO, turn: 0 }
    }

    fn next(&self) -> ByteCount {
        ByteCount::new(self.sizes[self.turn % self.sizes.len()])
    }

    /// When its next datagram is there.
    fn ready(&self) -> Instant {
        let begun = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(self.sent));
        self.active.0 + begun
    }

    pub(super) fn has(&self, now: Instant) -> bool {
        self.ready() <= now && now < self.active.1
    }
}

impl Sender {
    pub(super) fn new(config: &ClassesConfig, line: Rate) -> Self {
        let tree = ClassTree::new(config).unwrap();
        Self {
            tree,
            line,
            sources: Vec::new(),
            departures: Vec::new(),
            now: Instant::ZERO,
            wakes: 0,
        }
    }

    /// A sender with data in every leaf at all times.
    pub(super) fn greedy(config: &ClassesConfig, line: Rate) -> Self {
        let mut sender = Self::new(config, line);
        sender.sources = sender.tree.leaves().map(|(leaf, _)| Source::greedy(leaf)).collect();
        sender
    }

    pub(super) fn source(&mut self, name: &str) -> &mut Source {
        let leaf = self.tree.find(name).unwrap();
        self.sources.iter_mut().find(|source| source.leaf == leaf).unwrap()
    }

    /// Serves the line until `end`; `idle` is asked whenever the tree holds everything back.
    pub(super) fn run(&mut self, end: Instant, mut idle: impl FnMut(&Self)) {
        while self.now < end {
            let (now, sources) = (self.now, &self.sources);
            let has = |leaf| sources.iter().any(|source| source.leaf == leaf && source.has(now));
            if let Some(leaf) = self.tree.pick(now, has) {
                self.send(leaf);
                continue;
            }
            idle(self);
            self.wakes += 1;
            let held = self.tree.next_timeout(now, has);
            let arrival =
                sources.iter().filter(|s| !s.has(now) && s.ready() > now).map(Source::ready).min();
            let next = held.into_iter().chain(arrival).min().unwrap_or(end);
            assert!(next > now, "waits for the past");
            self.now = next;
        }
    }

    fn send(&mut self, leaf: ClassId) {
        let source = self.sources.iter_mut().find(|source| source.leaf == leaf).unwrap();
        assert!(source.has(self.now), "picked a leaf without data");
        let bytes = source.next();
        source.turn += 1;
        source.sent += bytes;
        self.departures.push(Departure { at: self.now, leaf, bytes });
        self.tree.charge(self.now, leaf, bytes);
        self.now += self.line.time_for(bytes);
    }

    /// What leaf `name` sent a second, in thousandths of `unit`.
    pub(super) fn permille(&self, name: &str, unit: Rate) -> u64 {
        let leaf = self.tree.find(name).unwrap();
        let sent = self.departures.iter().filter(|departure| departure.leaf == leaf);
        let sent: ByteCount = sent.map(|departure| departure.bytes).sum();
        let rate = Rate::over(sent, self.now.since(Instant::ZERO));
        rate.scaled(1000, unit.as_bps()).as_bps()
    }

    pub(super) fn total(&self) -> Rate {
        let sent: ByteCount = self.departures.iter().map(|departure| departure.bytes).sum();
        Rate::over(sent, self.now.since(Instant::ZERO))
    }
}
