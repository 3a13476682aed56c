//! What is true of the flows, whatever the ends believe.

use skyhaul_records::payload::LOST;
use skyhaul_store::{Seq, Settle, StationName};
use skyhaul_units::FlowId;
use std::collections::{BTreeMap, BTreeSet};

/// What one spool ever held, from the first of those that it was copied from on.
#[derive(Debug, Default, Clone)]
pub struct Truth {
    pub flows: BTreeMap<FlowId, Flow>,
}

/// One flow.
#[derive(Debug, Default, Clone)]
pub struct Flow {
    /// What the spool took and has not lost with the power.
    pub appended: Vec<Vec<u8>>,
    /// So many of them were synced: they are promised.
    pub durable: usize,
    /// When a destination's receipt lets the spool free it.
    pub settle: Settle,
}

/// What the centre has said and done.
#[derive(Debug, Default, Clone)]
pub struct Deeds {
    pub contacts: BTreeMap<(StationName, FlowId), Contact>,
}

/// A contact at the centre.
#[derive(Debug, Default, Clone)]
pub struct Contact {
    /// The centre has promised to keep everything below this place.
    pub promised: Seq,
    /// The centre has processed the whole contact.
    pub processed: bool,
    /// What was read of it.
    pub records: Vec<Vec<u8>>,
}

impl Flow {
    /// Whether the last record is there.
    pub fn is_final(&self) -> bool {
        self.appended.last().is_some_and(|payload| is_final(payload))
    }
}

/// Whether this is a flow's last record.
pub fn is_final(payload: &[u8]) -> bool {
    payload.first() == Some(&FINAL)
}

/// The first byte of a flow's last record; others have another.
pub const FINAL: u8 = 0xf1;

impl Truth {
    pub fn flow(&mut self, flow: FlowId) -> &mut Flow {
        self.flows.entry(flow).or_default()
    }

    /// Whether a contact that reads so is this spool's as far as it goes. What its disk did not
    /// keep for a second time was told.
    fn has(&self, flow: FlowId, records: &[Vec<u8>]) -> bool {
        let Some(known) = self.flows.get(&flow) else { return false };
        let same = |(ours, theirs): (&Vec<u8>, &Vec<u8>)| ours == theirs || theirs == LOST;
        records.len() <= known.appended.len() && known.appended.iter().zip(records).all(same)
    }
}

impl Deeds {
    pub fn contact(&mut self, space: &StationName, flow: FlowId) -> &mut Contact {
        self.contacts.entry((space.clone(), flow)).or_default()
    }

    /// The centre tells a station that it keeps everything below `next`.
    pub fn promise(&mut self, space: &StationName, flow: FlowId, next: Seq) {
        let known = self.contact(space, flow);
        assert!(
            next != Seq::FINISHED || known.processed,
            "{space} {flow:?} is called finished and is not"
        );
        known.promised = known.promised.max(next);
    }

    /// A contact is of one spool, whatever came under the same number.
    pub fn check(&self, spools: &[Truth]) {
        for ((space, flow), contact) in &self.contacts {
            let is_ones = contact.records.is_empty()
                || spools.iter().any(|spool| spool.has(*flow, &contact.records));
            assert!(is_ones, "{space} {flow:?}: a contact of several");
        }
    }

    /// Everything that a spool held at last is at the centre, in a contact that was processed.
    pub fn lacks(&self, spool: &Truth) -> Option<String> {
        for (flow, known) in &spool.flows {
            let its: Vec<&Contact> = self
                .contacts
                .iter()
                .filter(|((_, other), _)| other == flow)
                .map(|(_, contact)| contact)
                .collect();
            let whole: BTreeSet<usize> = its
                .iter()
                .filter(|contact| contact.processed || contact.promised > Seq::FIRST)
                .flat_map(|contact| contact.records.iter().enumerate())
                .filter(|(at, record)| known.appended.get(*at) == Some(*record))
                .map(|(at, _)| at)
                .collect();
            if whole.len() < known.appended.len() {
                return Some(format!(
                    "{flow:?}: {} of {} are at the centre",
                    whole.len(),
                    known.appended.len()
                ));
            }
            let ends = its.iter().any(|contact| {
                contact.processed && contact.records.last() == known.appended.last()
            });
            if known.is_final() && !ends {
                return Some(format!("{flow:?}: its end was not processed"));
            }
        }
        None
    }
}
