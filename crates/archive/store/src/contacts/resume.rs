//! The resume state of a station: the progress of each of its contacts when a session begins.

use super::Contact;
use super::finished::Finished;
use crate::{FlowId, Seq};
use skyhaul_units::Held;
use std::collections::BTreeMap;

/// The data that a station need not send again, in the form of the transport's greeting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeFlow {
    /// Flows below this number and not in `flows` are finished.
    pub finished_below: FlowId,
    /// Flows, ascending, with the first place that is not durable here; [`Seq::FINISHED`] for one
    /// that is finished. The newest 1,024 finished ones are named; repetitions of others are
    /// duplicates.
    pub flows: Vec<Held>,
}

impl ResumeFlow {
    /// The resume state of one name space. It has durable data only.
    pub(super) fn of(finished: &Finished, open: &BTreeMap<FlowId, Contact>) -> Self {
        let ended = finished.newest().map(|(flow, last)| Held { flow, next: Seq::FINISHED, last });
        let open = open.iter().map(|(flow, contact)| Held {
            flow: *flow,
            next: contact.durable,
            last: contact.marks.durable,
        });
        let flows: BTreeMap<FlowId, Held> =
            ended.chain(open).map(|held| (held.flow, held)).collect();
        Self { finished_below: finished.prefix_end(), flows: flows.into_values().collect() }
    }
}
