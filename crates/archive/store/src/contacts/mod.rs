//! The centre's contact store: what arrived of each contact, and what may be receipted.
//!
//! ```text
//! contacts/STATION/spool               whose contacts these are: `spaces`
//! contacts/STATION/finished            flows that are processed: ranges, and the marks of the last blocks
//! contacts/STATION/0000002a/           one contact: a log of its own, and ...
//! contacts/STATION/0000002a/finished   ... when it was finished, for its retention
//! ```
//!
//! A record is taken in the order of its flow, once. It may be receipted when a sync that began
//! after it ended well. A finished contact's flow answers every repetition as a duplicate for ever,
//! and its data stays for the retention time, or until room is needed.
//!
//! Memory: what the log of each open contact keeps (170 bytes a segment), at most
//! [`MAX_OPEN_CONTACTS`] of them; 120 bytes a finished contact whose data is still there, at most
//! [`MAX_KEPT_CONTACTS`]; 8 bytes a range of finished flows.

mod commit;
mod finished;
mod kept;
mod load;
mod name;
mod resume;
mod spaces;

use crate::disk::{Disk, is_full};
use crate::log::{Cursor, Damage, Item, Log, LogConfig, LogError, NewRecord, block_size};
use crate::publish::save_state;
use crate::{FlowId, MAX_PAYLOAD, Seq, mark};
use finished::Finished;
use skyhaul_units::{BlockMark, ByteCount, Duration, Utc};
use spaces::Origin;
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::io;
use std::sync::Arc;

pub use commit::{Commit, ContactSync, ContactSynced, Receipt};
pub use kept::KeptReader;
pub use name::{StationName, StationNameError};
pub use resume::Resume;
pub use spaces::{Admitted, MAX_SPOOLS, Sender, SpoolKnown, SpoolState};

/// Contacts that are open at once, of all stations together.
pub const MAX_OPEN_CONTACTS: usize = 1_024;
/// Finished contacts whose data is kept; beyond it the oldest go before their retention is over.
pub const MAX_KEPT_CONTACTS: usize = 65_536;

/// What may be set of a contact store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContactConfig {
    /// A segment is closed before it grows beyond this. Default 64 MiB.
    pub segment_size: ByteCount,
    /// What all contacts together may fill. Default 64 GiB.
    pub max_size: ByteCount,
    /// How long a finished contact's data stays. Default 1 day. Given up early where room is
    /// needed.
    pub retention: Duration,
    /// What is left free on the file system. Default 64 MiB.
    pub reserve: ByteCount,
    /// Bytes that the caller puts before what the station sent, in each record: the marks are of
    /// what is behind them. Default 0.
    pub preface: usize,
}

impl Default for ContactConfig {
    fn default() -> Self {
        Self {
            segment_size: ByteCount::mib(64),
            max_size: ByteCount::mib(64 << 10),
            retention: Duration::from_secs(86_400),
            reserve: ByteCount::mib(64),
            preface: 0,
        }
    }
}

/// A record that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<'a> {
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
    /// It was there before, and is not kept again.
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
    /// It is processed; whatever comes again is a duplicate.
    Finished,
}

/// What a contact store has counted since it was opened.
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
    /// Finished contacts whose data was removed after its retention.
    pub removed: u64,
    /// Finished contacts whose data was removed before its retention was over, because room was
    /// needed.
    pub removed_early: u64,
    /// Bytes found behind the last valid record when the logs were opened, and cut off.
    pub torn: ByteCount,
    /// Damaged records that were mended.
    pub mended: u64,
    /// State files of which one copy was damaged: the other one counted.
    pub state_mended: u64,
}

/// Why the contact store cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No room, nothing was written. Hold the station back and try again: it ends by itself when
    /// space returns.
    #[error(
        "the contact store is full: {needed} needed, {available} available; free space on the \
        state folder's file system (the store leaves {reserve} of it free), or raise max_size in \
        [store]"
    )]
    Full {
        /// What the append needs.
        needed: ByteCount,
        /// What there is.
        available: ByteCount,
        /// What is left free on the file system.
        reserve: ByteCount,
    },
    /// A record that does not come next.
    #[error(
        "{station}, flow {flow}: record {got} received, {expected} expected; the station must send \
        in order, from {expected}"
    )]
    Gap {
        /// The station.
        station: StationName,
        /// The flow.
        flow: FlowId,
        /// What is next.
        expected: Seq,
        /// What came.
        got: Seq,
    },
    /// No such contact is open.
    #[error(
        "{station}, flow {flow}: no contact is open under this number: it was never opened, or is \
        finished"
    )]
    NotOpen {
        /// The station.
        station: StationName,
        /// The flow.
        flow: FlowId,
    },
    /// Too many contacts are open.
    #[error("{MAX_OPEN_CONTACTS} contacts are open, the limit: finish some")]
    TooManyContacts,
    /// A station came with too many spools.
    #[error(
        "{station}: {MAX_SPOOLS} spools sent data under this key, the limit: give each station its \
        own key, or remove folders of former spools from contacts/"
    )]
    TooManySpools {
        /// The station.
        station: StationName,
    },
    /// Others brought data since the sender was told what is there.
    #[error("{space}: another session delivered data meanwhile: the station must reconnect")]
    Overtaken {
        /// The name space.
        space: StationName,
    },
    /// Too many contacts below the finished ones never ended.
    #[error(
        "{station}: more than 4096 gaps between its finished contacts: finish the older contacts \
        first"
    )]
    TooManyHoles {
        /// The station.
        station: StationName,
    },
    /// A state file cannot be read or written.
    #[error("{path}: {source}; check the disk, then restore this file from a backup")]
    State {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A contact's log cannot go on.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// The centre's contact store.
#[derive(Debug)]
pub struct ContactStore {
    disk: Arc<dyn Disk>,
    config: ContactConfig,
    stations: BTreeMap<StationName, Station>,
    /// Finished contacts whose data is there.
    kept: BTreeMap<Key, Kept>,
    kept_size: ByteCount,
    /// Those of them that are not to be removed. As many as there are kept ones at most count.
    held: BTreeSet<Key>,
    stats: ContactStats,
    /// The newest damage that was met.
    damage: Option<Damage>,
}

/// A contact: its station and its flow.
type Key = (StationName, FlowId);

#[derive(Debug, Default)]
struct Station {
    finished: Finished,
    open: BTreeMap<FlowId, Contact>,
    origin: Option<Origin>,
    /// Records since the store was opened.
    taken: u64,
}

#[derive(Debug)]
struct Contact {
    log: Log,
    next: Seq,
    durable: Seq,
    /// Of the last record, and of the last durable one.
    marks: Marks,
    /// Records that its log has mended, as far as they are counted.
    mended: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    last: BlockMark,
    durable: BlockMark,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    size: ByteCount,
    finished: Utc,
}

/// A place in one contact's records. Holds one open file.
#[derive(Debug)]
pub struct ContactReader {
    key: Key,
    cursor: Cursor,
}

impl ContactStore {
    /// Appends a record that arrived. It may be receipted after the next sync.
    ///
    /// # Errors
    /// [`StoreError::Full`]: nothing was written, try again later. [`StoreError::Gap`] where it
    /// does not come next; [`StoreError::TooManyContacts`], [`StoreError::Log`].
    pub fn append(&mut self, arrival: Arrival<'_>) -> Result<Appended, StoreError> {
        let (station, flow, got) = (arrival.station, arrival.flow, arrival.seq);
        let expected = match self.status(station, flow) {
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
                Err(StoreError::Full { .. }) if self.remove_one_early()? => {}
                Err(error) => {
                    self.stats.refused += u64::from(matches!(error, StoreError::Full { .. }));
                    return Err(error);
                }
            }
        }
    }

    fn try_append(&mut self, arrival: &Arrival<'_>) -> Result<(), StoreError> {
        let size = ByteCount::of(arrival.payload.len());
        let open =
            self.stations.get(arrival.station).and_then(|station| station.open.get(&arrival.flow));
        let needed = open
            .map_or(block_size(size) + NEW_CONTACT, |contact| contact.log.segments().growth(size));
        let full = self.full(needed);
        if needed > self.available() {
            return Err(full);
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
                self.stations.entry(arrival.station.clone()).or_default().taken += 1;
                Ok(())
            }
            Err(LogError::Full { .. }) => Err(full),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a contact of which the station has only the records from `first` on, because what
    /// came before is lost at both ends. Nothing happens where the contact is known. Forgotten at a
    /// restart before its first record.
    ///
    /// # Errors
    /// [`StoreError::TooManyContacts`], [`StoreError::Full`], [`StoreError::Log`].
    pub fn begin_at(
        &mut self,
        station: &StationName,
        flow: FlowId,
        first: Seq,
    ) -> Result<(), StoreError> {
        if self.status(station, flow) == FlowStatus::Unknown {
            self.contact(station, flow, first)?;
        }
        Ok(())
    }

    /// How far a flow is.
    pub fn status(&self, station: &StationName, flow: FlowId) -> FlowStatus {
        let Some(station) = self.stations.get(station) else {
            return FlowStatus::Unknown;
        };
        if let Some(contact) = station.open.get(&flow) {
            return FlowStatus::Open { next: contact.next, durable: contact.durable };
        }
        if station.finished.contains(flow) { FlowStatus::Finished } else { FlowStatus::Unknown }
    }

    /// The open contacts, to go on with them after a restart.
    pub fn open_contacts(&self) -> impl Iterator<Item = (&StationName, FlowId)> {
        self.stations
            .iter()
            .flat_map(|(name, station)| station.open.keys().map(move |flow| (name, *flow)))
    }

    /// A reader at the contact's first record.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`].
    pub fn reader(&self, station: &StationName, flow: FlowId) -> Result<ContactReader, StoreError> {
        let key = (station.clone(), flow);
        let open = self.stations.get(station).and_then(|station| station.open.get(&flow));
        match open {
            Some(contact) => Ok(ContactReader { key, cursor: contact.log.start() }),
            None => Err(StoreError::NotOpen { station: key.0, flow }),
        }
    }

    /// The contact's next durable record, or damage; `None` where everything durable was read: read
    /// again after a sync.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] where the contact was finished meanwhile; [`StoreError::Log`].
    pub fn read(&mut self, reader: &mut ContactReader) -> Result<Option<Item>, StoreError> {
        let (station, flow) = &reader.key;
        let open = self.stations.get_mut(station).and_then(|station| station.open.get_mut(flow));
        let Some(contact) = open else {
            return Err(StoreError::NotOpen { station: station.clone(), flow: *flow });
        };
        let item = loop {
            match contact.log.read(&mut reader.cursor)? {
                Some(Item::SegmentEnd(_)) => {}
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

    /// The newest damage that was mended: nothing is lost, and the disk is not what it should be.
    pub fn mended(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The contact is processed: its products are published. From here on its flow only answers
    /// duplicates. Syncs; once this returns well, a receipt for the whole flow is due.
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
        let state = self.stations.get_mut(station).ok_or_else(not_open)?;
        let contact = state.open.get_mut(&flow).ok_or_else(not_open)?;
        contact.log.sync()?;
        let size = contact.log.segments().size();
        let mut finished = state.finished.clone();
        if !finished.insert(flow, contact.marks.last) {
            return Err(StoreError::TooManyHoles { station: station.clone() });
        }
        let (parent, dir) = (station_dir(station), contact_dir(station, flow));
        save_state(&*self.disk, &dir, FINISHED_NAME, &now.as_micros().to_be_bytes())
            .and_then(|()| save_state(&*self.disk, &parent, FINISHED_NAME, &finished.encode()))
            .map_err(|source| self.state_error(format!("{parent}/{FINISHED_NAME}"), source))?;
        let state = self.stations.get_mut(station).expect("found above");
        state.finished = finished;
        state.open.remove(&flow);
        self.keep((station.clone(), flow), Kept { size, finished: now });
        while self.kept.len() > MAX_KEPT_CONTACTS && self.remove_one_early()? {}
        Ok(Receipt { station: station.clone(), flow, next: Seq::FINISHED })
    }

    /// Removes the data of finished contacts older than their retention. Call it about once a
    /// minute. Returns the bytes freed.
    ///
    /// # Errors
    /// [`StoreError::State`] where the disk refuses to remove a file.
    pub fn free(&mut self, now: Utc) -> Result<ByteCount, StoreError> {
        let due = |kept: &Kept| kept.finished + self.config.retention <= now;
        let removable = self.kept.iter().filter(|entry| self.is_free(entry) && due(entry.1));
        let keys: Vec<Key> = removable.map(|(key, _)| key.clone()).collect();
        let before = self.kept_size;
        for key in keys {
            self.remove(&key)?;
            self.stats.removed += 1;
        }
        Ok(before - self.kept_size)
    }

    /// Bounds what the contacts fill, and how long they stay, otherwise from now on.
    pub fn set_limits(&mut self, max_size: ByteCount, retention: Duration) {
        (self.config.max_size, self.config.retention) = (max_size, retention);
    }

    /// What the contacts fill on the disk.
    pub fn size(&self) -> ByteCount {
        let open = self.stations.values().flat_map(|station| station.open.values());
        open.map(|contact| contact.log.segments().size()).sum::<ByteCount>() + self.kept_size
    }

    /// Whether the folder that the store is in is still where it was. Ask about once a second, and
    /// before anything is receipted that no sync went before.
    ///
    /// # Errors
    /// As [`Disk::in_place`]: nothing may be receipted any more.
    pub fn in_place(&self) -> io::Result<()> {
        self.disk.in_place()
    }

    /// Counters.
    pub fn stats(&self) -> ContactStats {
        self.stats
    }

    fn available(&self) -> ByteCount {
        // Where the disk does not say what is free, the append finds out.
        let free = self
            .disk
            .free_space()
            .map_or(ByteCount::new(u64::MAX), |free| free - self.config.reserve);
        free.min(self.config.max_size - self.size())
    }

    fn contact(
        &mut self,
        station: &StationName,
        flow: FlowId,
        first: Seq,
    ) -> Result<&mut Contact, StoreError> {
        let open: usize = self.stations.values().map(|station| station.open.len()).sum();
        let slot = match self.stations.entry(station.clone()).or_default().open.entry(flow) {
            Entry::Occupied(contact) => return Ok(contact.into_mut()),
            Entry::Vacant(slot) => slot,
        };
        if open >= MAX_OPEN_CONTACTS {
            return Err(StoreError::TooManyContacts);
        }
        let config = LogConfig { segment_size: self.config.segment_size };
        match Log::open(self.disk.clone(), &contact_dir(station, flow), config) {
            Ok(log) => {
                let marks = Marks::default();
                Ok(slot.insert(Contact { log, next: first, durable: first, marks, mended: 0 }))
            }
            Err(LogError::Full { .. }) => {
                let reserve = self.config.reserve;
                Err(StoreError::Full { needed: NEW_CONTACT, available: ByteCount::ZERO, reserve })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn keep(&mut self, key: Key, kept: Kept) {
        self.kept_size += kept.size;
        self.kept.insert(key, kept);
    }

    fn remove_one_early(&mut self) -> Result<bool, StoreError> {
        let removable = self.kept.iter().filter(|entry| self.is_free(entry));
        let oldest = removable.min_by_key(|(_, kept)| kept.finished).map(|(key, _)| key.clone());
        let Some(key) = oldest else {
            return Ok(false);
        };
        self.remove(&key)?;
        self.stats.removed_early += 1;
        Ok(true)
    }

    /// Removes a finished contact's directory. That it is finished stays known.
    fn remove(&mut self, key: &Key) -> Result<(), StoreError> {
        let dir = contact_dir(&key.0, key.1);
        let disk = &*self.disk;
        let removed = disk.list(&dir).and_then(|entries| {
            entries.iter().try_for_each(|entry| disk.remove(&format!("{dir}/{}", entry.name)))?;
            disk.remove_dir(&dir)?;
            disk.sync_dir(&station_dir(&key.0))
        });
        removed.map_err(|source| StoreError::State { path: dir, source })?;
        if let Some(kept) = self.kept.remove(key) {
            self.kept_size = self.kept_size - kept.size;
        }
        Ok(())
    }

    fn full(&self, needed: ByteCount) -> StoreError {
        StoreError::Full { needed, available: self.available(), reserve: self.config.reserve }
    }

    fn state_error(&self, path: String, source: io::Error) -> StoreError {
        if is_full(&source) {
            return self.full(NEW_CONTACT);
        }
        StoreError::State { path, source }
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
/// What a new contact takes beside its payload: directory, file and header.
const NEW_CONTACT: ByteCount = ByteCount::kib(12);

/// The mark of what a record holds behind what the caller put there.
fn mark_behind(preface: usize, payload: &[u8]) -> BlockMark {
    mark(payload.get(preface..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
