//! The index of open gaps: finds the gap that a frame of another contact fills.

use super::ContactId;
use super::gap::MissingFrames;
use skyhaul_ccsds::id::Channel;
use skyhaul_units::{Duration, FlowId, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// The key of a gap: reception time of the frame before it, contact, number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GapKey {
    received: Utc,
    pub contact: ContactId,
    pub number: u64,
}

impl GapKey {
    pub fn new(gap: &MissingFrames, contact: &ContactId, number: u64) -> Self {
        Self { received: gap.before.received, contact: contact.clone(), number }
    }
}

/// By channel, and by the time of the frame before the gap.
#[derive(Debug, Default)]
pub(super) struct Unfilled(BTreeMap<Channel, BTreeSet<GapKey>>);

/// Most gaps checked for one frame of another contact; if more are open at one time, the refill
/// fills those that are requested.
const LOOKED_AT: usize = 256;

impl Unfilled {
    pub fn insert(&mut self, gap: &MissingFrames, contact: &ContactId, number: u64) {
        let key = GapKey::new(gap, contact, number);
        self.0.entry(gap.channel).or_default().insert(key);
    }

    pub fn remove(&mut self, channel: Channel, key: &GapKey) {
        if let Some(open) = self.0.get_mut(&channel) {
            open.remove(key);
        }
    }

    /// Gaps of a channel in contacts other than `except` that begin no later than `until`, the
    /// latest first.
    pub fn before(
        &self,
        channel: Channel,
        until: Utc,
        except: &ContactId,
    ) -> impl Iterator<Item = &GapKey> {
        let end = GapKey {
            received: until + Duration::from_micros(1),
            contact: ContactId { station: String::new(), flow: FlowId(0) },
            number: 0,
        };
        let open =
            self.0.get(&channel).into_iter().flat_map(move |open| open.range(..end.clone()).rev());
        open.filter(move |key| key.contact != *except).take(LOOKED_AT)
    }

    /// Forgets the gaps of a contact.
    pub fn forget(&mut self, contact: &ContactId) {
        for open in self.0.values_mut() {
            open.retain(|key| key.contact != *contact);
        }
    }
}
