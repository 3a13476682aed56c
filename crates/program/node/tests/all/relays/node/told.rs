//! What a node still has to do, where a run locks up.

use super::{Outbound, Process, StoredContact};
use skyhaul_units::FlowId;

impl Process {
    /// What it still has to do, for whoever reads a failure.
    pub fn told(&self) -> String {
        let mut told = format!("retry at {}, held {:?}", self.retry_at, self.held);
        if let Some(Outbound { spool, feeder, .. }) = &self.outbound {
            let flows: Vec<_> = spool.queue().live_flows();
            let extent = |flow: &FlowId| {
                let place = (feeder.place(*flow), feeder.gives(*flow));
                (*flow, spool.queue().extent(feeder.to(), *flow), place)
            };
            let flows: Vec<_> = flows.iter().map(extent).collect();
            let (open, early) = (spool.queue().open_flows(), feeder.early().collect::<Vec<_>>());
            told += &format!(
                "\n  spool of {}: {flows:?}, open {open:?}, early {early:?}, fed {}",
                spool.queue().size(),
                feeder.is_feeding()
            );
        }
        if let Some(inbound) = &self.inbound {
            let open = StoredContact::open_in(&inbound.store);
            let status = |one: &StoredContact| {
                let fate = self.relay.as_ref().map(|relay| relay.fate(one));
                let read = inbound.readers.get(one).map(|read| (read.next, read.is_over));
                (inbound.store.spaces().status(&one.space, one.flow), read, fate)
            };
            let all: Vec<_> = open.iter().map(|one| (one.to_string(), status(one))).collect();
            let queue: Vec<_> = inbound.queue.iter().map(|(_, block)| block.id).collect();
            told += &format!(
                "\n  store of {}: {all:?}, queue {queue:?}, retry at {}, sync at {:?}",
                inbound.store.size(),
                inbound.retry_at,
                inbound.sync_at
            );
        }
        told
    }
}
