//! A relay between its store and its spool: each contact that it received and that is subscribed to
//! becomes a flow of its spool, block by block, while it still comes in.
//!
//! Custody goes hop by hop: the store gives the receipt to the node before, and only what is
//! durable there is read here, so that nothing is passed on that a power cut would take back. The
//! spool holds the blocks for the nodes behind. A record on the disk says which flow a contact
//! became; how far it is, the spool itself says: a block is the same bytes, one hop longer, at the
//! same place.
//!
//! A contact that was begun is passed on to its end, whatever subscriptions say meanwhile: the far
//! ends are owed its end.

use super::intake::Stamps;
use skyhaul_config::ContactLabel;
use skyhaul_records::ends_contact;
use skyhaul_records::hops::{HOPS_MAX, Hop, HopsError, ring};
use skyhaul_records::payload::{BlockHead, LOST, split_taken};
use skyhaul_store::{
    ContactReader, ContactStore, Disk, LedgerError, LogEntry, LogRecord, RecordDirectory, Seq,
    Spool, StationName, StoreError,
};
use skyhaul_units::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The contacts of a node's store on their way into its spool.
#[derive(Debug)]
pub struct Relay {
    /// The node.
    own: String,
    records: RecordDirectory,
    /// What was found on the disk, by the name of the record, until [`Relay::resume`].
    found: BTreeMap<String, FlowId>,
    damaged: Vec<String>,
    /// Contacts that are open in the store: at most as many as that allows.
    contacts: BTreeMap<StoredContact, Passing>,
}

/// A contact in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredContact {
    /// The name space of the spool that sent it.
    pub space: StationName,
    /// Its flow there.
    pub flow: FlowId,
}

/// What is to be done next for a contact.
#[derive(Debug, PartialEq, Eq)]
pub enum RelayTask {
    /// Nothing, until more of it is durable.
    Wait,
    /// Nothing more: it is passed on, or not to be.
    Settled,
    /// It begins. The answer is [`Relay::begin`] or [`Relay::leave`].
    Route(ContactLabel),
    /// It is not passed on, and why.
    Refuse(HopsError),
    /// This belongs at the end of the flow in the spool.
    Append {
        /// The flow.
        flow: FlowId,
        /// The block.
        payload: Vec<u8>,
    },
    /// All of it was given: the flow is to be closed. The answer is [`Relay::closed`].
    Close(FlowId),
}

/// How far a contact is.
#[derive(Debug)]
enum Passing {
    /// No block was found yet that says what it is of.
    New(ContactReader),
    /// The caller was asked where it goes; this is at its first block.
    Asked(Box<Source>),
    Going(Box<Going>),
    Settled(RelayFate),
}

/// What became of a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayFate {
    /// It is in the spool as a whole.
    Passed,
    /// It is not passed on.
    Left,
}

/// Where the blocks of a contact come from.
#[derive(Debug)]
struct Source {
    hop: Hop,
    reader: ContactReader,
}

/// A contact that is being passed on.
#[derive(Debug)]
struct Going {
    flow: FlowId,
    source: Source,
    /// The next place, in the store as in the spool.
    next: Seq,
    /// A block that was read, where those before it are missing.
    held: Option<LogRecord>,
    is_over: bool,
}

impl Relay {
    /// The relay of the node `own`, which goes on where it was when it ended.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(disk: Arc<dyn Disk>, own: &str) -> Result<Self, LedgerError> {
        let records = RecordDirectory::open(disk, FOLDER)?;
        let loaded = records.load()?;
        let mut damaged = loaded.damaged.clone();
        damaged.extend(records.mend(&loaded)?);
        let mut found = BTreeMap::new();
        for (name, body) in loaded.records {
            match <[u8; 4]>::try_from(&body[..]) {
                Ok(flow) => drop(found.insert(name, FlowId(u32::from_be_bytes(flow)))),
                Err(_) => damaged.push(name),
            }
        }
        let (own, contacts) = (own.to_owned(), BTreeMap::new());
        Ok(Self { own, records, found, damaged, contacts })
    }

    /// The flows that contacts became which may not be passed on as a whole.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.found.values().copied()
    }

    /// Records that were damaged on the disk.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Finds out how far the contacts are that were being passed on when the node ended.
    ///
    /// # Errors
    /// A contact cannot be read.
    pub fn resume(&mut self, store: &ContactStore, spool: &Spool) -> Result<(), StoreError> {
        let open = spool.queue().open_flows();
        for (space, flow) in store.spaces().open_contacts() {
            let contact = StoredContact { space: space.clone(), flow };
            let Some(own) = self.found.get(&contact.record_name()) else { continue };
            let passing = match open.iter().find(|open| open.flow == *own) {
                Some(open) => {
                    let source = Source::of(store, &contact)?;
                    Passing::Going(Box::new(Going::new(source, *own, open.next)))
                }
                None => Passing::Settled(RelayFate::Passed),
            };
            self.contacts.insert(contact, passing);
        }
        Ok(())
    }

    /// Forgets the contacts that are not among `open`, those of the store.
    ///
    /// # Errors
    /// The disk refuses: they are forgotten the next time.
    pub fn keep_only(&mut self, open: &BTreeSet<StoredContact>) -> Result<(), LedgerError> {
        self.contacts.retain(|contact, _| open.contains(contact));
        let names: BTreeSet<String> = match self.found.is_empty() {
            true => return Ok(()),
            false => open.iter().map(StoredContact::record_name).collect(),
        };
        let gone: Vec<String> =
            self.found.keys().filter(|name| !names.contains(*name)).cloned().collect();
        for name in gone {
            self.records.remove(&name)?;
            self.found.remove(&name);
        }
        Ok(())
    }

    /// What became of a contact; none as long as that is open.
    pub fn fate(&self, contact: &StoredContact) -> Option<RelayFate> {
        match self.contacts.get(contact) {
            Some(Passing::Settled(fate)) => Some(*fate),
            _ => None,
        }
    }

    /// What is to be done next for a contact. A block counts as appended once it was returned.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn next(
        &mut self,
        store: &mut ContactStore,
        contact: &StoredContact,
    ) -> Result<RelayTask, StoreError> {
        if !self.contacts.contains_key(contact) {
            let reader = store.reader(&contact.space, contact.flow)?;
            self.contacts.insert(contact.clone(), Passing::New(reader));
        }
        match self.contacts.get_mut(contact) {
            Some(Passing::Going(going)) => going.next(store),
            Some(Passing::New(_)) => self.look(store, contact),
            Some(Passing::Settled(_)) => Ok(RelayTask::Settled),
            Some(Passing::Asked(_)) | None => Ok(RelayTask::Wait),
        }
    }

    /// Reads until a block says what the contact is of.
    fn look(
        &mut self,
        store: &mut ContactStore,
        contact: &StoredContact,
    ) -> Result<RelayTask, StoreError> {
        loop {
            let Some(Passing::New(reader)) = self.contacts.get_mut(contact) else {
                return Ok(RelayTask::Wait);
            };
            let Some(entry) = store.read(reader)? else { return Ok(RelayTask::Wait) };
            let LogEntry::Block(record) = entry else { continue };
            let Ok((head, _)) = BlockHead::decode(payload_of(&record)) else { continue };
            let sender = store.spaces().station_of(&contact.space);
            if ring(&self.own, sender.as_str(), &head.hops).is_some() {
                self.leave(contact);
                return Ok(RelayTask::Settled);
            }
            if head.hops.len() >= HOPS_MAX {
                self.leave(contact);
                return Ok(RelayTask::Refuse(HopsError::TooMany(head.hops.len() + 1)));
            }
            let source = Source::of(store, contact)?;
            self.contacts.insert(contact.clone(), Passing::Asked(Box::new(source)));
            let station = head.hops.into_iter().next();
            let station = station.map_or_else(|| sender.as_str().to_owned(), |hop| hop.node);
            let BlockHead { channel, mission, .. } = head;
            return Ok(RelayTask::Route(ContactLabel { station, channel, mission }));
        }
    }

    /// The contact goes on as `flow`, an empty one. That is durable when this returns.
    ///
    /// # Errors
    /// That cannot be kept: the flow is to be closed, and the contact begins again.
    pub fn begin(&mut self, contact: &StoredContact, flow: FlowId) -> Result<(), LedgerError> {
        let Some(Passing::Asked(source)) = self.contacts.remove(contact) else { return Ok(()) };
        let name = contact.record_name();
        self.records.put(&name, &flow.0.to_be_bytes())?;
        self.found.insert(name, flow);
        let going = Going::new(*source, flow, Seq::FIRST);
        self.contacts.insert(contact.clone(), Passing::Going(Box::new(going)));
        Ok(())
    }

    /// The contact is not passed on.
    pub fn leave(&mut self, contact: &StoredContact) {
        self.contacts.insert(contact.clone(), Passing::Settled(RelayFate::Left));
    }

    /// The contact could not begin: it is looked at from its beginning once more.
    pub fn again(&mut self, contact: &StoredContact) {
        self.contacts.remove(contact);
    }

    /// The contact's flow is closed, durably.
    pub fn closed(&mut self, contact: &StoredContact) {
        self.contacts.insert(contact.clone(), Passing::Settled(RelayFate::Passed));
    }
}

/// Why a contact cannot be passed on now.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Which flow it became cannot be kept.
    #[error(transparent)]
    Record(#[from] LedgerError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl std::fmt::Display for StoredContact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.space, self.flow)
    }
}

impl StoredContact {
    /// The contacts that are open in the store.
    pub fn open_in(store: &ContactStore) -> BTreeSet<Self> {
        let open = store.spaces().open_contacts();
        open.map(|(space, flow)| Self { space: space.clone(), flow }).collect()
    }

    /// The name of its record.
    fn record_name(&self) -> String {
        format!("{}-{:08x}", self.space, self.flow.0)
    }
}

impl Source {
    fn of(store: &ContactStore, contact: &StoredContact) -> Result<Self, StoreError> {
        let sender = store.spaces().station_of(&contact.space);
        Ok(Self {
            hop: Hop { node: sender.as_str().to_owned(), flow: contact.flow },
            reader: store.reader(&contact.space, contact.flow)?,
        })
    }
}

impl Going {
    const fn new(source: Source, flow: FlowId, next: Seq) -> Self {
        Self { flow, source, next, held: None, is_over: false }
    }

    fn next(&mut self, store: &mut ContactStore) -> Result<RelayTask, StoreError> {
        if self.is_over {
            return Ok(RelayTask::Close(self.flow));
        }
        loop {
            let record = match self.held.take() {
                Some(record) => record,
                None => match store.read(&mut self.source.reader)? {
                    None => return Ok(RelayTask::Wait),
                    Some(LogEntry::Block(record)) => record,
                    Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) => continue,
                },
            };
            let payload = if record.seq > self.next {
                // The store could not read what is between: it is passed on as lost.
                self.held = Some(record);
                passed_on(LOST, &self.source.hop)
            } else {
                let payload = payload_of(&record);
                self.is_over = ends(payload);
                if record.seq < self.next {
                    // The spool had it before the node ended.
                    if self.is_over {
                        return Ok(RelayTask::Close(self.flow));
                    }
                    continue;
                }
                passed_on(payload, &self.source.hop)
            };
            self.next = self.next.next();
            return Ok(RelayTask::Append { flow: self.flow, payload });
        }
    }
}

/// A block with one hop more. One that cannot be read is passed on as lost, so that those behind it
/// can follow.
fn passed_on(payload: &[u8], hop: &Hop) -> Vec<u8> {
    let lost = |_| BlockHead::passed_on(LOST, hop.clone()).unwrap_or_else(|_| LOST.to_vec());
    BlockHead::passed_on(payload, hop.clone()).unwrap_or_else(lost)
}

/// What the sender's spool held of a record of the store.
fn payload_of(record: &LogRecord) -> &[u8] {
    let wire = Stamps::split(&record.payload).map(|(_, wire)| wire);
    let payload = wire.and_then(|wire| split_taken(wire).ok()).map(|(_, payload)| payload);
    payload.unwrap_or_default()
}

/// Whether a block is the last of its contact.
fn ends(payload: &[u8]) -> bool {
    BlockHead::decode(payload)
        .ok()
        .and_then(|(_, content)| content.records().ok().map(|records| ends_contact(&records)))
        .unwrap_or_default()
}

const FOLDER: &str = "relay";

#[cfg(test)]
mod tests;
