//! Reading a catalogue, beside the one who writes.

use crate::deliveries::{self, DeliveryNames, DeliveryQuery, DeliveryRow, DestinationCount};
use crate::error::{CatalogueError, PATIENCE_S};
use crate::events::{self, CatalogueEvent};
use crate::items::{self, ItemRow};
use crate::listing::{self, CollectionRow, ListedItems};
use crate::schema;
use crate::search::{self, ItemPage, ItemQuery};
use crate::times::{self, AccountScope};
use rusqlite::Connection;
use skyhaul_catalogue::{AccountRow, ContactTimes, Filter, ItemListing};
use skyhaul_dispatch::DeliveryState;
use skyhaul_units::Utc;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A connection that reads. It sees everything that was written before it is asked.
#[derive(Debug)]
pub struct CatalogueReader {
    path: PathBuf,
    connection: Connection,
    opened: Instant,
    /// When the question that is asked is given up, in seconds since it was opened.
    until: Arc<AtomicU64>,
}

/// The archive's part of a catalogue that is read.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveReader<'a>(pub(crate) &'a CatalogueReader);

/// Instructions of SQLite's machine between two looks at the clock.
const STEPS: i32 = 100_000;

impl CatalogueReader {
    /// Opens the file of a catalogue.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    #[allow(clippy::disallowed_methods, reason = "a search is bounded in real time")]
    pub fn open(path: &Path) -> Result<Self, CatalogueError> {
        let mut connection = schema::open_reader(path)?;
        let (opened, until) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
        let limit = Arc::clone(&until);
        connection
            .progress_handler(
                STEPS,
                Some(move || opened.elapsed().as_secs() > limit.load(Ordering::Relaxed)),
            )
            .map_err(|error| CatalogueError::of(path, &error))?;
        Ok(Self { path: path.to_owned(), connection, opened, until })
    }

    /// What leaves the archive, and what stays.
    pub const fn archive(&self) -> ArchiveReader<'_> {
        ArchiveReader(self)
    }

    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CatalogueError> {
        self.until.store(self.opened.elapsed().as_secs() + PATIENCE_S, Ordering::Relaxed);
        ask(&self.connection).map_err(|error| CatalogueError::of(&self.path, &error))
    }

    /// The same without a limit, where the catalogue has the tables of this release.
    pub(crate) fn ask_long<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CatalogueError> {
        schema::check_version(&self.path, &self.connection)?;
        self.until.store(u64::MAX, Ordering::Relaxed);
        ask(&self.connection).map_err(|error| CatalogueError::of(&self.path, &error))
    }

    /// A page of items.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn search(&self, query: &ItemQuery) -> Result<ItemPage, CatalogueError> {
        self.ask(|connection| search::search(connection, query))
    }

    /// An item by its number.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn item(&self, id: u64) -> Result<Option<ItemRow>, CatalogueError> {
        self.ask(|connection| items::get(connection, id))
    }

    /// A page of a list of items, in its order.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn list(&self, listing: &ItemListing) -> Result<ListedItems, CatalogueError> {
        self.ask(|connection| listing::list(connection, listing))
    }

    /// How many items a filter takes, but no more than `most`.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn count(&self, filter: &Filter, most: u64) -> Result<u64, CatalogueError> {
        ask_summed(self, |connection| listing::count(connection, filter, most))
    }

    /// An item by its name and version.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn item_named(&self, name: &str, version: u32) -> Result<Option<ItemRow>, CatalogueError> {
        self.ask(|connection| listing::named(connection, name, version))
    }

    /// The collections that have an item that the filter takes, at most 1,000: of one mission, or
    /// of all.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn collections(
        &self,
        mission: Option<&str>,
        filter: &Filter,
    ) -> Result<Vec<CollectionRow>, CatalogueError> {
        ask_summed(self, |connection| listing::collections(connection, mission, filter))
    }

    /// A delivery by its number.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn delivery(&self, id: u64) -> Result<Option<DeliveryRow>, CatalogueError> {
        self.ask(|connection| deliveries::get(connection, id))
    }

    /// Deliveries with their items, newest first.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn deliveries(
        &self,
        query: &DeliveryQuery,
    ) -> Result<Vec<(DeliveryRow, ItemRow)>, CatalogueError> {
        self.ask(|connection| deliveries::list(connection, query))
    }

    /// The deliveries of a destination that are not settled, oldest first.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn open_deliveries(&self, destination: &str) -> Result<Vec<DeliveryRow>, CatalogueError> {
        self.ask(|connection| deliveries::open_of(connection, destination))
    }

    /// The newest delivery to a destination that was sent and that a notice names so.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn delivery_named_by(
        &self,
        destination: &str,
        names: &DeliveryNames<'_>,
    ) -> Result<Option<u64>, CatalogueError> {
        self.ask(|connection| deliveries::named_by(connection, destination, names))
    }

    /// The deliveries of earlier versions of an item that were not begun for a subscription.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn superseded(
        &self,
        item: u64,
        subscription: &str,
    ) -> Result<Vec<DeliveryRow>, CatalogueError> {
        self.ask(|connection| deliveries::superseded(connection, item, subscription))
    }

    /// Whether a later version of a delivery's item goes to the same destination for the same
    /// subscription.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn has_later_version(&self, delivery: u64) -> Result<bool, CatalogueError> {
        self.ask(|connection| deliveries::has_later(connection, delivery))
    }

    /// The deliveries to a destination whose deadline is over, and that are not there; the longest
    /// over first.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn late_deliveries(
        &self,
        destination: &str,
        now: Utc,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, CatalogueError> {
        self.ask(|connection| deliveries::late(connection, destination, now, limit))
    }

    /// The state of an item's deliveries for one subscription, by destination.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn states_of(
        &self,
        item: u64,
        subscription: &str,
    ) -> Result<Vec<(String, DeliveryState)>, CatalogueError> {
        self.ask(|connection| deliveries::states_of(connection, item, subscription))
    }

    /// How many deliveries of each destination are in each state.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn counts(&self) -> Result<Vec<DestinationCount>, CatalogueError> {
        ask_summed(self, deliveries::counts)
    }

    /// The note by which the transfer of a delivery's file goes on.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn note(&self, delivery: u64, file: &str) -> Result<Option<String>, CatalogueError> {
        self.ask(|connection| deliveries::note(connection, delivery, file))
    }

    /// What a destination was found to be able to do.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn abilities(&self, destination: &str) -> Result<Option<String>, CatalogueError> {
        self.ask(|connection| deliveries::abilities(connection, destination))
    }

    /// The way of a contact's blocks.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn contact(&self, name: &str) -> Result<Option<ContactTimes>, CatalogueError> {
        self.ask(|connection| times::contact(connection, name))
    }

    /// Visits products, once for each consumer, or once without one, in the order of publication.
    /// It takes as long as it takes.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn accounts(
        &self,
        scope: AccountScope,
        visit: impl FnMut(&AccountRow),
    ) -> Result<(), CatalogueError> {
        self.ask_long(|connection| times::accounts(connection, scope, visit))
    }

    /// Visits the way of each contact that ended from one time until before another.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn contacts(
        &self,
        from: Utc,
        to: Utc,
        visit: impl FnMut(&ContactTimes),
    ) -> Result<(), CatalogueError> {
        self.ask_long(|connection| times::contacts(connection, from, to, visit))
    }

    /// What happened to a delivery, oldest first.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn events(&self, delivery: u64) -> Result<Vec<CatalogueEvent>, CatalogueError> {
        self.ask(|connection| events::of_delivery(connection, delivery))
    }
}

/// Asks for what only a catalogue with the tables of this release has.
fn ask_summed<T>(
    reader: &CatalogueReader,
    ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, CatalogueError> {
    schema::check_version(&reader.path, &reader.connection)?;
    reader.ask(ask)
}
