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

/// Contacts at a time. Of more, the one gives way that got a block longest ago: its products have
/// no account.
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
        if open.len() >= CONTACTS_MAX && !open.contains_key(name) {
            let last = |times: &ContactTimes| times.blocks().last().map(|block| block.sorted);
            let oldest = open.iter().min_by_key(|(_, times)| last(times));
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| open.remove(&name));
        }
        open.insert(name.to_owned(), ContactTimes::new(mission));
    }

    /// A block of it was read.
    pub fn block(&self, name: &str, block: BlockTimes) {
        if let Some(contact) = self.open().get_mut(name) {
            contact.push(block);
        }
    }

    /// What is to be kept of a contact.
    pub fn kept(&self, name: &str) -> Option<ContactTimes> {
        self.open().get(name).map(ContactTimes::kept)
    }

    /// The contact has ended and is kept, or is read no further.
    pub fn end(&self, name: &str) {
        self.open().remove(name);
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

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Utc;

    fn block(second: i64) -> BlockTimes {
        let at = Utc::from_micros(second * 1_000_000);
        BlockTimes {
            frames: 1,
            last_received: at,
            closed: at,
            taken: at,
            sent: at,
            arrived: at,
            whole: at,
            stored: at,
            sorted: at,
        }
    }

    /// Regression: contacts that never ended shut out all that followed.
    #[test]
    fn of_too_many_contacts_the_one_without_news_for_longest_gives_way() {
        let ways = ContactWays::default();
        for number in 0..CONTACTS_MAX as i64 {
            ways.begin(&format!("c{number}"), "aqua");
            ways.block(&format!("c{number}"), block(1_000 - number % 100));
        }
        ways.block("c99", block(2_000));
        ways.begin("new", "aqua");
        ways.block("new", block(3_000));
        assert_eq!(ways.kept("new").map(|kept| kept.blocks().len()), Some(1));
        // It alone has the oldest time now.
        assert_eq!(ways.kept("c199"), None);
        assert!(ways.kept("c99").is_some() && ways.kept("c98").is_some());
        ways.end("new");
        assert_eq!(ways.kept("new"), None);
    }
}
