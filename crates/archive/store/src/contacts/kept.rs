//! Finished contacts whose data is still there: holding on to them, and reading them again.

use super::{ContactStore, Kept, Key, StationName, StoreError, contact_dir};
use crate::FlowId;
use crate::log::{Cursor, Item, Log, LogConfig};
use skyhaul_units::Utc;

/// Reads a finished contact from its beginning. Needs the store no more: other threads may go on
/// with it meanwhile. Hold the contact while it is read.
#[derive(Debug)]
pub struct KeptReader {
    log: Log,
    cursor: Cursor,
}

impl KeptReader {
    /// The contact's next record, or damage; `None` at its end.
    ///
    /// # Errors
    /// [`StoreError::Log`].
    pub fn read(&mut self) -> Result<Option<Item>, StoreError> {
        loop {
            match self.log.read(&mut self.cursor)? {
                Some(Item::SegmentEnd(_)) => {}
                other => return Ok(other),
            }
        }
    }
}

impl ContactStore {
    /// The finished contacts whose data is there, with when each was finished.
    pub fn kept_contacts(&self) -> impl Iterator<Item = (&StationName, FlowId, Utc)> {
        self.kept.iter().map(|((station, flow), kept)| (station, *flow, kept.finished))
    }

    /// Whether the data of a finished contact is there.
    pub fn is_kept(&self, station: &StationName, flow: FlowId) -> bool {
        self.kept.contains_key(&(station.clone(), flow))
    }

    /// Holds contacts, and no others: their data stays beyond its retention, and is not given up
    /// where room is needed. Forgotten at a restart: hold them again before the first append.
    pub fn hold(&mut self, contacts: impl IntoIterator<Item = (StationName, FlowId)>) {
        self.held = contacts.into_iter().collect();
    }

    /// A reader of a finished contact.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] where its data is gone; [`StoreError::Log`].
    pub fn kept_reader(
        &self,
        station: &StationName,
        flow: FlowId,
    ) -> Result<KeptReader, StoreError> {
        if !self.is_kept(station, flow) {
            return Err(StoreError::NotOpen { station: station.clone(), flow });
        }
        let config = LogConfig { segment_size: self.config.segment_size };
        let log = Log::open(self.disk.clone(), &contact_dir(station, flow), config)?;
        let cursor = log.start();
        Ok(KeptReader { log, cursor })
    }

    /// Whether the store may remove a contact.
    pub(super) fn is_free(&self, (key, _): &(&Key, &Kept)) -> bool {
        !self.held.contains(*key)
    }
}
