//! What is true of the flows, whatever the ends believe.

use skyhaul_store::Seq;
use skyhaul_units::FlowId;
use std::collections::BTreeMap;

/// Every flow that was ever opened.
#[derive(Debug, Default)]
pub struct Truth {
    pub flows: BTreeMap<FlowId, Flow>,
}

/// One flow.
#[derive(Debug, Default)]
pub struct Flow {
    /// What the spool took and has not lost with the power.
    pub appended: Vec<Vec<u8>>,
    /// So many of them were synced: they are promised.
    pub durable: usize,
    /// The centre has promised to keep everything below this place.
    pub promised: Seq,
    /// The centre has processed the whole flow.
    pub processed: bool,
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

    /// The centre tells the station that it keeps everything below `next`.
    pub fn promise(&mut self, flow: FlowId, next: Seq) {
        let known = self.flow(flow);
        if next == Seq::FINISHED {
            assert!(known.processed, "{flow:?} is called finished and is not");
        } else {
            let next = next.0 as usize;
            assert!(
                next <= known.appended.len(),
                "{flow:?}: the centre has {next}, which the station never had"
            );
            // It could be read, so the disk had it: the end of a segment syncs by itself.
            known.durable = known.durable.max(next);
        }
        known.promised = known.promised.max(next);
    }

    /// The flow's record at `seq` reads `payload` in the centre's store.
    pub fn check(&self, flow: FlowId, seq: Seq, payload: &[u8]) {
        let known = &self.flows[&flow].appended;
        let was = usize::try_from(seq.0).ok().and_then(|at| known.get(at));
        assert!(was.is_some_and(|was| was == payload), "{flow:?}, {seq}: not what was captured");
    }
}
