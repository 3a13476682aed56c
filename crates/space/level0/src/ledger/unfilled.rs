//! The index of open gaps: finds the gap that a frame of another contact fills.

use super::ContactId;
use super::gap::MissingFrames;
use skyhaul_ccsds::id::Channel;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Where a gap is in its contact: reception time of the frame before it, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GapPlace {
    received: Utc,
    pub number: u64,
}

/// The open gaps of a channel. By contact, because the frames of one with many gaps are looked for
/// in those of others alone.
type OpenGaps = BTreeMap<ContactId, BTreeSet<GapPlace>>;

#[derive(Debug, Default)]
pub(super) struct Unfilled(BTreeMap<Channel, OpenGaps>);

/// Most gaps checked for one frame of another contact; if more are open at one time, the refill
/// fills those that are requested.
const LOOKED_AT: usize = 256;

impl Unfilled {
    pub fn insert(&mut self, gap: &MissingFrames, contact: &ContactId, number: u64) {
        let place = GapPlace { received: gap.before.received, number };
        let open = self.0.entry(gap.channel).or_default();
        open.entry(contact.clone()).or_default().insert(place);
    }

    pub fn remove(&mut self, channel: Channel, contact: &ContactId, place: GapPlace) {
        let Some(open) = self.0.get_mut(&channel) else { return };
        let Some(places) = open.get_mut(contact) else { return };
        places.remove(&place);
        if places.is_empty() {
            open.remove(contact);
        }
    }

    /// Gaps of a channel in these contacts that begin no later than `until`, the latest first.
    pub fn before(
        &self,
        channel: Channel,
        until: Utc,
        is_meant: impl Fn(&ContactId) -> bool,
    ) -> impl Iterator<Item = (&ContactId, GapPlace)> {
        let end = GapPlace { received: until, number: u64::MAX };
        let open = self.0.get(&channel).into_iter().flatten();
        let mut contacts: Vec<_> = open
            .filter(|(contact, _)| is_meant(contact))
            .map(|(contact, places)| (contact, places.range(..=end).rev()))
            .collect();
        let latest = contacts.iter_mut().enumerate();
        let mut latest: BinaryHeap<(Utc, usize, u64)> = latest
            .filter_map(|(nth, (_, left))| left.next().map(|at| (at.received, nth, at.number)))
            .collect();
        core::iter::from_fn(move || {
            let (received, nth, number) = latest.pop()?;
            let (contact, left) = contacts.get_mut(nth)?;
            latest.extend(left.next().map(|at| (at.received, nth, at.number)));
            Some((*contact, GapPlace { received, number }))
        })
        .take(LOOKED_AT)
    }

    /// Forgets the gaps of a contact.
    pub fn forget(&mut self, contact: &ContactId) {
        for open in self.0.values_mut() {
            open.remove(contact);
        }
    }
}
