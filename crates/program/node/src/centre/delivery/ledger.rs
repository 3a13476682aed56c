//! The ledger of deliveries: their states in the catalogue, so that nothing is forgotten or
//! delivered twice, whatever dies.

use super::product::{item_of, stem_of};
use crate::centre::retention::{ArchiveDesk, ArchiveRules};
use crate::status::{DeliveryStatus, DestinationTrial};
use skyhaul_catalogue::{ContactTimes, Item, ItemForm, ItemTimes};
use skyhaul_catalogue_io::{
    Catalogue, CatalogueError, CatalogueReader, DeliveryOffer, DeliveryQuery, DeliveryRow, ItemRow,
};
use skyhaul_config::{OutletPlace, ProductOutlets, ProductSubscription};
use skyhaul_dispatch::{DeliveryInput, DeliveryOrder, DeliveryOutput, DeliveryRules, VersionRule};
use skyhaul_level0::report::Product;
use skyhaul_remote::Abilities;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All deliveries of a centre.
#[derive(Debug)]
pub struct DeliveryLedger {
    catalogue: Catalogue,
    reader: Mutex<CatalogueReader>,
    /// Where products go.
    outlets: Mutex<Arc<ProductOutlets>>,
    /// Where products are published.
    products: PathBuf,
    /// One change of a delivery at a time: it is read, decided and written. Deliveries share these
    /// by their numbers, so that those of several destinations are written in one transaction.
    changes: [Mutex<()>; CHANGES],
    /// Deliveries that a destination's threads should look at.
    changed: Mutex<BTreeMap<String, BTreeSet<u64>>>,
    /// How long products stay.
    archive: ArchiveDesk,
}

/// Where a ledger has its files, and what is done with products.
#[derive(Debug)]
pub struct LedgerSetup<'a> {
    /// The state folder.
    pub state: &'a Path,
    /// Where products go.
    pub outlets: ProductOutlets,
    /// Where they are published.
    pub products: PathBuf,
    /// How long they stay.
    pub archive: ArchiveRules,
}

/// Changes at a time: as many as destinations that are busy at once.
const CHANGES: usize = 16;
/// Deliveries that status shows.
const SHOWN: usize = 200;
/// The file in the state folder.
pub const FILE: &str = "catalogue.db";

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DeliveryLedger {
    /// Opens the catalogue in the state folder.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn open(setup: LedgerSetup<'_>) -> Result<Self, CatalogueError> {
        let LedgerSetup { state, outlets, products, archive } = setup;
        let catalogue = Catalogue::open(&state.join(FILE))?;
        let reader = Mutex::new(catalogue.reader()?);
        let (changes, changed) = (std::array::from_fn(|_| Mutex::default()), Mutex::default());
        let outlets = Mutex::new(Arc::new(outlets));
        let archive = ArchiveDesk::new(archive);
        Ok(Self { catalogue, reader, outlets, products, changes, changed, archive })
    }

    /// The catalogue, to be written.
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// How long products stay.
    pub const fn archive(&self) -> &ArchiveDesk {
        &self.archive
    }

    /// Where products are published.
    pub fn products(&self) -> &Path {
        &self.products
    }

    /// Where products go.
    pub fn outlets(&self) -> Arc<ProductOutlets> {
        Arc::clone(&lock(&self.outlets))
    }

    /// Has products go elsewhere from now on.
    pub fn adopt(&self, outlets: ProductOutlets) {
        *lock(&self.outlets) = Arc::new(outlets);
    }

    /// A reader of its own for a thread that asks much.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn reader(&self) -> Result<CatalogueReader, CatalogueError> {
        self.catalogue.reader()
    }

    /// Adds a published product, with a delivery for each destination of each subscription that
    /// takes it. What is there already stays as it is.
    ///
    /// # Errors
    /// See [`CatalogueError`]: offer it again.
    pub fn offer(&self, product: &Product, now: Utc) -> Result<bool, CatalogueError> {
        item_of(product, now).map_or(Ok(false), |item| self.add(item, now))
    }

    /// Keeps the way of the last packet of a published product.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_times(&self, product: &Product, times: ItemTimes) -> Result<(), CatalogueError> {
        let item = item_of(product, Utc::default());
        item.map_or(Ok(()), |item| self.catalogue.keep_times(&item.name, item.version, times))
    }

    /// The way of the blocks of a contact that ended; none where it cannot be read: its products
    /// then have no account.
    pub fn contact_times(&self, name: &str) -> Option<ContactTimes> {
        lock(&self.reader).contact(name).ok().flatten()
    }

    fn add(&self, item: Item, now: Utc) -> Result<bool, CatalogueError> {
        let outlets = self.outlets();
        let takes: Vec<&ProductSubscription> =
            outlets.subscriptions.iter().filter(|one| one.takes(&item)).collect();
        let offers = takes.iter().flat_map(|one| offers(one, &item, now)).collect();
        let form = item.form;
        let published = self.catalogue.publish(item, offers, now)?;
        self.tell_all(&published.deliveries);
        // An expedited data set stands for itself, and has no later version.
        let latest = |one: &&&ProductSubscription| one.entry.versions.rule() == VersionRule::Latest;
        for subscription in takes.iter().filter(latest).filter(|_| form != ItemForm::Expedited) {
            self.supersede(subscription, published.item, now)?;
        }
        Ok(published.is_new)
    }

    /// Offers items that were published before, in one transaction.
    ///
    /// # Errors
    /// See [`CatalogueError`]: offer them again.
    pub fn offer_again(
        &self,
        items: Vec<(u64, Vec<DeliveryOffer>)>,
        now: Utc,
    ) -> Result<usize, CatalogueError> {
        let begun = self.catalogue.offer(items, now)?;
        self.tell_all(&begun);
        Ok(begun.len())
    }

    /// Has the threads of their destinations look at deliveries that have begun.
    fn tell_all(&self, begun: &[(String, u64)]) {
        for (destination, id) in begun {
            self.look_again(destination, *id);
        }
    }

    /// A subscription to the latest version does not get one that a newer one replaced before it
    /// began.
    fn supersede(
        &self,
        subscription: &ProductSubscription,
        item: u64,
        now: Utc,
    ) -> Result<(), CatalogueError> {
        let older = lock(&self.reader).superseded(item, subscription.name.as_str())?;
        for row in older {
            self.step(row.id, DeliveryInput::Superseded, now)?;
        }
        Ok(())
    }

    /// Has a destination's threads look at a delivery.
    pub fn look_again(&self, destination: &str, id: u64) {
        lock(&self.changed).entry(destination.to_owned()).or_default().insert(id);
    }

    /// Whether a destination's threads should look at a delivery: an operator changed it.
    pub fn is_changed(&self, destination: &str, id: u64) -> bool {
        lock(&self.changed).get(destination).is_some_and(|ids| ids.contains(&id))
    }

    /// What a destination was found to be able to do, if that was found out there.
    pub fn abilities(&self, destination: &str, place: &OutletPlace) -> Option<Abilities> {
        self.trial(destination).filter(|trial| trial.place == place.to_string()).map(|it| it.found)
    }

    /// The last trial of a destination.
    pub fn trial(&self, destination: &str) -> Option<DestinationTrial> {
        let text = lock(&self.reader).abilities(destination).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what a trial found. If it cannot be kept, it is found out again.
    pub fn keep_trial(&self, destination: &str, trial: &DestinationTrial) {
        if let Ok(text) = serde_json::to_string(trial) {
            let _ = self.catalogue.keep_abilities(destination, &text);
        }
    }

    /// The deliveries that a destination's threads should look at, and those only; one that `waits`
    /// says so of stays for a later look.
    pub fn changed(&self, destination: &str, waits: impl Fn(u64) -> bool) -> BTreeSet<u64> {
        let mut changed = lock(&self.changed);
        let Some(ids) = changed.get_mut(destination) else { return BTreeSet::new() };
        let (later, now) = core::mem::take(ids).into_iter().partition(|id| waits(*id));
        *ids = later;
        now
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
        let rules = self.rules_of(&row.subscription);
        let is_again = input == DeliveryInput::Ordered(DeliveryOrder::Again);
        let is_order = matches!(input, DeliveryInput::Ordered(_));
        let before = row.delivery.clone();
        let output = row.delivery.handle(now, input, &rules);
        if output == DeliveryOutput::Unfitting {
            return Ok(Some((row, output)));
        }
        if is_again {
            let Some(sequence) = self.catalogue.renew(id, row.delivery.clone())? else {
                row.delivery = before;
                return Ok(Some((row, DeliveryOutput::Unfitting)));
            };
            row.sequence = sequence;
        } else {
            self.catalogue.save(id, row.delivery.clone())?;
        }
        drop(one);
        if is_order || row.delivery.state.is_settled() {
            self.look_again(&row.destination, id);
        }
        Ok(Some((row, output)))
    }

    /// The rules of a subscription; those of one that is no longer in the configuration are the
    /// usual ones.
    pub fn rules_of(&self, subscription: &str) -> DeliveryRules {
        let outlets = self.outlets();
        let found = outlets.subscription(subscription);
        found.map_or_else(DeliveryRules::default, ProductSubscription::rules)
    }

    /// The status of the newest deliveries, oldest first.
    pub fn shown(&self, now: Utc) -> Vec<DeliveryStatus> {
        let query = DeliveryQuery { limit: SHOWN, ..DeliveryQuery::default() };
        let newest = lock(&self.reader).deliveries(&query).unwrap_or_default();
        newest.iter().rev().map(|(row, item)| shown(row, item, now)).collect()
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

/// The deliveries of an item that a subscription begins.
pub fn offers(
    subscription: &ProductSubscription,
    item: &Item,
    now: Utc,
) -> impl Iterator<Item = DeliveryOffer> {
    let entry = &subscription.entry;
    let is_whole = item.missing == 0 || item.form == ItemForm::Expedited;
    let offer = DeliveryOffer {
        subscription: subscription.name.to_string(),
        destination: String::new(),
        versions: entry.versions.rule(),
        deadline: entry.deadline.map(|deadline| now + deadline),
        begin: entry.patience.filter(|_| !is_whole).map(|patience| now + patience),
    };
    let to = subscription.to.iter();
    to.map(move |name| DeliveryOffer { destination: name.to_string(), ..offer.clone() })
}

/// The status of a delivery.
pub fn shown(row: &DeliveryRow, item: &ItemRow, now: Utc) -> DeliveryStatus {
    let state = row.delivery.state;
    let is_due = |deadline: Utc| deadline < now && !state.is_settled() && !state.is_there();
    DeliveryStatus {
        id: row.id,
        destination: row.destination.clone(),
        subscription: row.subscription.clone(),
        deadline: row.deadline.map(|deadline| deadline.to_string()),
        is_late: row.deadline.is_some_and(is_due),
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
