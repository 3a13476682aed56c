//! The paths of a session, and which of them is best for what.

use super::attached::{Attached, PathStatus};
use super::config::SessionConfig;
use super::health::UsablePaths;
use super::hints::Beside;
use super::reports::{REPORT_NEWS, REPORT_WAITING};
use crate::path::{PathId, PathOptions};
use crate::repair::Goal;
use crate::schedule::LineEstimate;
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::BTreeMap;

/// The paths of a session.
#[derive(Debug)]
pub struct SessionPaths {
    pub(super) attached: BTreeMap<PathId, Attached>,
    /// Whether and how well losses are repaired by coding.
    repair: Option<Goal>,
    /// The protocol version of all of them.
    version: u16,
}

/// What a path may carry beside the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathShare {
    /// Bytes that faster paths would deliver before anything sent here now arrives: these are left
    /// to them.
    pub lead: u64,
    /// The path costs: only what would be late without it goes there, given what these others do.
    pub only_late_for: Option<LineEstimate>,
}

/// The paths of one session: addresses of two nodes, and lanes on them.
const PATHS_MAX: usize = 64;
/// Copies of reports take at most this part of a path's rate.
const COPY_PART: u64 = 32;

impl SessionPaths {
    pub(super) const fn new(config: &SessionConfig) -> Self {
        let SessionConfig { version, repair, .. } = *config;
        Self { attached: BTreeMap::new(), repair, version }
    }

    /// Adds a path, or sets the options of one that is known. Returns whether the session has it.
    pub(super) fn add(&mut self, path: PathId, options: PathOptions) -> bool {
        let fits = self.attached.len() < PATHS_MAX;
        if fits {
            let goal = self.repair.unwrap_or_default();
            let new = || Attached::new(options, goal, self.version);
            self.attached.entry(path).or_insert_with(new).options = options;
        }
        fits
    }

    pub(super) fn usable_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Attached)> {
        let usable = self.attached.iter_mut().filter(|(_, path)| path.is_usable());
        usable.map(|(id, path)| (*id, path))
    }

    /// The protocol version that both ends speak.
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Whether losses are repaired by coding.
    pub(super) const fn has_repair(&self) -> bool {
        self.repair.is_some()
    }

    /// The paths and how they do.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, PathStatus)> + '_ {
        self.attached.iter().map(|(id, path)| (*id, path.status()))
    }

    /// The shortest round trip as symbols and their acknowledgements see it; zero before the first.
    pub fn rtt(&self) -> Duration {
        let measured = self
            .attached
            .values()
            .map(|path| path.inflight.rtt())
            .filter(|rtt| *rtt > Duration::ZERO);
        measured.min().unwrap_or(Duration::ZERO)
    }

    /// The paths in the order in which they should be filled: what is most urgent goes where it
    /// arrives first.
    pub fn fill_order(&self) -> Vec<PathId> {
        let mut order: Vec<(Duration, PathId)> =
            self.attached.iter().map(|(id, path)| (path.line().one_way_delay, *id)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    fn usable(&self) -> impl Iterator<Item = (PathId, &Attached)> {
        let usable = self.attached.iter().filter(|(_, path)| path.is_usable());
        usable.map(|(id, path)| (*id, path))
    }

    fn others(&self, than: PathId) -> impl Iterator<Item = (PathId, &Attached)> {
        self.usable().filter(move |(id, _)| *id != than)
    }

    pub(super) fn any_usable(&self) -> bool {
        self.usable().next().is_some()
    }

    /// Whether another path is usable beside this one.
    pub(super) fn beside(&self, path: PathId) -> Beside {
        if self.others(path).next().is_some() { Beside::Another } else { Beside::None }
    }

    /// How many paths may carry data now.
    pub(super) fn usability(&self) -> UsablePaths {
        match self.usable().count() {
            0 | 1 => UsablePaths::OneAtMost,
            _ => UsablePaths::Several,
        }
    }

    /// All usable paths as one: their rates together, the shortest delay.
    pub(super) fn line(&self) -> LineEstimate {
        together(self.usable().map(|(_, path)| path.line()))
    }

    /// How long after a path's acknowledgement a report must agree with it: the two cross on the
    /// way.
    pub(super) fn confirmation_time(&self) -> Duration {
        let slowest = self.attached.values().map(|path| path.inflight.rtt().max(path.rtt())).max();
        slowest.unwrap_or(Duration::ZERO) * 2 + REPORT_WAITING
    }

    /// The longest that a usable path may pause, and its round trip.
    pub(super) fn longest_pause(&self) -> Duration {
        let longest = self.usable().map(|(_, path)| path.patience() + path.rtt()).max();
        longest.unwrap_or(Duration::ZERO)
    }

    /// The path for control messages: the fastest usable one, or else any.
    pub(super) fn control_path(&self) -> Option<PathId> {
        let fastest = self.usable().min_by_key(|(_, path)| path.rtt()).map(|(id, _)| id);
        fastest.or_else(|| self.attached.keys().next().copied())
    }

    /// The path for reports: the one that returns best.
    pub(super) fn return_path(&self) -> Option<PathId> {
        let best = self.usable().min_by_key(|(id, path)| (path.options.standby, path.rtt(), *id));
        best.map(|(id, _)| id)
    }

    /// The path for copies of reports of this size: the one that returns second best, where they
    /// cost little.
    pub(super) fn second_return_path(&self, first: PathId, len: usize) -> Option<PathId> {
        let fits = |path: &Attached| {
            let little = (path.line().rate * REPORT_NEWS).as_u64() / COPY_PART;
            path.payload.is_some_and(|payload| len <= payload) && len as u64 <= little
        };
        let others = self.others(first).filter(|(_, path)| path.is_free() && fits(path));
        others.min_by_key(|(id, path)| (path.rtt(), *id)).map(|(id, _)| id)
    }

    /// The paths for duplicates of what goes on `path`: the free paths at work, or else metered
    /// ones, or else standbys.
    pub(super) fn duplicate_paths(&self, path: PathId) -> Vec<PathId> {
        let rank = |path: &Attached| (path.options.standby, path.options.metered);
        let best = self.others(path).map(|(_, other)| rank(other)).min();
        let others = self.others(path).filter(|(_, other)| Some(rank(other)) == best);
        others.map(|(id, _)| id).collect()
    }

    /// The path that brings soonest what another has lost; none where that one itself does,
    /// counting that it may be lost there again, or where none may be used for anything.
    pub(super) fn soonest_beside(&self, lost: PathId) -> Option<PathId> {
        let delay = |path: &Attached| path.rtt() / 2;
        // A loss shows after a round trip, and the retransmission takes half of one: three delays.
        let most = self.attached.get(&lost).map_or(Duration::MAX, |path| delay(path) * 3);
        let others = self.others(lost).filter(|(_, path)| path.is_free() && delay(path) <= most);
        others.min_by_key(|(id, path)| (delay(path), *id)).map(|(id, _)| id)
    }

    /// What a path may carry beside the others; `None` where it waits for them to fail.
    pub(super) fn share(&self, id: PathId) -> Option<PathShare> {
        let path = self.attached.get(&id)?;
        if self.attached.len() == 1 {
            return Some(PathShare::default());
        }
        let is_standby = |path: &Attached| path.options.standby;
        if is_standby(path) && self.others(id).any(|(_, other)| !is_standby(other)) {
            return None;
        }
        let line = path.line();
        let at_work = |other: &Attached| {
            !is_standby(other) && (path.options.metered || !other.options.metered)
        };
        let faster = self.others(id).filter(|(_, other)| at_work(other));
        let faster = faster.map(|(_, other)| other.line());
        let lead = faster
            .filter(|other| other.one_way_delay < line.one_way_delay)
            .map(|other| (other.rate * (line.one_way_delay - other.one_way_delay)).as_u64())
            .sum();
        let free = || self.others(id).map(|(_, other)| other).filter(|other| other.is_free());
        let only_late_for = (path.options.metered && free().next().is_some())
            .then(|| together(free().map(Attached::line)));
        Some(PathShare { lead, only_late_for })
    }

    /// Whether a usable path has FEC repair that may go now.
    pub(super) fn has_repair_to_send(&self, clock: Instant) -> bool {
        self.has_repair() && self.usable().any(|(_, path)| path.has_repair_to_send(clock))
    }

    /// Whether a path that is alone counts as silent.
    pub(super) fn any_silent(&self) -> bool {
        self.attached.values().any(|path| path.health.is_silent_since().is_some())
    }
}

/// Several paths as one: their rates together, the shortest delay.
fn together(lines: impl Iterator<Item = LineEstimate>) -> LineEstimate {
    let (mut rate, mut shortest) = (0, None);
    for line in lines {
        rate += line.rate.as_bps();
        shortest = Some(
            shortest.map_or(line.one_way_delay, |other: Duration| other.min(line.one_way_delay)),
        );
    }
    let one_way_delay = shortest.unwrap_or(Duration::ZERO);
    LineEstimate { rate: Rate::from_bps(rate), one_way_delay }
}
