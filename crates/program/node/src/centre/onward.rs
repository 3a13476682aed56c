//! What the Level-0 thread and the relay of a node tell each other: a contact stays open in the
//! store until it is processed and passed on.

use super::store_news::StoreNews;
use crate::custody::StoredContact;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the contacts of a node's store go on to.
#[derive(Debug)]
pub struct Onward {
    /// The node's name.
    own: String,
    kind: NodeKind,
    /// Bounded by the open contacts of the store.
    contacts: Mutex<BTreeMap<StoredContact, Onwards>>,
    news: StoreNews,
}

/// Whether a node also sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// It only receives.
    Final,
    /// It has destinations, and may pass contacts on.
    Relay,
}

/// Where one contact goes on to.
#[derive(Debug, Clone, Default)]
struct Onwards {
    /// The names of its destinations; none where it is not passed on.
    to: Vec<String>,
    /// The spool has all of it that is to be passed on.
    is_settled: bool,
}

impl Onward {
    /// Of the node `own`.
    pub fn new(own: String, kind: NodeKind) -> Self {
        Self { own, kind, contacts: Mutex::default(), news: StoreNews::default() }
    }

    /// The node's name.
    pub fn own(&self) -> &str {
        &self.own
    }

    fn contacts(&self) -> MutexGuard<'_, BTreeMap<StoredContact, Onwards>> {
        self.contacts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A contact is passed on to these destinations.
    pub fn begin(&self, contact: &StoredContact, to: Vec<String>) {
        self.contacts().insert(contact.clone(), Onwards { to, is_settled: false });
    }

    /// The relay is done with a contact.
    pub fn settle(&self, contact: &StoredContact) {
        self.contacts().entry(contact.clone()).or_default().is_settled = true;
    }

    /// Whether a contact may be finished in the store.
    pub fn is_settled(&self, contact: &StoredContact) -> bool {
        self.kind == NodeKind::Final
            || self.contacts().get(contact).is_some_and(|onwards| onwards.is_settled)
    }

    /// The names of the destinations that a contact is passed on to.
    pub fn to(&self, contact: &StoredContact) -> Vec<String> {
        self.contacts().get(contact).map(|onwards| onwards.to.clone()).unwrap_or_default()
    }

    /// The contact is finished in the store.
    pub fn finished(&self, contact: &StoredContact) {
        self.contacts().remove(contact);
    }

    /// The store has more.
    pub fn notify(&self) {
        self.news.notify();
    }

    /// Waits for that, at most `span`.
    pub fn wait(&self, span: Duration) {
        self.news.wait(span);
    }
}
