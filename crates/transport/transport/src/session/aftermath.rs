//! After a path has failed: for a while, retransmissions go out twice on paths that lose.
//!
//! Symbols in flight on a dead path block everything behind them in their flows. Delivery has
//! paused for as long as the detection took; if a retransmission were lost, the pause would be a
//! round trip longer. A second copy makes that as rare as two losses in a row. It costs at most
//! what the other paths carry in the longest pause and a round trip.
//!
//! While silence is in doubt, earlier retransmissions on that path go out on another path too:
//! delivery has waited for them longer than for anything else there.

use super::attached::Attached;
use super::reports::REPORT_NEWS;
use skyhaul_units::{ByteCount, Duration, Instant, Probability};

/// Until when retransmissions go out twice.
#[derive(Debug, Default)]
pub struct Aftermath {
    until: Instant,
}

/// On a path that loses less than one symbol in a thousand, one copy is enough.
const LOSS_MIN: Probability = Probability::from_ppb(1_000_000);
/// Packets between the two copies at least: two neighbours are more often lost together, since a
/// sender's tick sends several at once.
const SPACING_MIN: u64 = 4;
/// A path is in doubt when the far end lacks this many of its symbols in a row, up to the last that
/// should have arrived.
pub const MISSED_MANY: usize = 2;
/// The same, where one of them is a retransmission: chance seldom takes the same symbol twice.
pub const MISSED_AGAIN: usize = 1;

/// How many copies of a symbol go out, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    pub times: u8,
    pub gap: Duration,
}

impl Aftermath {
    /// A path may be silent: doubles retransmissions until the next report can have arrived.
    pub fn doubt(&mut self, now: Instant) {
        self.until = self.until.max(now + REPORT_NEWS);
    }

    /// A path went silent: doubles retransmissions for the longest `pause` of the other paths.
    pub fn went_silent(&mut self, now: Instant, pause: Duration) {
        self.until = self.until.max(now + pause);
    }

    /// The copies of a retransmission on `path`, where so many were `planned`.
    pub fn copies(&self, now: Instant, path: &Attached, planned: Repetition) -> Repetition {
        if planned.times > 1 || now >= self.until || path.repair.loss() < LOSS_MIN {
            return planned;
        }
        Repetition { times: 2, gap: planned.gap.max(spacing(path)) }
    }
}

/// How far apart copies on a path go at least.
pub fn spacing(path: &Attached) -> Duration {
    path.line().rate.time_for(ByteCount::of(path.payload.unwrap_or_default())) * SPACING_MIN
}
