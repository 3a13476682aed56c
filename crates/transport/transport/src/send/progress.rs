//! What of a block was sent, what has arrived, and what must be sent again.

use super::attempts::Attempts;
use crate::ranges::RangeSet;
use skyhaul_units::Instant;

/// Transmission state of one block, in bytes from its start.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes sent at least once, from the start.
    pub sent: u32,
    /// Offset from which symbols were cut for FEC repair, because the transfer nears its end.
    pub coded_from: Option<u32>,
    /// Lost bytes that wait for their retransmission.
    pub retransmit: RangeSet,
    pub attempts: Attempts,
    /// Bytes that a path acknowledged, or that the far end recovered by FEC repair.
    pub arrived: RangeSet,
    /// When a path last acknowledged something new.
    pub last_arrival: Instant,
    /// When a probe of the block was last queued.
    pub probed: Instant,
}

impl Progress {
    /// Bytes that wait to be sent, of a block of `len` bytes.
    pub fn pending(&self, len: u32) -> u64 {
        u64::from(len - self.sent) + self.retransmit.total()
    }

    /// The bytes from `start` to `end` have arrived. Returns whether that was news.
    pub fn acknowledge(&mut self, now: Instant, start: u32, end: u32) -> bool {
        let is_news = self.arrived.insert(start, end) > 0;
        if is_news {
            self.last_arrival = now;
            self.attempts.arrived(start, end);
            self.retransmit.remove(start, end);
        }
        is_news
    }

    /// The far end lacks the bytes from `start` to `end`. Returns whether a path had acknowledged
    /// them.
    pub fn deny(&mut self, now: Instant, start: u32, end: u32) -> bool {
        let was_claimed = start < end && self.arrived.contains(start, end);
        if was_claimed {
            self.arrived.remove(start, end);
            self.last_arrival = now;
        }
        was_claimed
    }

    /// Frees what only an open block needs.
    pub fn clear(&mut self) {
        self.retransmit = RangeSet::default();
        self.attempts = Attempts::default();
        self.arrived = RangeSet::default();
    }
}
