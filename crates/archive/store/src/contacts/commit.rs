//! Group commit over all contacts, and the receipts that it allows.

use super::{ContactStore, FlowId, Key, Seq, StationName};
use crate::log::{LogError, SyncHandle, Synced};
use skyhaul_units::BlockMark;

/// The syncs that are due, of all contacts. They may run on any thread.
#[derive(Debug)]
pub struct ContactSync(Vec<Due<SyncHandle>>);

/// Syncs that have run. Pass them to [`ContactStore::synced`].
#[derive(Debug)]
pub struct ContactSynced(Vec<Due<Synced>>);

/// The records that a sync of one contact makes durable.
#[derive(Debug)]
struct Due<T> {
    key: Key,
    next: Seq,
    last: BlockMark,
    sync: Option<T>,
}

/// The station's records of the flow before `next` are on this disk: the station need not keep
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The station.
    pub station: StationName,
    /// The flow.
    pub flow: FlowId,
    /// The first place that is not durable.
    pub next: Seq,
}

/// What a group commit brought.
#[derive(Debug, Default)]
pub struct ContactCommit {
    /// One for each contact with a successful sync.
    pub receipts: Vec<Receipt>,
    /// Contacts whose sync failed: they accept no more records until the store is opened again.
    pub failed: Vec<(StationName, FlowId, LogError)>,
}

impl ContactSync {
    /// Waits until the disk has everything.
    pub fn sync(self) -> ContactSynced {
        let run = |due: Due<SyncHandle>| {
            let Due { key, next, last, sync } = due;
            Due { key, next, last, sync: sync.map(SyncHandle::sync) }
        };
        ContactSynced(self.0.into_iter().map(run).collect())
    }
}

impl ContactStore {
    /// The syncs that make everything appended so far durable; `None` where it is.
    pub fn sync_handle(&self) -> Option<ContactSync> {
        let mut handles = Vec::new();
        for (name, flow, contact) in self.spaces.contacts() {
            // The end of a segment syncs by itself, so that a receipt may be due without a sync.
            if contact.durable < contact.next {
                let (key, last) = ((name.clone(), flow), contact.marks.last);
                let sync = contact.log.sync_handle();
                handles.push(Due { key, next: contact.next, last, sync });
            }
        }
        (!handles.is_empty()).then_some(ContactSync(handles))
    }

    /// Takes the results of the syncs: readers see the durable records, and receipts are due.
    pub fn synced(&mut self, synced: ContactSynced) -> ContactCommit {
        let mut commit = ContactCommit::default();
        for Due { key: (name, flow), next, last, sync: outcome } in synced.0 {
            // Finished meanwhile: its receipt was returned then.
            let Some(contact) = self.spaces.contact_mut(&name, flow) else {
                continue;
            };
            match outcome.map_or(Ok(()), |outcome| contact.log.synced(outcome)) {
                Ok(()) => {
                    if next > contact.durable {
                        (contact.durable, contact.marks.durable) = (next, last);
                    }
                    commit.receipts.push(Receipt { station: name, flow, next: contact.durable });
                }
                Err(error) => commit.failed.push((name, flow, error)),
            }
        }
        commit
    }

    /// Makes everything appended so far durable, and waits for it.
    pub fn sync(&mut self) -> ContactCommit {
        self.sync_handle().map_or_else(ContactCommit::default, |handle| self.synced(handle.sync()))
    }
}
