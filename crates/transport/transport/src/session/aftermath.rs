//! When a path goes silent: what goes out again goes twice on a path that loses, for a while.
//!
//! While silence is in doubt, what had been sent again on that path goes on another too: delivery
//! has waited for it since it was lost first, longer than for anything else there.
//!
//! What was under way on a dead path holds back everything behind it. Delivery has paused for as
//! long as it took to notice; a loss among what is sent again would make that a round trip longer.
//! A second copy makes such a loss as rare as two in a row, and costs at most what the survivors
//! carry in the time that a pause may take, and a round trip.

use super::attached::Attached;
use super::reports::REPORT_NEWS;
use skyhaul_units::{ByteCount, Duration, Instant, Probability};

/// Until when what is sent again goes twice.
#[derive(Debug, Default)]
pub struct Aftermath {
    until: Instant,
}

/// A path that loses less than this is trusted with one copy: a thousand symbols then lose one.
const LOSS_MIN: Probability = Probability::from_ppb(1_000_000);
/// Packets between the two copies, at least: a tick's worth of them is not lost together as easily
/// as two neighbours.
const SPACING_MIN: u64 = 4;
/// What the far end lacks of a path in a row, up to the last that should have come, from which on
/// the path is in doubt.
pub const MISSED_MANY: usize = 2;
/// The same, where it had been lost before: chance alone takes the same symbol twice in a row too
/// seldom to cost much here.
pub const MISSED_AGAIN: usize = 1;

/// How often a symbol goes, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    pub times: u8,
    pub gap: Duration,
}

impl Aftermath {
    /// A path may be silent: until the next report, or until its silence is tried again.
    pub fn doubt(&mut self, now: Instant) {
        self.until = self.until.max(now + REPORT_NEWS);
    }

    /// A path went silent: what goes out again goes twice for so long, which is as long as a pause
    /// of those that are left may take, and a round trip.
    pub fn went_silent(&mut self, now: Instant, pause: Duration) {
        self.until = self.until.max(now + pause);
    }

    /// How often a symbol goes that is sent again on `path`, where so much was `planned`.
    pub fn copies(&self, now: Instant, path: &Attached, planned: Repetition) -> Repetition {
        if planned.times > 1 || now >= self.until || path.repair.loss() < LOSS_MIN {
            return planned;
        }
        Repetition { times: 2, gap: planned.gap.max(spacing(path)) }
    }
}

/// How far apart copies go, at least.
pub fn spacing(path: &Attached) -> Duration {
    path.line().rate.time_for(ByteCount::of(path.payload.unwrap_or_default())) * SPACING_MIN
}
