//! The health of a path: whether it delivers, and if not, why.
//!
//! There are three faults. *Unanswered*: it owes acknowledgements while other paths work; its data
//! goes on those. *Silent*: nothing is heard from it, and there is no other path; data that can
//! wait does. *Black hole*: short datagrams arrive and full ones do not, although the path has
//! made them as small as it can.

use skyhaul_units::{Duration, Instant};

/// Why a path is out of use, but for a probe now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It owes acknowledgements, and other paths carry its data.
    Unanswered,
    /// Nothing is heard from it, and there is no other path.
    Silent,
    /// Short datagrams arrive, full symbols do not.
    BlackHole,
}

/// The datagram size that the application was told of, and when it changed last.
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

/// The application is told of a size that has stayed for 2 s and 16 round trips: losses by chance
/// can make a path try a smaller size, which it corrects in less.
const SIZE_STAYS: Duration = Duration::from_secs(2);
const SIZE_ROUNDS: u64 = 16;

/// The health of a path.
#[derive(Debug, Default)]
pub struct Health {
    stall: Option<(Stall, Instant)>,
    /// Full datagrams lost since one arrived, and when the first of them was.
    lost: u32,
    lost_since: Option<Instant>,
}

/// This many full datagrams in a row are not lost by chance: at 70 % loss once in 8 thousand
/// million.
const HOLE_MANY: u32 = 64;
/// They must have been lost for 5 s and 16 round trips: in that time the path finds a smaller size
/// by itself.
const HOLE_TIME: Duration = Duration::from_secs(5);
const HOLE_ROUNDS: u64 = 16;

impl Health {
    /// The fault, if there is one.
    pub fn stall(&self) -> Option<Stall> {
        self.stall.map(|(stall, _)| stall)
    }

    /// Since when the path counts as silent, if it does.
    pub fn is_silent_since(&self) -> Option<Instant> {
        self.stall.filter(|(stall, _)| *stall == Stall::Silent).map(|(_, since)| since)
    }

    /// The path is out of use from now on.
    pub fn fail(&mut self, now: Instant, stall: Stall) {
        *self = Self { stall: Some((stall, now)), ..Self::default() };
    }

    /// The path works again; returns whether it was out of use before.
    pub fn recover(&mut self) -> bool {
        core::mem::take(self).stall.is_some()
    }

    /// A datagram counts as lost.
    pub fn lost(&mut self, now: Instant, is_large: IsLarge) {
        if is_large == IsLarge::Yes {
            self.lost_since.get_or_insert(now);
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// A datagram has arrived; returns whether that shows that the path works again.
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

    /// When the path counts as a black hole if no full datagram arrives before.
    pub fn hole_at(&self, rtt: Duration) -> Option<Instant> {
        let since = self.lost_since.filter(|_| self.lost >= HOLE_MANY)?;
        Some(since + (rtt * HOLE_ROUNDS).max(HOLE_TIME))
    }
}

/// Whether a datagram has about the full size.
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
