//! Idle frames: whether a copy of one can be distinguished from the next one.

use super::identity::{Identity, Series};
use std::collections::BTreeMap;

/// The behaviour of the idle frames of each channel.
#[derive(Debug, Default)]
pub(super) struct IdleCounts {
    channels: BTreeMap<Series, IdleCount>,
}

/// The newest count of a channel's idle frames.
#[derive(Debug, Clone, Copy)]
struct IdleCount {
    count: u64,
    /// The count advances from frame to frame; some spacecraft repeat one idle frame without
    /// change.
    goes_on: bool,
}

/// Most channels whose idle frames are followed: as many as a spacecraft has.
const MAX_CHANNELS: usize = 64;

impl IdleCounts {
    /// A frame came.
    pub fn note(&mut self, identity: Option<&Identity>) {
        let Some(Identity { key, is_idle: true, .. }) = identity else { return };
        let channels = self.channels.len();
        match self.channels.get_mut(&key.series) {
            Some(known) => known.goes_on |= known.count != key.count,
            None if channels < MAX_CHANNELS => {
                let count = IdleCount { count: key.count, goes_on: false };
                self.channels.insert(key.series, count);
            }
            None => {}
        }
    }

    /// Whether no other frame has these bytes until the count wraps.
    pub fn is_distinct(&self, identity: &Identity) -> bool {
        !identity.is_idle
            || self.channels.get(&identity.key.series).is_some_and(|known| known.goes_on)
    }
}
