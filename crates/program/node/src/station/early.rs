//! Contacts that a destination finished before they ended, on their way to the spool's thread.

use skyhaul_store::{DestinationId, Seq};
use skyhaul_units::FlowId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The contacts that a destination finished while they were open: at most the spool's live flows
/// for each destination.
#[derive(Debug, Default)]
pub struct EarlyFinishes(Mutex<BTreeMap<FlowId, BTreeMap<DestinationId, Seq>>>);

impl EarlyFinishes {
    fn state(&self) -> MutexGuard<'_, BTreeMap<FlowId, BTreeMap<DestinationId, Seq>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A destination says that it has all of an open flow, of which it was sent what is below
    /// `sent`.
    pub fn note(&self, flow: FlowId, to: DestinationId, sent: Seq) {
        self.state().entry(flow).or_default().insert(to, sent);
    }

    /// Nothing is to be done about a flow and a destination any more.
    pub fn forget(&self, flow: FlowId, to: DestinationId) {
        let mut state = self.state();
        if let Some(of) = state.get_mut(&flow) {
            of.remove(&to);
            if of.is_empty() {
                state.remove(&flow);
            }
        }
    }

    /// Takes what is noted of a flow.
    pub fn take(&self, flow: FlowId) -> BTreeMap<DestinationId, Seq> {
        self.state().remove(&flow).unwrap_or_default()
    }
}
