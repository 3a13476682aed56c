//! Detects groups that were overtaken on the line.

use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Which groups were overtaken on the line.
#[derive(Debug, Default)]
pub(super) struct Reordering {
    /// Behind the highest frame that came.
    highest: u64,
    /// The groups of the last [`SIDE_BY_SIDE`] that were the highest when they came, with when: at
    /// most [`RECENT_MAX`].
    recent: VecDeque<(u64, Instant)>,
}

/// Groups are on their way side by side, so that one may be whole before one that was sent before
/// it, without anything having been overtaken on the line: those of 1 ms are gathered, and a host
/// takes what came in one go.
const SIDE_BY_SIDE: Duration = Duration::from_millis(5);
/// Groups remembered for that: more than come meanwhile at 10 Gbit/s.
const RECENT_MAX: usize = 1_024;

impl Reordering {
    /// Behind the highest frame that came.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// The frames from `first` to before `end` came. Returns by how many frames they were
    /// overtaken, if they were.
    pub fn see(&mut self, now: Instant, first: u64, end: u64) -> Option<u64> {
        let is_overtaken = first < self.highest && self.is_overtaken(now, first);
        let by = is_overtaken.then(|| self.highest - first);
        if !is_overtaken && end > self.highest {
            self.note_highest(now, first);
        }
        self.highest = self.highest.max(end);
        by
    }

    /// Whether a group behind this one was there so long ago that both can't have been on their way
    /// side by side.
    fn is_overtaken(&self, now: Instant, first: u64) -> bool {
        // A group that is no longer remembered came longer ago than that.
        let behind = self.recent.iter().find(|(other, _)| *other > first);
        behind.is_none_or(|(_, at)| now.since(*at) > SIDE_BY_SIDE)
    }

    fn note_highest(&mut self, now: Instant, first: u64) {
        let is_old = |at: Instant| now.since(at) > SIDE_BY_SIDE;
        while let Some((_, at)) = self.recent.front()
            && (is_old(*at) || self.recent.len() >= RECENT_MAX)
        {
            self.recent.pop_front();
        }
        self.recent.push_back((first, now));
    }
}
