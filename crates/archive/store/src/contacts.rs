//! The centre's contact store: the records of each contact, and the position up to which receipts
//! are allowed.
//!
//! ```text
//! contacts/STATION/spool               whose contacts these are: `spaces`
//! contacts/STATION/finished            flows that are processed: ranges, and the marks of the last
//!                                      blocks
//! contacts/STATION/0000002a/           one contact: a log of its own, and ...
//! contacts/STATION/0000002a/finished   ... when it was finished
//! ```
//!
//! Each record is taken once, in the order of its flow. A receipt for it is allowed after a
//! successful sync that began after the record was written. Every repetition of a record of a
//! finished flow counts as a duplicate, without a time limit. The data of a finished contact stays
//! until its owner releases it, or until space is needed.
//!
//! Memory: 170 bytes for each segment of an open contact's log, for at most [`MAX_OPEN_CONTACTS`]
//! contacts; 120 bytes for each finished contact with data, at most [`MAX_KEPT_CONTACTS`]; 8 bytes
//! for each range of finished flows.

mod commit;
mod error;
mod finished;
mod jam;
mod kept;
mod limits;
mod load;
mod name;
mod resume;
mod spaces;

use crate::log::{
    DamagedRange, Log, LogConfig, LogCursor, LogEntry, LogError, NewRecord, block_size,
};
use crate::publish::save_state;
use crate::room::Room;
use crate::{FlowId, MAX_PAYLOAD, Seq, mark};
use kept::{Kept, Removed};
use limits::NEW_CONTACT;
use skyhaul_units::{BlockMark, ByteCount, Utc};
use std::collections::btree_map::Entry;
use std::io;

pub use commit::{ContactCommit, ContactSync, ContactSynced, Receipt};
pub use error::StoreError;
pub use jam::StoreJam;
pub use kept::{KeptContact, KeptContacts, KeptReader};
pub use limits::{MAX_KEPT_CONTACTS, MAX_OPEN_CONTACTS, MAX_SPOOLS};
pub use name::{StationName, StationNameError};
pub use resume::ResumeFlow;
pub use spaces::{ContactSpace, NameSpaces, SpoolKnown, SpoolSender, SpoolState};

/// The settings of a contact store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContactConfig {
    /// A segment is closed before it grows beyond this. Default 64 MiB.
    pub segment_size: ByteCount,
    /// The space for all contacts together. Default 64 GiB.
    pub max_size: ByteCount,
    /// The space that stays free on the file system. Default 64 MiB.
    pub reserve: ByteCount,
    /// Bytes that the caller puts before the station's data in each record: marks cover only the
    /// data after them. Default 0.
    pub preface: usize,
}

impl Default for ContactConfig {
    fn default() -> Self {
        Self {
            segment_size: ByteCount::mib(64),
            max_size: ByteCount::mib(64 << 10),
            reserve: ByteCount::mib(64),
            preface: 0,
        }
    }
}

/// A record that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedRecord<'a> {
    /// Who sent it.
    pub station: &'a StationName,
    /// The station's flow.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
    /// When it arrived.
    pub received: Utc,
    /// What it holds.
    pub payload: &'a [u8],
}

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It was appended.
    New,
    /// It was stored before, and is not stored again.
    Duplicate,
}

/// How far a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowStatus {
    /// Nothing of it ever arrived.
    Unknown,
    /// It is being received.
    Open {
        /// The place that must come next.
        next: Seq,
        /// The first place that is not durable.
        durable: Seq,
    },
    /// It is processed; every repetition is a duplicate.
    Finished,
}

/// The counts of a contact store since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContactStats {
    /// Records appended.
    pub appended: u64,
    /// Payload bytes appended.
    pub bytes: ByteCount,
    /// Records that were there before.
    pub duplicates: u64,
    /// Records refused because of no room.
    pub refused: u64,
    /// Finished contacts whose data was removed by order.
    pub removed: u64,
    /// Finished contacts whose data was removed because space was needed.
    pub removed_early: u64,
    /// Bytes after the last valid record that were cut off when the logs were opened.
    pub torn: ByteCount,
    /// Damaged records that were mended.
    pub mended: u64,
    /// State files with one damaged copy: the other one was used.
    pub state_mended: u64,
}

/// The centre's contact store.
#[derive(Debug)]
pub struct ContactStore {
    room: Room,
    config: ContactConfig,
    spaces: NameSpaces,
    /// Finished contacts whose data is there.
    kept: KeptContacts,
    stats: ContactStats,
    /// The newest damage that was met.
    damage: Option<DamagedRange>,
}

/// A contact: its station and its flow.
type Key = (StationName, FlowId);

#[derive(Debug)]
struct Contact {
    log: Log,
    next: Seq,
    durable: Seq,
    /// The mark of the last record, and of the last durable one.
    marks: Marks,
    /// Records that its log has mended, up to those already counted.
    mended: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    last: BlockMark,
    durable: BlockMark,
}

/// A position in one contact's records. Holds one open file.
#[derive(Debug)]
pub struct ContactReader {
    key: Key,
    cursor: LogCursor,
}

impl ContactStore {
    /// Appends a received record. A receipt for it is allowed after the next sync.
    ///
    /// # Errors
    /// [`StoreError::Full`]: nothing was written, try again later. [`StoreError::Gap`] if it is not
    /// the next one; [`StoreError::TooManyContacts`], [`StoreError::Log`].
    pub fn append(&mut self, arrival: ArrivedRecord<'_>) -> Result<Appended, StoreError> {
        let (station, flow, got) = (arrival.station, arrival.flow, arrival.seq);
        let expected = match self.spaces.status(station, flow) {
            FlowStatus::Unknown => Seq::FIRST,
            FlowStatus::Open { next, .. } => next,
            FlowStatus::Finished => Seq::FINISHED,
        };
        if got < expected {
            self.stats.duplicates += 1;
            return Ok(Appended::Duplicate);
        }
        if got > expected {
            return Err(StoreError::Gap { station: station.clone(), flow, expected, got });
        }
        let size = ByteCount::of(arrival.payload.len());
        if size > MAX_PAYLOAD {
            return Err(LogError::TooLarge { size }.into());
        }
        loop {
            match self.try_append(&arrival) {
                Ok(()) => {
                    self.stats.appended += 1;
                    self.stats.bytes += size;
                    return Ok(Appended::New);
                }
                Err(StoreError::Full { .. }) if self.kept.remove_oldest()? => {}
                Err(error) => {
                    self.stats.refused += u64::from(matches!(error, StoreError::Full { .. }));
                    return Err(error);
                }
            }
        }
    }

    fn try_append(&mut self, arrival: &ArrivedRecord<'_>) -> Result<(), StoreError> {
        let size = ByteCount::of(arrival.payload.len());
        let open = self.spaces.contact(arrival.station, arrival.flow);
        let needed = open
            .map_or(block_size(size) + NEW_CONTACT, |contact| contact.log.segments().growth(size));
        let shortage = self.room.shortage(needed, self.size());
        if needed > shortage.available {
            return Err(shortage.into());
        }
        let record = NewRecord {
            flow: arrival.flow,
            seq: arrival.seq,
            written: arrival.received,
            payload: arrival.payload,
        };
        let preface = self.config.preface;
        let contact = self.contact(arrival.station, arrival.flow, Seq::FIRST)?;
        match contact.log.append(record) {
            Ok(_) => {
                contact.next = arrival.seq.next();
                contact.marks.last = mark_behind(preface, arrival.payload);
                self.spaces.entry(arrival.station).taken += 1;
                Ok(())
            }
            Err(LogError::Full { .. }) => Err(shortage.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a contact of which the station has only the records from `first` on, because the
    /// earlier ones are lost at both ends. A known contact is left as it is. Before its first
    /// record, this is forgotten at a restart.
    ///
    /// # Errors
    /// [`StoreError::TooManyContacts`], [`StoreError::Full`], [`StoreError::Log`].
    pub fn begin_at(
        &mut self,
        station: &StationName,
        flow: FlowId,
        first: Seq,
    ) -> Result<(), StoreError> {
        if self.spaces.status(station, flow) == FlowStatus::Unknown {
            self.contact(station, flow, first)?;
        }
        Ok(())
    }

    /// A reader at the contact's first record.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`].
    pub fn reader(&self, station: &StationName, flow: FlowId) -> Result<ContactReader, StoreError> {
        let key = (station.clone(), flow);
        match self.spaces.contact(station, flow) {
            Some(contact) => Ok(ContactReader { key, cursor: contact.log.start() }),
            None => Err(StoreError::NotOpen { station: key.0, flow }),
        }
    }

    /// The contact's next durable record, or damage; `None` if all durable records were read: read
    /// again after a sync.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] where the contact was finished meanwhile; [`StoreError::Log`].
    pub fn read(&mut self, reader: &mut ContactReader) -> Result<Option<LogEntry>, StoreError> {
        let (station, flow) = &reader.key;
        let Some(contact) = self.spaces.contact_mut(station, *flow) else {
            return Err(StoreError::NotOpen { station: station.clone(), flow: *flow });
        };
        let item = loop {
            match contact.log.read(&mut reader.cursor)? {
                Some(LogEntry::SegmentEnd(_)) => {}
                other => break other,
            }
        };
        let (stats, damage) = (contact.log.stats(), contact.log.damages().last().cloned());
        if stats.mended > contact.mended {
            self.stats.mended += stats.mended - contact.mended;
            contact.mended = stats.mended;
            self.damage = damage;
        }
        Ok(item)
    }

    /// The newest damage that was mended: nothing is lost, but the disk is faulty.
    pub fn mended(&self) -> Option<&DamagedRange> {
        self.damage.as_ref()
    }

    /// The contact is processed: its products are published. From now on, records of its flow are
    /// duplicates. Syncs; after success, a receipt for the whole flow is due.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`]; [`StoreError::Full`] or [`StoreError::State`] where that cannot be
    /// made durable now: the contact stays open, try again. [`StoreError::TooManyHoles`],
    /// [`StoreError::Log`].
    pub fn finish(
        &mut self,
        station: &StationName,
        flow: FlowId,
        now: Utc,
    ) -> Result<Receipt, StoreError> {
        let not_open = || StoreError::NotOpen { station: station.clone(), flow };
        let state = self.spaces.get_mut(station).ok_or_else(not_open)?;
        let contact = state.open.get_mut(&flow).ok_or_else(not_open)?;
        contact.log.sync()?;
        let size = contact.log.segments().size();
        let mut finished = state.finished.clone();
        if !finished.insert(flow, contact.marks.last) {
            return Err(StoreError::TooManyHoles { station: station.clone() });
        }
        let (parent, dir) = (station_dir(station), contact_dir(station, flow));
        save_state(&*self.room.disk, &dir, FINISHED_NAME, &now.as_micros().to_be_bytes())
            .and_then(|()| save_state(&*self.room.disk, &parent, FINISHED_NAME, &finished.encode()))
            .map_err(|source| {
                StoreError::state(
                    format!("{parent}/{FINISHED_NAME}"),
                    source,
                    &self.room,
                    self.size(),
                )
            })?;
        let state = self.spaces.get_mut(station).expect("found above");
        state.finished = finished;
        state.open.remove(&flow);
        self.kept.insert((station.clone(), flow), Kept { size, finished: now });
        while self.kept.len() > MAX_KEPT_CONTACTS && self.kept.remove_oldest()? {}
        Ok(Receipt { station: station.clone(), flow, next: Seq::FINISHED })
    }

    /// Removes the data of finished contacts; those that are held stay. Returns the bytes freed.
    ///
    /// # Errors
    /// [`StoreError::State`] where the disk refuses to remove a file.
    pub fn release(&mut self, contacts: &[(StationName, FlowId)]) -> Result<ByteCount, StoreError> {
        self.kept.release(contacts)
    }

    /// Replaces the limit of space.
    pub fn set_max_size(&mut self, max_size: ByteCount) {
        self.room.max_size = max_size;
    }

    /// The space that the contacts use on the disk.
    pub fn size(&self) -> ByteCount {
        self.spaces.open_size() + self.kept.size()
    }

    /// Checks that the store's folder is still in place. Call it about once a second, and before a
    /// receipt without a preceding sync.
    ///
    /// # Errors
    /// As [`Spool::in_place`](crate::Spool::in_place): no further receipts are allowed.
    pub fn in_place(&self) -> io::Result<()> {
        self.room.disk.in_place()
    }

    /// The name spaces of the stations' spools, and the contacts in them.
    pub const fn spaces(&self) -> &NameSpaces {
        &self.spaces
    }

    /// The finished contacts with data.
    pub const fn kept(&self) -> &KeptContacts {
        &self.kept
    }

    /// Holds these contacts and no others: their data stays, even if space is needed. This is
    /// forgotten at a restart: hold them again before the first append.
    pub fn hold(&mut self, contacts: impl IntoIterator<Item = (StationName, FlowId)>) {
        self.kept.hold(contacts.into_iter().collect());
    }

    /// Counters.
    pub fn stats(&self) -> ContactStats {
        let Removed { due, early, .. } = self.kept.removed();
        ContactStats { removed: *due, removed_early: *early, ..self.stats }
    }

    fn contact(
        &mut self,
        station: &StationName,
        flow: FlowId,
        first: Seq,
    ) -> Result<&mut Contact, StoreError> {
        let open = self.spaces.open_count();
        let slot = match self.spaces.entry(station).open.entry(flow) {
            Entry::Occupied(contact) => return Ok(contact.into_mut()),
            Entry::Vacant(slot) => slot,
        };
        if open >= MAX_OPEN_CONTACTS {
            return Err(StoreError::TooManyContacts);
        }
        let config = LogConfig { segment_size: self.config.segment_size };
        match Log::open(self.room.disk.clone(), &contact_dir(station, flow), config) {
            Ok(log) => {
                let marks = Marks::default();
                Ok(slot.insert(Contact { log, next: first, durable: first, marks, mended: 0 }))
            }
            Err(LogError::Full { .. }) => {
                let reserve = self.room.reserve;
                Err(StoreError::Full { needed: NEW_CONTACT, available: ByteCount::ZERO, reserve })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn station_dir(station: &StationName) -> String {
    format!("{ROOT}/{station}")
}

fn contact_dir(station: &StationName, flow: FlowId) -> String {
    format!("{ROOT}/{station}/{:08x}", flow.0)
}

const ROOT: &str = "contacts";
const FINISHED_NAME: &str = "finished";

/// The mark of the data in a record after the caller's bytes.
fn mark_behind(preface: usize, payload: &[u8]) -> BlockMark {
    mark(payload.get(preface..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
