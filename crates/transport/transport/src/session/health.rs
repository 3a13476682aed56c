//! Whether a path brings anything over, and what becomes of its data where it does not.
//!
//! Three things may be wrong. It owes answers while others work: what was under way goes on those
//! (*stalled*). Nothing at all is heard from it, and there is no other (*silent*): what can wait
//! does. Or short datagrams arrive and full ones do not, although the path has made them as small
//! as it can (a *black hole*).

use super::attached::Attached;
use super::{Event, Session};
use crate::inflight::SentDatagram;
use crate::path::PathId;
use skyhaul_units::{Duration, Instant};

/// Why nothing but a try now and then goes on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It owes answers, and others carry its data.
    Unanswered,
    /// Nothing is heard from it, and there is no other.
    Silent,
    /// Short datagrams arrive, symbols do not.
    BlackHole,
}

/// The size of datagrams that the application was told of, and when it changed since.
#[derive(Debug, Default)]
pub struct Size {
    told: usize,
    changed: Instant,
}

/// A size that has stayed for so long, and so many round trips, is told: chance makes a path look
/// for it too, and is found out in less.
const SIZE_STAYS: Duration = Duration::from_secs(2);
const SIZE_ROUNDS: u64 = 16;

/// How a path does.
#[derive(Debug, Default)]
pub struct Health {
    stall: Option<(Stall, Instant)>,
    /// Full datagrams lost since one arrived, and when the first of them was.
    lost: u32,
    lost_since: Option<Instant>,
}

/// Silence of an only path for less than this means nothing: a handover of a satellite's beam takes
/// as long.
const SILENCE_ALONE: Duration = Duration::from_secs(1);
/// Round trips for which an only path may be silent.
const ROUNDS_ALONE: u64 = 3;
/// So many full datagrams in a row are not lost by chance: at 70 % once in 8 thousand million.
const HOLE_MANY: u32 = 64;
/// For so long, and so many round trips, they must have been lost: the path finds a smaller size by
/// itself meanwhile.
const HOLE_TIME: Duration = Duration::from_secs(5);
const HOLE_ROUNDS: u64 = 16;

impl Health {
    /// What is wrong, if anything.
    pub fn stall(&self) -> Option<Stall> {
        self.stall.map(|(stall, _)| stall)
    }

    /// Since when it counts as silent, where it does.
    pub fn is_silent_since(&self) -> Option<Instant> {
        self.stall.filter(|(stall, _)| *stall == Stall::Silent).map(|(_, since)| since)
    }

    /// It works again; whether it did not before.
    pub fn recover(&mut self) -> bool {
        core::mem::take(self).stall.is_some()
    }

    /// Something counts as lost.
    pub fn lost(&mut self, now: Instant, is_large: IsLarge) {
        if is_large == IsLarge::Yes {
            self.lost_since.get_or_insert(now);
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Something has arrived. Whether that shows that the path works again.
    pub fn arrived(&mut self, is_large: IsLarge) -> bool {
        if is_large == IsLarge::Yes {
            (self.lost, self.lost_since) = (0, None);
        }
        match self.stall() {
            Some(Stall::BlackHole) => is_large == IsLarge::Yes,
            Some(Stall::Unanswered | Stall::Silent) => true,
            None => false,
        }
    }

    /// When it will count as a black hole, should no full datagram arrive until then.
    fn hole_at(&self, rtt: Duration) -> Option<Instant> {
        let since = self.lost_since.filter(|_| self.lost >= HOLE_MANY)?;
        Some(since + (rtt * HOLE_ROUNDS).max(HOLE_TIME))
    }
}

/// Whether a datagram is about as long as datagrams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsLarge {
    /// It is.
    Yes,
    /// It is much shorter.
    No,
}

/// How many paths of a session may carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsablePaths {
    /// None, or the path that is looked at.
    OneAtMost,
    /// Another can take over what a path does not deliver.
    Several,
}

impl Attached {
    /// Whether what was sent was about as long as datagrams are now.
    pub fn is_large(&self, sent: &SentDatagram) -> IsLarge {
        let payload = self.payload.unwrap_or_default();
        match sent {
            SentDatagram::Padding => IsLarge::Yes,
            SentDatagram::Slice(slice) if (slice.end - slice.start) as usize >= payload / 4 * 3 => {
                IsLarge::Yes
            }
            SentDatagram::Slice(_)
            | SentDatagram::Report { .. }
            | SentDatagram::Notice
            | SentDatagram::Repair => IsLarge::No,
        }
    }

    /// Why it is to be used no longer, if so, where so many paths are `usable`.
    pub fn stalls(&self, now: Instant, usable: UsablePaths) -> Option<Stall> {
        if self.is_stalled() || self.hints.is_absent() {
            return None;
        }
        let several = usable == UsablePaths::Several;
        if several && self.is_silent(now) {
            return Some(Stall::Unanswered);
        }
        if !several && self.mute_at().is_some_and(|at| at <= now) {
            return Some(Stall::Silent);
        }
        self.health.hole_at(self.rtt()).filter(|at| *at <= now).map(|_| Stall::BlackHole)
    }

    /// When that may be so, should nothing come.
    pub fn stalls_at(&self, usable: UsablePaths) -> Option<Instant> {
        if self.is_stalled() {
            return None;
        }
        let silent = match usable {
            UsablePaths::Several => self.silent_at(),
            UsablePaths::OneAtMost => self.mute_at(),
        };
        [silent, self.health.hole_at(self.rtt())].into_iter().flatten().min()
    }

    /// When it is to be told that datagrams have another size.
    pub fn size_due(&self) -> Option<Instant> {
        let stays = (self.rtt() * SIZE_ROUNDS).max(SIZE_STAYS);
        self.payload.filter(|payload| *payload != self.size.told).map(|_| self.size.changed + stays)
    }

    fn mute_at(&self) -> Option<Instant> {
        self.payload?;
        let patience = (self.rtt() * ROUNDS_ALONE).max(SILENCE_ALONE);
        let answered = self.estimate.answered.max(self.hints.judge_from);
        self.inflight.mute_at(answered, self.rtt() + self.estimate.rtt_variation * 4, patience)
    }
}

impl Session {
    /// How many paths may carry data now.
    pub(super) fn usable_paths(&self) -> UsablePaths {
        match self.paths.values().filter(|path| path.is_usable()).count() {
            0 | 1 => UsablePaths::OneAtMost,
            _ => UsablePaths::Several,
        }
    }

    /// A path brings nothing over: what was under way there goes on the others, or waits.
    pub(super) fn stall(&mut self, now: Instant, id: PathId, stall: Stall) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        path.health = Health { stall: Some((stall, now)), ..Health::default() };
        path.stats.stalls += 1;
        path.try_at = now;
        let open = path.inflight.judge_all();
        let others = self.paths.values().any(Attached::is_usable);
        if others {
            self.went_silent(now);
        }
        for sent in open {
            let _ = self.lost(sent);
        }
        if others && self.control.path == Some(id) {
            self.choose_control_path();
        }
        self.events.push_back(Event::PathStalled(id));
    }

    /// Tells of a path's other size of datagrams, once it has stayed.
    pub(super) fn tell_size(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        if path.size_due().is_some_and(|due| due <= now) {
            path.size.told = path.payload.unwrap_or_default();
            self.events.push_back(Event::PathResized(id));
        }
    }

    /// A path works again.
    pub(super) fn back(&mut self, id: PathId) {
        if self.paths.get_mut(&id).is_some_and(|path| path.health.recover()) {
            self.events.push_back(Event::PathBack(id));
            self.leave_dead_control_path();
        }
    }

    /// A path carries datagrams of up to `payload` bytes from now on.
    pub(super) fn carries(&mut self, id: PathId, payload: usize) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        match path.payload.replace(payload) {
            None => {
                path.size.told = payload;
                self.events.push_back(Event::PathUp(id));
                self.leave_dead_control_path();
            }
            Some(before) if before != payload => {
                let may_fit = path.health.stall() == Some(Stall::BlackHole) && payload < before;
                path.health.arrived(IsLarge::Yes);
                path.size.changed = self.clock;
                if may_fit {
                    self.back(id);
                }
            }
            Some(_) => {}
        }
    }

    /// Control messages wait on a path that brings nothing over, and there is another.
    fn leave_dead_control_path(&mut self) {
        let is_dead = |id: PathId| self.paths.get(&id).is_none_or(Attached::is_stalled);
        if self.control.path.is_some_and(is_dead) && self.paths.values().any(Attached::is_usable) {
            self.choose_control_path();
        }
    }
}
