//! Where contacts are read from: the store of a centre, or the spool of a station.

use crate::alarms::Alarms;
use crate::custody::StoredContact;
use crate::shutdown::Shutdown;
use skyhaul_store::LogRecord;
use skyhaul_units::Utc;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A source of contacts.
pub trait ContactSource: Debug + Send + Sync + 'static {
    /// A place in the blocks of a contact; at first it is before all of them.
    type Reading: Debug + Default + Send;

    /// The contacts that come in, and those that were finished from `from` on.
    fn contacts(&self, from: Utc) -> BTreeSet<StoredContact>;

    /// The next block of a contact. Who begins again, begins at its first block.
    ///
    /// # Errors
    /// The disk cannot be read.
    fn next(
        &self,
        contact: &StoredContact,
        reading: &mut Self::Reading,
    ) -> Result<ContactBlocks, String>;

    /// The head of a block with its content; none where it has another form.
    fn content<'r>(&self, record: &'r LogRecord) -> Option<&'r [u8]>;

    /// The station that a contact is from.
    fn station_of(&self, contact: &StoredContact) -> String;

    /// The alarms of the node.
    fn alarms(&self) -> &Alarms;

    /// The end of the node.
    fn shutdown(&self) -> &Shutdown;
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
