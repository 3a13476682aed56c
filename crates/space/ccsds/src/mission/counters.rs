//! Which applications share a sequence counter.
//!
//! Each application counts its own packets (CCSDS 133.0-B-2 4.1.3.4.3), but some instruments have
//! one counter for all their applications: a packet has the next count after the previous packet of
//! any of them.

use super::{ApidRange, ProductGroup, TimeRule};
use crate::id::Apid;

/// The sequence counters of a mission's packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Ranges of applications that share a counter; no application is in two.
    shared: Vec<Vec<ApidRange>>,
}

impl Counters {
    /// The application that identifies the counter of `apid`: the first one listed of those that
    /// share it, or `apid` itself.
    pub fn of(&self, apid: Apid) -> Apid {
        let shared = self.shared.iter().find(|ranges| covers(ranges, apid));
        shared.and_then(|ranges| ranges.first()).map_or(apid, |range| range.first)
    }

    /// Adds a counter that the applications of `ranges` share.
    ///
    /// # Errors
    /// Says what is wrong, and what would be right.
    pub(super) fn share(
        &mut self,
        ranges: Vec<ApidRange>,
        times: &[TimeRule],
        products: &[ProductGroup],
    ) -> Result<(), String> {
        let mut members: Vec<Apid> = Vec::new();
        for value in ranges.iter().flat_map(|range| range.first.value()..=range.last.value()) {
            let apid = Apid::new(value).expect("it lies between two application ids");
            if self.shared.iter().any(|known| covers(known, apid)) || members.contains(&apid) {
                return Err(format!(
                    "application {apid} is listed twice; a packet has one counter"
                ));
            }
            members.push(apid);
        }
        let (Some(first), true) = (members.first().copied(), members.len() > 1) else {
            return Err(
                "a counter is shared by two applications or more; leave out one that is alone"
                    .into(),
            );
        };
        let place = |apid: Apid| -> Vec<bool> {
            let is_timed =
                times.iter().find(|rule| covers(&rule.apids, apid)).map(|rule| rule.code.is_some());
            let listed =
                products.iter().map(|group| group.apids.is_empty() || covers(&group.apids, apid));
            listed.chain([is_timed.unwrap_or(false)]).collect()
        };
        let expected = place(first);
        if let Some(other) = members.iter().find(|apid| place(**apid) != expected) {
            return Err(format!(
                "applications {first} and {other} share a counter but not a product, so that each \
                product would \
                 miss the other's packets; put all of them into one product, all with a time or \
                 all without"
            ));
        }
        self.shared.push(ranges);
        Ok(())
    }
}

fn covers(ranges: &[ApidRange], apid: Apid) -> bool {
    ranges.iter().any(|range| range.contains(apid))
}
