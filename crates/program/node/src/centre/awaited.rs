//! Contacts that wait for the one that they complete: a node on the way may send frames that were
//! asked for before the contact that lacks them.

use crate::custody::StoredContact;
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// Those that wait, and until when: some of the open contacts of the store.
#[derive(Debug, Default)]
pub struct AwaitingContacts(BTreeMap<StoredContact, Instant>);

/// How long the first block of a contact may be behind those that complete it. Blocks of 256 KiB
/// take as long at 7 kbit/s. Then the contact is taken for one that was never sent here, and what
/// completes it for a contact of its own.
const PATIENCE: Duration = Duration::from_secs(300);

impl AwaitingContacts {
    /// Whether a contact waits on, which lacks the one that it completes.
    pub fn waits(&mut self, contact: &StoredContact, now: Instant) -> bool {
        now < *self.0.entry(contact.clone()).or_insert(now + PATIENCE)
    }

    /// Whether a contact has waited as long as it may.
    pub fn is_over(&self, contact: &StoredContact, now: Instant) -> bool {
        self.0.get(contact).is_some_and(|until| *until <= now)
    }

    /// A contact does not wait any more.
    pub fn goes_on(&mut self, contact: &StoredContact) {
        self.0.remove(contact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_store::StationName;
    use skyhaul_units::FlowId;

    #[test]
    fn a_contact_waits_for_so_long_and_then_goes_alone() {
        let contact = StoredContact { space: StationName::new("relay").unwrap(), flow: FlowId(2) };
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let mut awaiting = AwaitingContacts::default();
        assert!(!awaiting.is_over(&contact, at(10)));
        assert!(awaiting.waits(&contact, at(10)) && awaiting.waits(&contact, at(309)));
        assert!(!awaiting.is_over(&contact, at(309)));
        assert!(!awaiting.waits(&contact, at(310)) && awaiting.is_over(&contact, at(310)));
        awaiting.goes_on(&contact);
        assert!(awaiting.waits(&contact, at(311)));
    }
}
