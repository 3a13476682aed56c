//! Finished contacts whose data is still kept: holding, reading and removing them.

use super::{FINISHED_NAME, Key, StationName, StoreError, contact_dir, station_dir};
use crate::FlowId;
use crate::disk::Disk;
use crate::format::is_other;
use crate::log::{Log, LogConfig, LogCursor, LogEntry};
use crate::publish::load_state;
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Reads a finished contact from its beginning. It does not need the store, which other threads may
/// use meanwhile. Hold the contact while it is read.
#[derive(Debug)]
pub struct KeptReader {
    log: Log,
    cursor: LogCursor,
}

impl KeptReader {
    /// The contact's next record, or damage; `None` at its end.
    ///
    /// # Errors
    /// [`StoreError::Log`].
    pub fn read(&mut self) -> Result<Option<LogEntry>, StoreError> {
        loop {
            match self.log.read(&mut self.cursor)? {
                Some(LogEntry::SegmentEnd(_)) => {}
                other => return Ok(other),
            }
        }
    }
}

/// The finished contacts with data.
#[derive(Debug)]
pub struct KeptContacts {
    disk: Arc<dyn Disk>,
    log: LogConfig,
    contacts: BTreeMap<Key, Kept>,
    /// What they fill on the disk.
    size: ByteCount,
    /// Those of them that must not be removed. At most as many as are kept count.
    held: BTreeSet<Key>,
    removed: Removed,
}

/// A finished contact with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptContact {
    /// Its station, as its name space has it.
    pub station: StationName,
    /// Its flow.
    pub flow: FlowId,
    /// When it was finished.
    pub finished: Utc,
    /// What it fills on the disk.
    pub size: ByteCount,
}

/// How many contacts were removed.
#[derive(Debug, Clone, Default)]
pub(super) struct Removed {
    /// By order.
    pub due: u64,
    /// Because space was needed.
    pub early: u64,
    /// The last of these.
    pub last: Option<KeptContact>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub size: ByteCount,
    pub finished: Utc,
}

impl KeptContacts {
    pub(super) fn none(disk: Arc<dyn Disk>, log: LogConfig) -> Self {
        let (contacts, held) = (BTreeMap::new(), BTreeSet::new());
        Self { disk, log, contacts, size: ByteCount::ZERO, held, removed: Removed::default() }
    }

    /// All of them, with when each was finished.
    pub fn iter(&self) -> impl Iterator<Item = (&StationName, FlowId, Utc)> {
        self.contacts.iter().map(|((station, flow), kept)| (station, *flow, kept.finished))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = KeptContact> {
        self.contacts.iter().map(|(key, kept)| shown(key, *kept))
    }

    /// Those that were finished this long ago.
    pub fn due(&self, age: Duration, now: Utc) -> Vec<(StationName, FlowId)> {
        let due = self.contacts.iter().filter(|(_, kept)| kept.finished + age <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// The last contact that was removed because space was needed, since the store was opened.
    pub const fn removed_early(&self) -> Option<&KeptContact> {
        self.removed.last.as_ref()
    }

    /// Whether the data of a finished contact is present.
    pub fn contains(&self, station: &StationName, flow: FlowId) -> bool {
        self.contacts.contains_key(&(station.clone(), flow))
    }

    /// A reader of a finished contact.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] where its data is gone; [`StoreError::Log`].
    pub fn reader(&self, station: &StationName, flow: FlowId) -> Result<KeptReader, StoreError> {
        if !self.contains(station, flow) {
            return Err(StoreError::NotOpen { station: station.clone(), flow });
        }
        let log = Log::open(self.disk.clone(), &contact_dir(station, flow), self.log)?;
        let cursor = log.start();
        Ok(KeptReader { log, cursor })
    }

    pub(super) const fn size(&self) -> ByteCount {
        self.size
    }

    pub(super) fn len(&self) -> usize {
        self.contacts.len()
    }

    pub(super) fn hold(&mut self, contacts: BTreeSet<Key>) {
        self.held = contacts;
    }

    pub(super) fn insert(&mut self, key: Key, kept: Kept) {
        self.size += kept.size;
        self.contacts.insert(key, kept);
    }

    pub(super) const fn removed(&self) -> &Removed {
        &self.removed
    }

    /// Removes those of these contacts that are there and may be removed. Returns the bytes freed.
    pub(super) fn release(&mut self, contacts: &[Key]) -> Result<ByteCount, StoreError> {
        let before = self.size;
        for key in contacts {
            if self.contacts.contains_key(key) && !self.held.contains(key) {
                self.remove(key)?;
                self.removed.due += 1;
            }
        }
        Ok(before - self.size)
    }

    /// Removes the contact that was finished first, if one may be removed. Returns whether one was.
    pub(super) fn remove_oldest(&mut self) -> Result<bool, StoreError> {
        let Some((key, kept)) = self.oldest() else { return Ok(false) };
        self.remove(&key)?;
        self.removed.early += 1;
        self.removed.last = Some(shown(&key, kept));
        Ok(true)
    }

    /// The contact that may be removed and was finished first.
    fn oldest(&self) -> Option<(Key, Kept)> {
        let oldest = self.removable().min_by_key(|(_, kept)| kept.finished);
        oldest.map(|(key, kept)| (key.clone(), *kept))
    }

    fn removable(&self) -> impl Iterator<Item = (&Key, &Kept)> {
        self.contacts.iter().filter(|(key, _)| !self.held.contains(*key))
    }

    /// Removes a finished contact's directory. The contact still counts as finished.
    fn remove(&mut self, key: &Key) -> Result<(), StoreError> {
        let dir = contact_dir(&key.0, key.1);
        let disk = &*self.disk;
        let removed = disk.list(&dir).and_then(|entries| {
            entries.iter().try_for_each(|entry| disk.remove(&format!("{dir}/{}", entry.name)))?;
            disk.remove_dir(&dir)?;
            disk.sync_dir(&station_dir(&key.0))
        });
        removed.map_err(|source| StoreError::State { path: dir, source })?;
        if let Some(kept) = self.contacts.remove(key) {
            self.size = self.size - kept.size;
        }
        Ok(())
    }

    /// Determines the data of a finished contact.
    pub(super) fn load(&mut self, name: &StationName, flow: FlowId) -> io::Result<()> {
        let dir = contact_dir(name, flow);
        let size = self.disk.list(&dir)?.iter().map(|entry| entry.size).sum();
        // Without a readable mark its retention counts as over: the contact is processed.
        let mark = match load_state(&*self.disk, &format!("{dir}/{FINISHED_NAME}")) {
            Err(error) if is_other(&error) => return Err(error),
            other => other.ok().flatten(),
        };
        let micros =
            mark.and_then(|state| state.body.try_into().ok()).map_or(0, i64::from_be_bytes);
        self.insert((name.clone(), flow), Kept { size, finished: Utc::from_micros(micros) });
        Ok(())
    }
}

fn shown((station, flow): &Key, kept: Kept) -> KeptContact {
    let Kept { size, finished } = kept;
    KeptContact { station: station.clone(), flow: *flow, finished, size }
}
