//! Reads the durable blocks of a contact, also after it was finished in the store.

use super::super::shared::CentreShared;
use crate::custody::StoredContact;
use skyhaul_store::{ContactReader, KeptReader, LogEntry, LogRecord, StoreError};

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

/// What is read.
#[derive(Debug)]
pub enum ContactBlocks {
    /// The next block.
    Block(LogRecord),
    /// Blocks that cannot be read.
    Damaged,
    /// Nothing more is durable.
    Idle,
    /// The data is gone.
    Gone,
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
