//! The queue of events that wait to be polled, and their counts.

use super::counts::SyncCounts;
use super::event::{Found, SyncEvent};
use super::hit::Hit;
use crate::quality::BitPosition;
use skyhaul_units::Utc;
use std::collections::VecDeque;

/// Events that wait to be polled, and the counts of all there were.
#[derive(Debug)]
pub(super) struct Reports<T> {
    pub events: VecDeque<SyncEvent<T>>,
    pub counts: SyncCounts,
}

impl<T> Reports<T> {
    pub fn new() -> Self {
        Self { events: VecDeque::new(), counts: SyncCounts::default() }
    }

    /// Lock was reached at this bit.
    pub fn locked(&mut self, position: u64) {
        self.counts.locks += 1;
        self.events.push_back(SyncEvent::Locked(BitPosition::from_bits(position)));
    }

    /// Lock was lost at this bit.
    pub fn lost(&mut self, position: u64) {
        self.counts.losses += 1;
        self.events.push_back(SyncEvent::Lost(BitPosition::from_bits(position)));
    }

    /// The frame at `hit` was found.
    pub fn found(&mut self, hit: Hit, received: Utc, opinion: T) {
        let inverted = hit.polarity.is_inverted();
        self.counts.frames += 1;
        self.counts.inverted += u64::from(inverted);
        self.counts.slips += u64::from(hit.slip != 0);
        self.counts.flywheel += u64::from(hit.flywheel);
        self.counts.marker_errors += u64::from(hit.errors);
        self.events.push_back(SyncEvent::Found(Found {
            position: BitPosition::from_bits(hit.position),
            received,
            marker_errors: hit.errors,
            inverted,
            slip: hit.slip,
            flywheel: hit.flywheel,
            opinion,
        }));
    }
}
