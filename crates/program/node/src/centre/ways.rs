//! The way of each contact's blocks while Level-0 reads them: what the latency account of its
//! products is taken from. The catalogue has that of contacts that ended.

use skyhaul_catalogue::{BlockTimes, ContactTimes, ItemTimes};
use skyhaul_level0::report::{ContactReport, Product};
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The contacts that are being read, by name.
#[derive(Debug, Default)]
pub struct ContactWays {
    open: Mutex<BTreeMap<String, ContactTimes>>,
}

/// Contacts at a time; further ones have no account.
const CONTACTS_MAX: usize = 256;
/// A contact opens when its first frames are recognised, which is after they were received.
const BEFORE_OPENED: Duration = Duration::from_secs(60);

impl ContactWays {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, ContactTimes>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A contact is read from its beginning.
    pub fn begin(&self, name: &str, mission: &str) {
        let mut open = self.open();
        if open.len() < CONTACTS_MAX || open.contains_key(name) {
            open.insert(name.to_owned(), ContactTimes::new(mission));
        }
    }

    /// A block of it was read.
    pub fn block(&self, name: &str, block: BlockTimes) {
        if let Some(contact) = self.open().get_mut(name) {
            contact.push(block);
        }
    }

    /// The contact has ended, and its products are published: what is to be kept of it.
    pub fn end(&self, name: &str) -> Option<ContactTimes> {
        self.open().remove(name).map(|contact| contact.kept())
    }

    /// The way of the last packet of a product; `kept` gives contacts that ended.
    pub fn of(
        &self,
        product: &Product,
        kept: impl Fn(&str) -> Option<ContactTimes>,
    ) -> Option<ItemTimes> {
        let last_bit = product.sidecar.product.last?.received;
        let brought = |contact: &&ContactReport| contact.opened <= last_bit + BEFORE_OPENED;
        let contacts = product.sidecar.contacts.iter().filter(brought);
        let found = contacts.filter_map(|contact| {
            let name = contact.name.as_str();
            let open = self.open().get(name).map(|times| times.at(last_bit));
            let block = open.unwrap_or_else(|| kept(name)?.at(last_bit))?;
            Some(ItemTimes { contact: name.to_owned(), last_bit, block })
        });
        // Of several contacts the one that was received then: its block ends soonest after it.
        found.min_by_key(|times| times.block.last_received)
    }
}
