//! Bounds what is removed in a day, so that a wrong rule is seen before all is gone.

use super::RetentionFigures;
use skyhaul_units::{Duration, Instant};

/// What one rule removed in a day of the node's own running time: that is no calendar day, and no
/// clock can change it. A restart begins a new one.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetentionShare {
    since: Option<Instant>,
    removed: u64,
}

const DAY: Duration = Duration::from_secs(86_400);
/// So many may always leave.
const LEAST: u64 = 100;
/// A tenth of all may leave beside as many as came.
const PART: u64 = 10;

impl RetentionShare {
    /// How many may leave now of the items of the rule. Where as many leave as come, the archive
    /// keeps its size; the tenth lets it shrink.
    pub fn room(&mut self, now: Instant, figures: RetentionFigures) -> u64 {
        if self.since.is_none_or(|since| now.since(since) >= DAY) {
            *self = Self { since: Some(now), removed: 0 };
        }
        // Those that left are of the whole.
        let all = figures.items.saturating_add(self.removed);
        let most = figures.recent.saturating_add((all / PART).max(LEAST));
        most.saturating_sub(self.removed)
    }

    /// So many left.
    pub const fn took(&mut self, items: u64) {
        self.removed = self.removed.saturating_add(items);
    }
}
