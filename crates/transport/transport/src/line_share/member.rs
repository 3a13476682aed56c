//! A session's place on a shared line.

use super::error::LineShareError;
use super::leaf_set::LeafSet;
use super::meter::RateMeter;
use super::shared::{LineLock, LinePathIndex, Seat, Withdrawn};
use crate::classes::{ClassId, ClassTree, Funding};
use crate::path::PathId;
use skyhaul_units::{ByteCount, Instant, Rate};
use std::collections::BTreeMap;

/// What a session uses of the line that it shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineUse {
    /// Over the last second: all IP packets of the session, acknowledgements and repair included.
    pub rate: Rate,
    /// Bytes of symbols so far.
    pub sent: ByteCount,
    /// Of those, what went beyond the guarantees of its classes, because others left it.
    pub borrowed: ByteCount,
}

/// A session's seat on its line; dropping it frees the seat.
#[derive(Debug)]
pub(crate) struct LineMember {
    line: LineLock,
    seat: Seat,
    paths: BTreeMap<PathId, MemberPath>,
    /// Which of the line's trees the session knows.
    generation: Option<u64>,
    meter: RateMeter,
    withdrawn: Withdrawn,
}

/// A path of the session.
#[derive(Debug, Default)]
struct MemberPath {
    /// Of the line's.
    index: LinePathIndex,
    /// Bytes charged to the path's declared rate so far.
    charged: u64,
    /// The same as the path itself counts them; zero where it does not.
    measured: u64,
    /// Whether the present turn has told the line what the session could send here.
    asked: bool,
    /// What the session could send here before that.
    before: LeafSet,
    /// FEC repair waits for the declared rate.
    repair_waits: bool,
}

/// IP, UDP and QUIC around a datagram, for a path that does not count what it sends.
const HEADERS: u64 = 62;

impl LineMember {
    pub(super) const fn new(line: LineLock, seat: Seat) -> Self {
        Self {
            line,
            seat,
            paths: BTreeMap::new(),
            generation: None,
            meter: RateMeter::new(),
            withdrawn: Withdrawn::No,
        }
    }

    pub(super) fn is_on(&self, line: &LineLock) -> bool {
        self.line.is_same(line)
    }

    /// The line's tree, for its names, where the session does not know it yet.
    pub(crate) fn new_tree(&mut self) -> Option<ClassTree> {
        let line = self.line.lock();
        (self.generation != Some(line.generation)).then(|| {
            self.generation = Some(line.generation);
            line.tree.for_one_of_several()
        })
    }

    /// Says which of the line's paths the session's path is.
    pub(crate) fn set_path(&mut self, id: PathId, name: &str) -> Result<(), LineShareError> {
        let mut line = self.line.lock();
        let index = line
            .find(name)
            .or_else(|| line.declare(Instant::ZERO, name, None))
            .ok_or(LineShareError::TooManyPaths)?;
        let path = self.paths.entry(id).or_default();
        line.detach(self.seat, path.index);
        line.attach(self.seat, index);
        path.index = index;
        Ok(())
    }

    /// The session has lost a path.
    pub(crate) fn drop_path(&mut self, id: PathId) {
        if let Some(path) = self.paths.remove(&id) {
            self.line.lock().detach(self.seat, path.index);
        }
    }

    /// A datagram of the session goes out on a path.
    pub(crate) fn sent(&mut self, now: Instant, id: PathId, datagram: usize) {
        let path = self.paths.entry(id).or_default();
        let headers = if path.measured == 0 { HEADERS } else { 0 };
        let bytes = ByteCount::of(datagram) + ByteCount::new(headers);
        path.charged += bytes.as_u64();
        self.meter.add(now, bytes);
        self.line.lock().spend(now, path.index, bytes);
    }

    /// A path has sent so many bytes of IP packets so far: headers, acknowledgements and the path's
    /// own packets are charged too.
    pub(crate) fn measured(&mut self, now: Instant, id: PathId, sent: ByteCount) {
        let path = self.paths.entry(id).or_default();
        path.measured = sent.as_u64();
        let missing = path.measured.saturating_sub(path.charged);
        if missing == 0 {
            return;
        }
        path.charged = path.measured;
        self.meter.add(now, ByteCount::new(missing));
        self.line.lock().spend(now, path.index, ByteCount::new(missing));
    }

    /// A path is asked for a datagram.
    pub(crate) fn begin_turn(&mut self, id: PathId) {
        let path = self.paths.entry(id).or_default();
        (path.asked, path.repair_waits) = (false, false);
    }

    /// A path was asked and got nothing. What the session could have sent there before it cannot
    /// now, unless it said so again.
    pub(crate) fn end_turn(&mut self, id: PathId) {
        let Some(path) = self.paths.get(&id) else { return };
        if !path.asked {
            return self.withdraw(id);
        }
        if !self.line.lock().wishes(self.seat, path.index).has_all_of(&path.before) {
            self.withdrawn = Withdrawn::Yes;
        }
    }

    /// A path has no room.
    pub(crate) fn has_no_room(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.paths.get(&id)
            && self.line.lock().has_no_room(now, self.seat, path.index) == Withdrawn::Yes
        {
            self.withdrawn = Withdrawn::Yes;
        }
    }

    fn withdraw(&mut self, id: PathId) {
        if let Some(path) = self.paths.get(&id)
            && self.line.lock().withdraw(self.seat, path.index) == Withdrawn::Yes
        {
            self.withdrawn = Withdrawn::Yes;
        }
    }

    /// The session has nothing to send.
    pub(crate) fn rest(&mut self) {
        let ids: Vec<PathId> = self.paths.keys().copied().collect();
        ids.into_iter().for_each(|id| self.withdraw(id));
    }

    /// Whether another session may go on, because this one has less to send than before.
    pub(crate) const fn take_withdrawn(&mut self) -> Withdrawn {
        core::mem::replace(&mut self.withdrawn, Withdrawn::No)
    }

    /// Whether FEC repair may go out on a path now, as far as its declared rate goes.
    pub(crate) fn lets_repair(&mut self, now: Instant, id: PathId) -> bool {
        let Some(path) = self.paths.get_mut(&id) else { return true };
        let is_open = self.line.lock().is_open(now, path.index);
        path.repair_waits = !is_open;
        is_open
    }

    /// When a leaf for which `has` is true may go on that the tree holds back.
    pub(crate) fn class_due(
        &self,
        now: Instant,
        has: impl FnMut(ClassId) -> bool,
    ) -> Option<Instant> {
        self.line.lock().tree.next_timeout(now, has)
    }

    /// When a path should be asked again on which the session waits for the declared rate or for
    /// another session.
    pub(crate) fn rate_due(&self, now: Instant) -> Option<Instant> {
        let line = self.line.lock();
        let waits = |path: &&MemberPath| {
            path.repair_waits || !line.wishes(self.seat, path.index).is_empty()
        };
        let waiting = self.paths.values().filter(waits);
        waiting.filter_map(|path| line.ask_at(now, path.index)).min()
    }

    /// What the session sends now.
    pub(crate) fn rate(&self, now: Instant) -> Rate {
        self.meter.rate(now)
    }

    /// The leaf to send from on a path, where it is this session's turn.
    pub(crate) fn pick(
        &mut self,
        now: Instant,
        id: PathId,
        has: impl FnMut(ClassId) -> bool,
    ) -> Option<ClassId> {
        let path = self.paths.entry(id).or_default();
        let mut line = self.line.lock();
        if !core::mem::replace(&mut path.asked, true) {
            path.before = line.wishes(self.seat, path.index);
        }
        line.pick(now, self.seat, path.index, has)
    }

    /// Charges a symbol to its leaf; returns who paid.
    pub(crate) fn charge(&self, now: Instant, leaf: ClassId, bytes: ByteCount) -> Funding {
        self.line.lock().charge(now, self.seat, leaf, bytes)
    }
}

impl Drop for LineMember {
    fn drop(&mut self) {
        self.line.lock().leave(self.seat);
    }
}
