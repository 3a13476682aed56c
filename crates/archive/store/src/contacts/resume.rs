//! What a station is told when a session begins: how far each of its contacts is.

use super::{NameSpaces, StationName};
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

impl NameSpaces {
    /// What the station need not send again. Nothing that is not durable is in it.
    pub fn resume(&self, station: &StationName) -> ResumeFlow {
        let Some(station) = self.get(station) else {
            return ResumeFlow::default();
        };
        let finished =
            station.finished.newest().map(|(flow, last)| Held { flow, next: Seq::FINISHED, last });
        let open = station.open.iter().map(|(flow, contact)| Held {
            flow: *flow,
            next: contact.durable,
            last: contact.marks.durable,
        });
        let flows: BTreeMap<FlowId, Held> =
            finished.chain(open).map(|held| (held.flow, held)).collect();
        ResumeFlow {
            finished_below: station.finished.prefix_end(),
            flows: flows.into_values().collect(),
        }
    }
}
