//! Which destinations a spool has, and where each of its flows goes.

use super::destinations::{DestinationId, FlowRoute, SpoolDestination};
use super::flows::KeptFlow;
use super::{Spool, SpoolError};
use crate::FlowId;
use crate::is_full;
use crate::log::Log;
use std::collections::BTreeMap;

/// The destinations of a spool, to be changed.
#[derive(Debug)]
pub struct Subscriptions<'a> {
    spool: &'a mut Spool,
}

impl<'a> Subscriptions<'a> {
    pub(super) const fn of(spool: &'a mut Spool) -> Self {
        Self { spool }
    }

    /// The number of a destination by its name.
    pub fn find(&self, name: &str) -> Option<DestinationId> {
        let mut known = self.spool.queue.flows.table.destinations().iter();
        known.find(|known| known.name == name).map(|known| known.id)
    }

    /// Has exactly these destinations from now on: those that it had under these names keep their
    /// place in each flow, others begin as they say, and one that is not named lets go of all that
    /// was held for it. What a spool without names held is for the first of these that counts.
    /// Returns their numbers, in this order. The change is on the disk when this returns; where the
    /// disk is full, the next [`Spool::free`] that finds room writes it. No flow can be opened
    /// before, and after a crash the change is made anew.
    ///
    /// # Errors
    /// [`SpoolError::Destinations`], [`SpoolError::State`]: nothing is changed.
    pub fn set(&mut self, wanted: &[SpoolDestination]) -> Result<Vec<DestinationId>, SpoolError> {
        let kept = kept_flows(&self.spool.queue.log, |_| true);
        let before = self.spool.queue.flows.kept_copy();
        let set = self.spool.queue.flows.set_destinations(wanted, &kept);
        let ids = set.map_err(SpoolError::from)?;
        let saved = self.spool.queue.flows.save(&*self.spool.room.disk);
        if let Err(source) =
            saved.or_else(|error| if is_full(&error) { Ok(()) } else { Err(error) })
        {
            self.spool.queue.flows.restore(before);
            return Err(self.spool.state_error(source));
        }
        self.spool.queue.routed += 1;
        Ok(ids)
    }

    /// A live flow goes this way from now on: when it is opened, or when it is known of what it is.
    /// A destination that is new to it gets it from its beginning; one that is not named any more
    /// lets go of it. Nothing happens where the flow is not live. The state file follows with the
    /// next [`Spool::free`].
    pub fn route(&mut self, flow: FlowId, route: &FlowRoute) {
        let queue = &mut self.spool.queue;
        let kept = kept_flows(&queue.log, |other| other == flow).remove(&flow);
        if queue.flows.set_route(flow, route, kept) {
            queue.routed += 1;
        }
    }

    /// A live flow goes no more to this destination, which lets go of what it lacks of it. Nothing
    /// happens where the flow does not go there. The state file follows with the next
    /// [`Spool::free`].
    pub fn leave(&mut self, flow: FlowId, to: DestinationId) {
        self.spool.queue.flows.leave(flow, to);
    }
}

/// What the log has of each flow that is asked for.
fn kept_flows(log: &Log, asked: impl Fn(FlowId) -> bool) -> BTreeMap<FlowId, KeptFlow> {
    let mut kept: BTreeMap<FlowId, KeptFlow> = BTreeMap::new();
    for span in log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
        if !asked(span.flow) {
            continue;
        }
        let new = KeptFlow { whole_from: span.first, last: span.last };
        let flow = kept.entry(span.flow).or_insert(new);
        if span.first > flow.last.next() {
            flow.whole_from = span.first;
        }
        flow.last = span.last;
    }
    kept
}

#[cfg(test)]
mod tests;
