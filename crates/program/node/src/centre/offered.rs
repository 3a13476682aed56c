//! Contacts of the store for pollers: reads the durable blocks of each, also after it was finished.

use super::shared::CentreShared;
use crate::alarms::Alarms;
use crate::custody::{Stamps, StoredContact};
use crate::sessions::{ContactBlocks, ContactSource};
use crate::shutdown::Shutdown;
use skyhaul_records::payload::split_taken;
use skyhaul_store::{ContactReader, KeptContact, KeptReader, LogEntry, LogRecord, StoreError};
use skyhaul_units::Utc;
use std::collections::BTreeSet;

impl ContactSource for CentreShared {
    type Reading = BlockReading;

    fn contacts(&self, from: Utc) -> BTreeSet<StoredContact> {
        let mut found = StoredContact::open_in(&self.store());
        let of = |kept: KeptContact| StoredContact { space: kept.station, flow: kept.flow };
        found.extend(self.store().kept().all().filter(|kept| kept.finished >= from).map(of));
        found
    }

    fn next(
        &self,
        contact: &StoredContact,
        reading: &mut BlockReading,
    ) -> Result<ContactBlocks, String> {
        reading.next(contact, self).map_err(|error| error.to_string())
    }

    fn content<'r>(&self, record: &'r LogRecord) -> Option<&'r [u8]> {
        let (_, wire) = Stamps::split(&record.payload)?;
        split_taken(wire).ok().map(|(_, payload)| payload)
    }

    fn station_of(&self, contact: &StoredContact) -> String {
        self.store().spaces().station_of(&contact.space).as_str().to_owned()
    }

    fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }
}

/// A place in the blocks of a contact.
#[derive(Debug, Default)]
pub enum BlockReading {
    /// Not opened yet.
    #[default]
    Closed,
    /// The contact comes in.
    Open(ContactReader),
    /// It is finished, and its data is kept.
    Kept(Box<KeptReader>),
}

impl BlockReading {
    /// The next block of a contact. Whoever changes from an open contact to a kept one begins again
    /// at its first block.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn next(
        &mut self,
        contact: &StoredContact,
        shared: &CentreShared,
    ) -> Result<ContactBlocks, StoreError> {
        let mut store = shared.store();
        if let Self::Closed = self {
            *self = match store.reader(&contact.space, contact.flow) {
                Ok(reader) => Self::Open(reader),
                Err(StoreError::NotOpen { .. }) => {
                    match store.kept().reader(&contact.space, contact.flow) {
                        Ok(reader) => Self::Kept(Box::new(reader)),
                        Err(StoreError::NotOpen { .. }) => return Ok(ContactBlocks::Gone),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            };
        }
        let entry = match self {
            Self::Closed => None,
            Self::Open(reader) => match store.read(reader) {
                Err(StoreError::NotOpen { .. }) => {
                    *self = Self::Closed;
                    drop(store);
                    return self.next(contact, shared);
                }
                entry => entry?,
            },
            Self::Kept(reader) => {
                drop(store);
                match reader.read()? {
                    // All of it was read, and it has no end.
                    None => return Ok(ContactBlocks::Gone),
                    entry => entry,
                }
            }
        };
        Ok(match entry {
            None => ContactBlocks::Idle,
            Some(LogEntry::Block(record)) => ContactBlocks::Block(record),
            Some(LogEntry::Damaged(_)) => ContactBlocks::Damaged,
            Some(LogEntry::SegmentEnd(_)) => ContactBlocks::Idle,
        })
    }
}
