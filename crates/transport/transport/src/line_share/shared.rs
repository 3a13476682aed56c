//! The state of a shared line: one class tree, a ceiling for each path with a declared rate, and
//! which session waits with what.
//!
//! A session that is asked for a datagram notes what it could send on that path: its *wishes*. The
//! tree chooses among the wishes of all sessions. Within the chosen leaf the sessions take turns
//! (deficit round robin). A session whose turn it is not sends nothing, and is asked again after
//! the others. A wish lasts until its session is asked again on that path.
//!
//! A session whose own path has no room for the moment, as its pacer counts it, keeps its turn for
//! a few milliseconds: the declared rate saves what is not used meanwhile. Otherwise shares would
//! follow the ticks of pacers on thin lines, where a tick is one datagram. Once the line has saved
//! more than that, the others go on.

use super::leaf_set::LeafSet;
use crate::classes::{Bucket, ClassId, ClassTree, Funding};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that may share a line: as many as a spool has destinations.
pub const LINE_SESSIONS_MAX: usize = 16;

/// Named paths of a line, at most.
pub const LINE_PATHS_MAX: usize = 16;

/// The share of a declared rate that is used, in thousandths: a line's controller uses as much.
const USED: u64 = 995;

/// Unused rate that a path keeps as credit while nobody wants to send on it, as a pacer does.
const IDLE: Duration = Duration::from_millis(4);

/// The same while somebody waits: a busy machine serves a sender this late.
const LATE: Duration = Duration::from_millis(20);

/// How much unused rate a session without room may cost the others before they go on: two ticks of
/// a pacer, and the time of [`GRACE_PACKETS`].
const GRACE: Duration = Duration::from_millis(4);
const GRACE_PACKETS: ByteCount = ByteCount::new(3_000);

/// A turn of a session within a leaf is what the path carries in this time, so that sessions of one
/// leaf alternate within a tick of their pacers.
const TURN: Duration = Duration::from_millis(1);

/// A turn is at least a datagram, and at most as much as one call of the kernel takes.
const TURN_LEAST: ByteCount = ByteCount::new(1_500);
const TURN_MOST: ByteCount = ByteCount::kib(64);

/// A turn on a path whose rate nobody declared: four datagrams.
const TURN_UNDECLARED: ByteCount = ByteCount::new(6_000);

/// The seat of a session on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seat(usize);

/// A path of the line, by its place in the table; the first is for all paths without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct LinePathIndex(usize);

/// Whether a session may have to look again, because another one waits with less than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    Yes,
    No,
}

/// The line in the hands of several sessions, which one thread drives: the lock is never contended.
#[derive(Debug, Clone)]
pub(super) struct LineLock(Arc<Mutex<SharedLine>>);

impl LineLock {
    pub(super) fn new(line: SharedLine) -> Self {
        Self(Arc::new(Mutex::new(line)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SharedLine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Debug)]
pub(super) struct SharedLine {
    pub(super) tree: ClassTree,
    /// Counts replacements of the tree.
    pub(super) generation: u64,
    seats: Vec<Option<Occupant>>,
    paths: Vec<LinePath>,
    /// The session that had the last turn of each leaf.
    last: Vec<usize>,
}

/// A session on the line.
#[derive(Debug, Default)]
struct Occupant {
    /// By path: what it could send there when it was last asked.
    wishes: Vec<LeafSet>,
    /// By path: whether it had no room there when it was last asked.
    roomless: Vec<bool>,
    /// By path: how many of the session's paths are that one.
    attached: Vec<usize>,
    /// By leaf: bytes left of its turn.
    left: Vec<i64>,
}

#[derive(Debug, Default)]
struct LinePath {
    name: String,
    rate: Option<Rate>,
    ceiling: Option<Bucket>,
}

impl SharedLine {
    pub(super) fn new(tree: ClassTree) -> Self {
        let last = vec![0; tree.leaves().count()];
        let paths = vec![LinePath::default()];
        Self { tree, generation: 0, seats: Vec::new(), paths, last }
    }

    /// Replaces the tree. Wishes name leaves of the old one: each session tells its own anew.
    pub(super) fn replace(&mut self, tree: ClassTree) {
        self.last = vec![0; tree.leaves().count()];
        self.tree = tree;
        self.generation += 1;
        for occupant in self.seats.iter_mut().flatten() {
            occupant.wishes.clear();
            occupant.left.clear();
        }
    }

    /// A seat for one more session; `None` where all are taken.
    pub(super) fn join(&mut self) -> Option<Seat> {
        if let Some(free) = self.seats.iter().position(Option::is_none) {
            self.seats[free] = Some(Occupant::default());
            return Some(Seat(free));
        }
        (self.seats.len() < LINE_SESSIONS_MAX).then(|| {
            self.seats.push(Some(Occupant::default()));
            Seat(self.seats.len() - 1)
        })
    }

    pub(super) fn leave(&mut self, seat: Seat) {
        if let Some(taken) = self.seats.get_mut(seat.0) {
            *taken = None;
        }
    }

    pub(super) fn sessions(&self) -> usize {
        self.seats.iter().flatten().count()
    }

    /// Declares the rate of a path, or that nobody knows it; `None` where the table is full.
    pub(super) fn declare(
        &mut self,
        now: Instant,
        name: &str,
        rate: Option<Rate>,
    ) -> Option<LinePathIndex> {
        let index = self.find(name).or_else(|| self.free_path(name))?;
        let path = &mut self.paths[index.0];
        if path.rate == rate {
            return Some(index);
        }
        path.rate = rate;
        let usable = rate.map(|rate| rate.scaled(USED, 1_000)).filter(|rate| *rate > Rate::ZERO);
        match (&mut path.ceiling, usable) {
            (Some(ceiling), Some(rate)) => ceiling.set_rate(now, rate),
            (ceiling, rate) => {
                *ceiling = rate.and_then(|rate| {
                    let late = LATE.max(grace(rate) * 2);
                    Some(Bucket::new(rate, Some(rate * IDLE))?.keeping(rate * late))
                });
            }
        }
        Some(index)
    }

    /// The path of that name.
    pub(super) fn find(&self, name: &str) -> Option<LinePathIndex> {
        let named = self.paths.iter().skip(1).position(|path| path.name == name);
        named.map(|index| LinePathIndex(index + 1))
    }

    /// A place for a new name: the first that no rate and no session needs.
    fn free_path(&mut self, name: &str) -> Option<LinePathIndex> {
        let is_free = |index: &usize| {
            self.paths[*index].rate.is_none() && self.users(LinePathIndex(*index)) == 0
        };
        let free = (1..self.paths.len()).find(is_free);
        let index = free.unwrap_or(self.paths.len());
        if index > LINE_PATHS_MAX {
            return None;
        }
        if index == self.paths.len() {
            self.paths.push(LinePath::default());
        }
        self.paths[index] = LinePath { name: name.to_owned(), ..LinePath::default() };
        Some(LinePathIndex(index))
    }

    pub(super) fn attach(&mut self, seat: Seat, path: LinePathIndex) {
        if let Some(occupant) = self.occupant(seat) {
            *slot(&mut occupant.attached, path.0) += 1;
        }
    }

    pub(super) fn detach(&mut self, seat: Seat, path: LinePathIndex) {
        if let Some(occupant) = self.occupant(seat) {
            let attached = slot(&mut occupant.attached, path.0);
            *attached = attached.saturating_sub(1);
            *slot(&mut occupant.wishes, path.0) = LeafSet::default();
        }
    }

    /// The leaf that the session in `seat` sends from on `path` at `now`, of those for which `has`
    /// is true; `None` when it has nothing, when it is held back, or when another session goes
    /// first.
    pub(super) fn pick(
        &mut self,
        now: Instant,
        seat: Seat,
        path: LinePathIndex,
        mut has: impl FnMut(ClassId) -> bool,
    ) -> Option<ClassId> {
        let others = self.wishes_beside(now, seat, path);
        let mut mine = LeafSet::default();
        let leaf = self.tree.pick(now, |leaf| {
            let has = has(leaf);
            if has {
                mine.insert(leaf);
            }
            has || others.contains(leaf)
        });
        self.wish(now, seat, path, mine);
        let leaf = leaf.filter(|_| !mine.is_empty() && self.is_open(now, path))?;
        if !others.contains(leaf) {
            // Nobody waits for a turn, so that none is counted: it would be a debt later.
            let left = slot(&mut self.occupant(seat)?.left, usize::from(leaf.0));
            *left = (*left).max(1);
            return Some(leaf);
        }
        (self.turn(now, leaf, path)? == seat).then_some(leaf)
    }

    /// Charges a symbol to its leaf; returns whether it was borrowed.
    pub(super) fn charge(
        &mut self,
        now: Instant,
        seat: Seat,
        leaf: ClassId,
        bytes: ByteCount,
    ) -> Funding {
        if let Some(occupant) = self.occupant(seat) {
            let left = slot(&mut occupant.left, usize::from(leaf.0));
            *left = left.saturating_sub_unsigned(bytes.as_u64());
        }
        self.tree.charge_for(now, leaf, bytes)
    }

    /// Bytes of IP packets left on `path`.
    pub(super) fn spend(&mut self, now: Instant, path: LinePathIndex, bytes: ByteCount) {
        if let Some(ceiling) = &mut self.paths[path.0].ceiling {
            ceiling.spend(now, bytes);
        }
    }

    /// Whether the declared rate of a path lets the next datagram go. What one session has to
    /// itself is left to its controller.
    pub(super) fn is_open(&self, now: Instant, path: LinePathIndex) -> bool {
        let open = |ceiling: &Bucket| ceiling.is_open(now);
        self.paths[path.0].ceiling.as_ref().is_none_or(open) || self.users(path) < 2
    }

    /// When a session that waits on a path should be asked again: the declared rate is used up, or
    /// another session keeps its turn.
    pub(super) fn ask_at(&self, now: Instant, path: LinePathIndex) -> Option<Instant> {
        let LinePath { rate, ceiling, .. } = &self.paths[path.0];
        let ceiling = ceiling.as_ref().filter(|_| self.users(path) > 1)?;
        if !ceiling.is_open(now) {
            return Some(ceiling.serve_at());
        }
        let keeps = |occupant: &Occupant| occupant.roomless.get(path.0).is_some_and(|none| *none);
        let kept = self.seats.iter().flatten().any(keeps);
        let saved = ceiling.saves(grace((*rate)?));
        (kept && saved > now).then_some(saved)
    }

    /// The session has no room on `path` now. It keeps its turn for a while where a rate is
    /// declared; where that while is over already, those that were asked before it may go on.
    pub(super) fn has_no_room(
        &mut self,
        now: Instant,
        seat: Seat,
        path: LinePathIndex,
    ) -> Withdrawn {
        if self.paths[path.0].ceiling.is_none() || self.wishes(seat, path).is_empty() {
            return self.withdraw(seat, path);
        }
        let keeps_turn = self.waits_for_room(now, path) || self.users(path) < 2;
        let Some(occupant) = self.occupant(seat) else { return Withdrawn::No };
        let had_none = core::mem::replace(slot(&mut occupant.roomless, path.0), true);
        if had_none || keeps_turn { Withdrawn::No } else { Withdrawn::Yes }
    }

    /// The session has nothing to send on `path` now.
    pub(super) fn withdraw(&mut self, seat: Seat, path: LinePathIndex) -> Withdrawn {
        let has_others = self.seats.iter().flatten().count() > 1;
        let Some(occupant) = self.occupant(seat) else { return Withdrawn::No };
        *slot(&mut occupant.roomless, path.0) = false;
        let wishes = slot(&mut occupant.wishes, path.0);
        let before = core::mem::take(wishes);
        if before.is_empty() || !has_others { Withdrawn::No } else { Withdrawn::Yes }
    }

    /// The session's wishes on `path`, to see whether it withdraws one.
    pub(super) fn wishes(&self, seat: Seat, path: LinePathIndex) -> LeafSet {
        let taken = self.seats.get(seat.0).and_then(|taken| taken.as_ref());
        taken.and_then(|occupant| occupant.wishes.get(path.0)).copied().unwrap_or_default()
    }

    /// How many sessions have `path`.
    fn users(&self, path: LinePathIndex) -> usize {
        let uses = |occupant: &&Occupant| occupant.attached.get(path.0).is_some_and(|n| *n > 0);
        self.seats.iter().flatten().filter(uses).count()
    }

    fn occupant(&mut self, seat: Seat) -> Option<&mut Occupant> {
        self.seats.get_mut(seat.0)?.as_mut()
    }

    /// Whether a session counts that has no room on `path`.
    fn waits_for_room(&self, now: Instant, path: LinePathIndex) -> bool {
        let LinePath { rate, ceiling, .. } = &self.paths[path.0];
        let saved = rate.zip(ceiling.as_ref()).map(|(rate, ceiling)| ceiling.saves(grace(rate)));
        saved.is_some_and(|saved| saved > now)
    }

    /// What sessions beside the one in `seat` wait with on `path`.
    fn wishes_beside(&self, now: Instant, seat: Seat, path: LinePathIndex) -> LeafSet {
        let waits_for_room = self.waits_for_room(now, path);
        let beside = self.seats.iter().enumerate().filter(|(index, _)| *index != seat.0);
        beside
            .filter_map(|(_, taken)| taken.as_ref())
            .filter(|occupant| waits_for_room || occupant.has_room(path))
            .filter_map(|occupant| occupant.wishes.get(path.0))
            .fold(LeafSet::default(), |all, wishes| all.with(wishes))
    }

    /// Notes what the session could send on `path`. One that has nothing more for a leaf keeps
    /// nothing of its turn there.
    fn wish(&mut self, now: Instant, seat: Seat, path: LinePathIndex, mine: LeafSet) {
        let was_idle = self
            .seats
            .iter()
            .flatten()
            .all(|occupant| occupant.wishes.get(path.0).is_none_or(LeafSet::is_empty));
        let Some(occupant) = self.occupant(seat) else { return };
        *slot(&mut occupant.wishes, path.0) = mine;
        *slot(&mut occupant.roomless, path.0) = false;
        for (leaf, left) in (0..=u8::MAX).map(ClassId).zip(&mut occupant.left) {
            if !mine.contains(leaf) {
                *left = (*left).min(0);
            }
        }
        if was_idle
            && !mine.is_empty()
            && let Some(ceiling) = &mut self.paths[path.0].ceiling
        {
            ceiling.wanted(now);
        }
    }

    /// Whose turn it is among the sessions that wait with `leaf` on `path`.
    fn turn(&mut self, now: Instant, leaf: ClassId, path: LinePathIndex) -> Option<Seat> {
        let quantum = self.quantum(path);
        let waits_for_room = self.waits_for_room(now, path);
        let place = usize::from(leaf.0);
        let last = *self.last.get(place)?;
        let waits = |occupant: &Occupant| {
            occupant.wishes.get(path.0).is_some_and(|wishes| wishes.contains(leaf))
                && (waits_for_room || occupant.has_room(path))
        };
        let count = self.seats.len();
        // Start at the last one: those before it had their turn in this round.
        let order = (0..count).map(|step| (last + step) % count);
        let waiting: Vec<(usize, i64)> = order
            .filter_map(|index| {
                let occupant = self.seats[index].as_ref().filter(|occupant| waits(occupant))?;
                Some((index, occupant.left.get(place).copied().unwrap_or(0)))
            })
            .collect();
        if let Some((index, _)) = waiting.iter().find(|(_, left)| *left > 0) {
            self.last[place] = *index;
            return Some(Seat(*index));
        }
        // All had their turn: as many new rounds as it takes until one of them has bytes left. The
        // last one goes last.
        let rounds = waiting.iter().map(|(_, left)| -left / quantum + 1).min()?;
        let begin = waiting.iter().take_while(|(index, _)| *index == last).count();
        let (had, others) = waiting.split_at(begin);
        let mut next = None;
        for (index, _) in others.iter().chain(had) {
            let Some(occupant) = &mut self.seats[*index] else { continue };
            let left = slot(&mut occupant.left, place);
            *left = left.saturating_add(quantum.saturating_mul(rounds));
            if *left > 0 && next.is_none() {
                next = Some(*index);
            }
        }
        self.last[place] = next?;
        next.map(Seat)
    }

    fn quantum(&self, path: LinePathIndex) -> i64 {
        let declared = self.paths[path.0].rate.map(|rate| rate * TURN);
        let turn = declared.unwrap_or(TURN_UNDECLARED).clamp(TURN_LEAST, TURN_MOST);
        i64::try_from(turn.as_u64()).unwrap_or(i64::MAX)
    }
}

impl Occupant {
    fn has_room(&self, path: LinePathIndex) -> bool {
        self.roomless.get(path.0).is_none_or(|none| !none)
    }
}

/// How long a session without room keeps its turn on a path of this rate.
fn grace(rate: Rate) -> Duration {
    GRACE + rate.time_for(GRACE_PACKETS)
}

/// An entry of a table that grows as far as it is used.
fn slot<T: Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if table.len() <= index {
        table.resize_with(index + 1, T::default);
    }
    &mut table[index]
}
