//! The ledger of deliveries: their states in the catalogue, so that nothing is forgotten or
//! delivered twice, whatever dies.

use super::product::{item_of, stem_of};
use crate::status::DeliveryStatus;
use skyhaul_catalogue::{Item, ItemForm};
use skyhaul_catalogue_io::{
    Catalogue, CatalogueError, CatalogueReader, DeliveryOffer, DeliveryQuery, DeliveryRow, ItemRow,
};
use skyhaul_config::{DeliveryEntry, DeliveryMode};
use skyhaul_dispatch::{
    AnswerRules, DeliveryInput, DeliveryOrder, DeliveryOutput, DeliveryRules, MissingAnswer,
    RetryRules,
};
use skyhaul_level0::report::Product;
use skyhaul_remote::Abilities;
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All deliveries of a centre.
#[derive(Debug)]
pub struct DeliveryLedger {
    catalogue: Catalogue,
    reader: Mutex<CatalogueReader>,
    consumers: Vec<DeliveryEntry>,
    /// Where products are published.
    products: PathBuf,
    /// One change of a delivery at a time: it is read, decided and written. Deliveries share these
    /// by their numbers, so that those of several consumers are written in one transaction.
    changes: [Mutex<()>; CHANGES],
    /// Deliveries that a consumer's thread should look at.
    changed: Mutex<BTreeMap<String, BTreeSet<u64>>>,
}

/// Changes at a time: as many as consumers that are busy at once.
const CHANGES: usize = 16;
/// Deliveries that status shows.
const SHOWN: usize = 200;
/// The file in the state folder.
pub const FILE: &str = "catalogue.db";

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rules of a consumer's deliveries.
pub fn rules(consumer: &DeliveryEntry) -> DeliveryRules {
    DeliveryRules {
        // A folder is looked at cheaply, and may come back at any time.
        retry: RetryRules {
            first: Duration::from_secs(2),
            most: Duration::from_secs(30),
            span: Duration::from_secs(30 * 86_400),
        },
        answer: Some(AnswerRules { within: consumer.expires, missing: MissingAnswer::Settle }),
        attempts: consumer.attempts,
        patience: consumer.patience,
    }
}

impl DeliveryLedger {
    /// Opens the catalogue in the state folder.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn open(
        state: &Path,
        consumers: Vec<DeliveryEntry>,
        products: PathBuf,
    ) -> Result<Self, CatalogueError> {
        let catalogue = Catalogue::open(&state.join(FILE))?;
        let reader = Mutex::new(catalogue.reader()?);
        let (changes, changed) = (std::array::from_fn(|_| Mutex::default()), Mutex::default());
        Ok(Self { catalogue, reader, consumers, products, changes, changed })
    }

    /// Where products are published.
    pub fn products(&self) -> &Path {
        &self.products
    }

    /// A reader of its own for a thread that asks much.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn reader(&self) -> Result<CatalogueReader, CatalogueError> {
        self.catalogue.reader()
    }

    /// Adds a published product, with a delivery for each consumer that wants it. What is there
    /// already stays as it is.
    ///
    /// # Errors
    /// See [`CatalogueError`]: offer it again.
    pub fn offer(&self, product: &Product, now: Utc) -> Result<(), CatalogueError> {
        item_of(product, now).map_or(Ok(()), |item| self.add(item, now))
    }

    fn add(&self, item: Item, now: Utc) -> Result<(), CatalogueError> {
        let takes: Vec<&DeliveryEntry> =
            self.consumers.iter().filter(|entry| entry.takes(&item.product)).collect();
        let is_expedited = item.form == ItemForm::Expedited;
        let is_whole = item.missing == 0 || is_expedited;
        let offer = |entry: &&DeliveryEntry| DeliveryOffer {
            subscription: entry.name.to_string(),
            destination: entry.name.to_string(),
            deadline: None,
            begin: (entry.mode == DeliveryMode::Complete && !is_whole)
                .then(|| now + entry.patience),
        };
        let offers = takes.iter().map(offer).collect();
        let published = self.catalogue.publish(item, offers, now)?;
        for entry in takes {
            if entry.mode == DeliveryMode::Complete && !is_expedited {
                self.supersede(entry, published.item, now)?;
            }
            self.tell(entry.name.as_str(), published.deliveries.iter().copied());
        }
        Ok(())
    }

    /// A consumer of complete products does not get a version that a newer one replaced before it
    /// was due.
    fn supersede(&self, entry: &DeliveryEntry, item: u64, now: Utc) -> Result<(), CatalogueError> {
        let older = lock(&self.reader).superseded(item, entry.name.as_str())?;
        for row in older {
            self.step(row.id, DeliveryInput::Superseded, now)?;
        }
        Ok(())
    }

    /// Has the consumer's thread look at a delivery.
    pub fn look_again(&self, consumer: &str, id: u64) {
        self.tell(consumer, std::iter::once(id));
    }

    /// Whether the consumer's thread should look at a delivery: an operator changed it.
    pub fn is_changed(&self, consumer: &str, id: u64) -> bool {
        lock(&self.changed).get(consumer).is_some_and(|ids| ids.contains(&id))
    }

    /// Keeps the note by which a file's transfer goes on.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_note(&self, id: u64, file: &str, note: &str) -> Result<(), CatalogueError> {
        self.catalogue.keep_note(id, file, note)
    }

    /// Removes the notes of a delivery's files: what they name is gone.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn drop_notes(&self, id: u64) -> Result<(), CatalogueError> {
        self.catalogue.drop_notes(id)
    }

    /// What the place of a consumer was found to be able to do, if that was found out.
    pub fn abilities(&self, consumer: &str) -> Option<Abilities> {
        let text = lock(&self.reader).abilities(consumer).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps that. If it cannot be kept, it is found out again.
    pub fn keep_abilities(&self, consumer: &str, found: &Abilities) {
        if let Ok(text) = serde_json::to_string(found) {
            let _ = self.catalogue.keep_abilities(consumer, &text);
        }
    }

    fn tell(&self, consumer: &str, ids: impl Iterator<Item = u64>) {
        lock(&self.changed).entry(consumer.to_owned()).or_default().extend(ids);
    }

    /// The deliveries that a consumer's thread should look at, and those only.
    pub fn changed(&self, consumer: &str) -> BTreeSet<u64> {
        lock(&self.changed).remove(consumer).unwrap_or_default()
    }

    /// Carries out what happened to a delivery, durably. Returns the delivery as it is now, and
    /// what it wants; none where there is no such delivery.
    ///
    /// # Errors
    /// See [`CatalogueError`]: nothing happened.
    pub fn step(
        &self,
        id: u64,
        input: DeliveryInput,
        now: Utc,
    ) -> Result<Option<(DeliveryRow, DeliveryOutput)>, CatalogueError> {
        let one = lock(&self.changes[usize::try_from(id).unwrap_or(0) % CHANGES]);
        let Some(mut row) = lock(&self.reader).delivery(id)? else { return Ok(None) };
        let rules = self.rules_of(&row.destination);
        let is_again = input == DeliveryInput::Ordered(DeliveryOrder::Again);
        let is_order = matches!(input, DeliveryInput::Ordered(_));
        let output = row.delivery.handle(now, input, &rules);
        if output == DeliveryOutput::Unfitting {
            return Ok(Some((row, output)));
        }
        if is_again {
            row.sequence = self.catalogue.renew(id, row.delivery.clone())?;
        } else {
            self.catalogue.save(id, row.delivery.clone())?;
        }
        drop(one);
        if is_order || row.delivery.state.is_settled() {
            self.tell(&row.destination, std::iter::once(id));
        }
        Ok(Some((row, output)))
    }

    /// The rules of a consumer; those of one that is no longer in the configuration are the usual
    /// ones.
    pub fn rules_of(&self, consumer: &str) -> DeliveryRules {
        let entry = self.consumers.iter().find(|entry| entry.name.as_str() == consumer);
        entry.map_or_else(DeliveryRules::default, rules)
    }

    /// The status of the newest deliveries, oldest first.
    pub fn shown(&self) -> Vec<DeliveryStatus> {
        let query = DeliveryQuery { limit: SHOWN, ..DeliveryQuery::default() };
        let newest = lock(&self.reader).deliveries(&query).unwrap_or_default();
        newest.iter().rev().map(|(row, item)| shown(row, item)).collect()
    }

    /// Asks the catalogue, on behalf of an operator.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn ask<T>(
        &self,
        ask: impl FnOnce(&CatalogueReader) -> Result<T, CatalogueError>,
    ) -> Result<T, CatalogueError> {
        // A connection of its own: a long search delays no delivery.
        ask(&self.catalogue.reader()?)
    }
}

/// The status of a delivery.
pub fn shown(row: &DeliveryRow, item: &ItemRow) -> DeliveryStatus {
    DeliveryStatus {
        id: row.id,
        consumer: row.destination.clone(),
        sequence: row.sequence,
        product: item.item.product.clone(),
        name: stem_of(&item.item),
        version: item.item.version,
        state: row.delivery.state,
        since: row.delivery.since.to_string(),
        attempts: row.delivery.attempts,
        next: row.delivery.next.map(|next| next.to_string()),
        proof: row.delivery.proof,
        reason: row.delivery.reason.clone(),
    }
}

#[cfg(test)]
mod tests;
