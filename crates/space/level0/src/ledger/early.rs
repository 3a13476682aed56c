//! Frames of a contact that completes another one, which came before the gap that they fill was
//! found there: contacts are read one after the other, and their blocks may overtake each other.

use super::frame::DurableFrame;
use super::gap::MissingFrames;
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::quality::BitPosition;
use std::collections::BTreeMap;

/// Those of one contact.
#[derive(Debug)]
pub(super) struct EarlyFrames(BTreeMap<(Channel, BitPosition), DurableFrame>);

impl EarlyFrames {
    /// None.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Keeps a frame, where there are less than [`EARLY_MAX`] and less than `room`; the gap of
    /// another one is asked for.
    pub fn keep(&mut self, seen: &DurableFrame, room: usize) {
        if self.0.len() < EARLY_MAX.min(room) {
            self.0.insert((seen.channel, seen.place.position), *seen);
        }
    }

    /// Fills a gap that was found with those of its frames that are here. They stay: a ledger that
    /// is restored finds the gap again.
    pub fn fill(&self, gap: &mut MissingFrames) {
        let (before, after) = (gap.before.position, gap.after.position);
        // Positions of several inputs are not in the order of the frames.
        if before < after {
            for (_, seen) in self.0.range((gap.channel, before)..(gap.channel, after)) {
                if gap.spans(seen.place.position) {
                    gap.take(seen.count);
                }
            }
        }
    }

    /// The frames.
    pub fn frames(&self) -> impl Iterator<Item = &DurableFrame> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets them. Returns whether there were any.
    pub fn clear(&mut self) -> bool {
        let any = !self.0.is_empty();
        self.0.clear();
        any
    }
}

/// Early frames kept of a contact, with 60 bytes each on disk: those of 1 s at 32 Mbit/s.
pub(super) const EARLY_MAX: usize = 4_096;
/// Early frames kept of all contacts together: 5 MB.
pub(super) const ALL_EARLY_MAX: usize = 65_536;
