//! Further copies of retransmitted slices, each at a time of its own: the deadlines of their blocks
//! leave no time to learn that a copy was lost.

use crate::inflight::Slice;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Slices with the time at which each is to be sent once more, in the order of that time.
#[derive(Debug, Default)]
pub struct SpacedRetransmits(VecDeque<(Instant, Slice)>);

/// Further copies of slices that wait: at most one datagram each, 12 MB on the line.
const WAITING_MAX: usize = 8_192;

impl SpacedRetransmits {
    /// A slice was retransmitted, and goes out `times` in all, `gap` apart. Returns how many of
    /// these are sent or wait: fewer than `times` where the list is full.
    pub fn add(&mut self, now: Instant, slice: Slice, times: u8, gap: Duration) -> u8 {
        let mut queued = 1;
        while queued < times && self.0.len() < WAITING_MAX {
            let due = now + gap * u64::from(queued);
            let at = self.0.partition_point(|(earlier, _)| *earlier <= due);
            self.0.insert(at, (due, slice));
            queued += 1;
        }
        queued
    }

    /// When the next copy is due.
    pub fn due(&self) -> Option<Instant> {
        self.0.front().map(|(due, _)| *due)
    }

    /// The next copy that is due, with the time at which it was.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Slice)> {
        self.0.pop_front_if(|(due, _)| *due <= now)
    }

    /// What did not fit into the datagram of a copy that was due comes next.
    pub fn put_back(&mut self, due: Instant, rest: Slice) {
        self.0.push_front((due, rest));
    }
}
