//! Whether a path brings anything over, and what becomes of its data where it does not.
//!
//! Three things may be wrong. It owes answers while others work: what was under way goes on those
//! (*stalled*). Nothing at all is heard from it, and there is no other (*silent*): what can wait
//! does. Or short datagrams arrive and full ones do not, although the path has made them as small
//! as it can (a *black hole*).

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

impl Size {
    /// The application knows of this size.
    pub fn told(&mut self, payload: usize) {
        self.told = payload;
    }

    /// The size has changed.
    pub fn changed(&mut self, now: Instant) {
        self.changed = now;
    }

    /// When the application is to be told of `payload`, over this round trip.
    pub fn due(&self, payload: usize, rtt: Duration) -> Option<Instant> {
        let stays = (rtt * SIZE_ROUNDS).max(SIZE_STAYS);
        (payload != self.told).then_some(self.changed + stays)
    }
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

    /// Nothing but a try now and then goes on the path from now on.
    pub fn fail(&mut self, now: Instant, stall: Stall) {
        *self = Self { stall: Some((stall, now)), ..Self::default() };
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
    pub fn hole_at(&self, rtt: Duration) -> Option<Instant> {
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
