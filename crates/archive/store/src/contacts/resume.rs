//! The resume state of a station: how far each of its contacts is when a session begins.

use super::Contact;
use super::finished::Finished;
use crate::{FlowId, Seq};
use skyhaul_units::Held;
use std::collections::BTreeMap;

/// What a station need not send again, as the transport's greeting says it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeFlow {
    /// Flows below this number and not in `flows` are finished.
    pub finished_below: FlowId,
    /// Flows, ascending, with the first place that is not durable here; [`Seq::FINISHED`] for one
    /// that is finished. The newest 1,024 finished ones are named; whatever is sent again of others
    /// is a duplicate.
    pub flows: Vec<Held>,
}

impl ResumeFlow {
    /// Of one name space. Nothing that is not durable is in it.
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
