//! Sessions on one line in virtual time, asked in a fixed order: the first is always asked first.

use super::*;
use crate::path::PathId;
use skyhaul_units::{ByteCount, Duration};

/// What a session has to send in one leaf.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) leaf: &'static str,
    /// Bytes of a symbol's datagram.
    pub(super) size: usize,
    /// How fast data comes in; `None` is faster than any line.
    pub(super) rate: Option<Rate>,
    /// Data comes from here, in milliseconds.
    pub(super) from: u64,
    /// Data comes until here.
    pub(super) until: u64,
    pub(super) sent: ByteCount,
}

impl Load {
    pub(super) fn of(leaf: &'static str) -> Self {
        Self { leaf, size: 1_400, rate: None, from: 0, until: u64::MAX, sent: ByteCount::ZERO }
    }

    fn ready(&self) -> Instant {
        let begun = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(self.sent));
        at(self.from) + begun
    }

    fn has(&self, now: Instant) -> bool {
        self.ready() <= now && (self.until == u64::MAX || now < at(self.until))
    }
}

pub(super) struct Participant {
    pub(super) member: LineMember,
    pub(super) loads: Vec<Load>,
    /// Its path has no room in this time, in milliseconds.
    pub(super) blocked: (u64, u64),
    /// Its own pacer: one datagram at a time.
    pub(super) pace: Option<Rate>,
    free_at: Instant,
    tree: ClassTree,
}

/// One datagram that left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) who: usize,
    pub(super) leaf: ClassId,
    pub(super) bytes: ByteCount,
}

pub(super) struct Together {
    pub(super) line: LineShare,
    pub(super) sessions: Vec<Option<Participant>>,
    pub(super) sent: Vec<Sent>,
    pub(super) now: Instant,
}

/// The only path of each session.
pub(super) const PATH: PathId = PathId(0);
/// Around each datagram.
const HEADERS: usize = 62;
/// A path's room: what it takes before the others are asked.
const ROOM: usize = 128;

pub(super) const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

impl Together {
    pub(super) fn new(text: &str, rate: Rate) -> Self {
        let line = LineShare::new(tree(text));
        line.declare(Instant::ZERO, "fibre", Some(rate)).unwrap();
        Self { line, sessions: Vec::new(), sent: Vec::new(), now: Instant::ZERO }
    }

    /// A session with these loads joins.
    pub(super) fn join(&mut self, loads: impl Into<Vec<Load>>) -> &mut Participant {
        let mut member = self.line.join().unwrap();
        member.set_path(PATH, "fibre").unwrap();
        let tree = member.new_tree().unwrap();
        let joined = Participant {
            member,
            loads: loads.into(),
            blocked: (0, 0),
            pace: None,
            free_at: Instant::ZERO,
            tree,
        };
        self.sessions.push(Some(joined));
        self.sessions.last_mut().unwrap().as_mut().unwrap()
    }

    pub(super) fn run(&mut self, until: u64) {
        while self.now < at(until) {
            let mut rounds = 0;
            while self.round() {
                rounds += 1;
                assert!(rounds < 10_000, "the sessions never come to rest");
            }
            let now = self.now;
            let next = self.sessions.iter().flatten().filter_map(|one| one.next(now)).min();
            let next = next.unwrap_or(at(until));
            assert!(next > now, "waits for the past at {now}");
            self.now = next;
        }
    }

    /// Asks each session until it gives nothing. Whether another round may bring more.
    fn round(&mut self) -> bool {
        let mut moved = false;
        for (who, session) in self.sessions.iter_mut().enumerate() {
            let Some(session) = session else { continue };
            moved |= session.fill(self.now, who, &mut self.sent);
        }
        moved
    }

    /// What a session sent of a leaf between two times, in symbols.
    pub(super) fn rate_of(&self, who: usize, leaf: Option<ClassId>, span: (u64, u64)) -> Rate {
        let (from, until) = span;
        let counts = |sent: &&Sent| {
            sent.who == who
                && leaf.is_none_or(|leaf| leaf == sent.leaf)
                && (at(from)..at(until)).contains(&sent.at)
        };
        let bytes: ByteCount = self.sent.iter().filter(counts).map(|sent| sent.bytes).sum();
        Rate::over(bytes, at(until).since(at(from)))
    }

    /// IP packets of all sessions between two times.
    pub(super) fn packets(&self, span: (u64, u64)) -> Rate {
        let within = |sent: &&Sent| (at(span.0)..at(span.1)).contains(&sent.at);
        let packet = |sent: &Sent| sent.bytes + ByteCount::of(HEADERS);
        let bytes: ByteCount = self.sent.iter().filter(within).map(packet).sum();
        Rate::over(bytes, at(span.1).since(at(span.0)))
    }
}

impl Participant {
    fn is_blocked(&self, now: Instant) -> bool {
        (at(self.blocked.0)..at(self.blocked.1)).contains(&now)
    }

    fn leaf(&self, load: &Load) -> ClassId {
        self.tree.find(load.leaf).unwrap()
    }

    fn has(&self, now: Instant, leaf: ClassId) -> bool {
        self.loads.iter().any(|load| self.leaf(load) == leaf && load.has(now))
    }

    /// Fills the path, as [`crate::give_out`] does. Whether another round may bring more.
    fn fill(&mut self, now: Instant, who: usize, sent: &mut Vec<Sent>) -> bool {
        if let Some(tree) = self.member.new_tree() {
            self.tree = tree;
        }
        let mut room = match self.pace {
            _ if self.is_blocked(now) || self.free_at > now => 0,
            Some(_) => 1,
            None => ROOM,
        };
        let mut any = false;
        while room > 0 {
            self.member.begin_turn(PATH);
            let mut wishes = LeafWishes::default();
            for (leaf, _) in self.tree.leaves() {
                wishes.0[usize::from(leaf.0)] = self.has(now, leaf);
            }
            let Some(leaf) = self.member.pick(now, PATH, |leaf| wishes.0[usize::from(leaf.0)])
            else {
                self.member.end_turn(PATH);
                break;
            };
            assert!(wishes.0[usize::from(leaf.0)], "picked a leaf without data");
            let tree = &self.tree;
            let is_next = |load: &&mut Load| tree.find(load.leaf) == Some(leaf) && load.has(now);
            let load = self.loads.iter_mut().find(is_next).unwrap();
            let bytes = ByteCount::of(load.size);
            load.sent += bytes;
            let _ = self.member.charge(now, leaf, bytes);
            self.member.sent(now, PATH, bytes.as_usize());
            sent.push(Sent { at: now, who, leaf, bytes });
            (any, room) = (true, room - 1);
            if let Some(pace) = self.pace {
                self.free_at = now + pace.time_for(bytes + ByteCount::of(HEADERS));
            }
        }
        if room == 0 {
            self.member.has_no_room(now, PATH);
            if self.tree.leaves().all(|(leaf, _)| !self.has(now, leaf)) {
                self.member.rest();
            }
        }
        any | (self.member.take_withdrawn() == Withdrawn::Yes)
    }

    /// When it should be asked again.
    fn next(&self, now: Instant) -> Option<Instant> {
        let blocked = self.is_blocked(now);
        let freed = blocked.then(|| at(self.blocked.1));
        let paced = Some(self.free_at).filter(|at| *at > now);
        let arrival = self.loads.iter().filter(|load| load.ready() > now).map(Load::ready).min();
        let held = || {
            let class = self.member.class_due(now, |leaf| self.has(now, leaf));
            [class, self.member.rate_due(now)].into_iter().flatten().min()
        };
        let held = if blocked { None } else { held() };
        [freed, paced, arrival, held].into_iter().flatten().min()
    }
}

struct LeafWishes([bool; 256]);

impl Default for LeafWishes {
    fn default() -> Self {
        Self([false; 256])
    }
}

pub(super) fn tree(text: &str) -> ClassTree {
    ClassTree::new(&toml::from_str(text).unwrap()).unwrap()
}
