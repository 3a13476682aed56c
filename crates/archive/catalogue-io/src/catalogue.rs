//! Writing: one thread, one transaction for all that waits.

use crate::deliveries::{self, DeliveryOffer};
use crate::error::CatalogueError;
use crate::events::EventSubject;
use crate::reader::CatalogueReader;
use crate::{events, items, schema, times};
use rusqlite::{Connection, TransactionBehavior};
use skyhaul_catalogue::{ContactTimes, Item, ItemTimes};
use skyhaul_dispatch::Delivery;
use skyhaul_units::Utc;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The catalogue of a node. Its methods wait until what they write is on the disk.
#[derive(Debug)]
pub struct Catalogue {
    path: PathBuf,
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// The archive's part of a catalogue that is written.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveWriter<'a>(pub(crate) &'a Catalogue);

/// What publishing an item did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedItem {
    /// The item's number.
    pub item: u64,
    /// Whether it was not there before.
    pub is_new: bool,
    /// The deliveries that began, each with its destination.
    pub deliveries: Vec<(String, u64)>,
}

type Work = Box<dyn FnOnce(&Connection) -> rusqlite::Result<()> + Send>;

/// What a caller wants written, and where it waits.
struct Job {
    work: Work,
    done: Sender<Result<(), CatalogueError>>,
}

/// Callers that wait for the writer; further ones wait for their place.
const WAITING_MAX: usize = 1_024;
/// Jobs of one transaction.
const GROUP_MAX: usize = 256;

impl Catalogue {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn open(path: &Path) -> Result<Self, CatalogueError> {
        let connection = schema::open(path)?;
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let file = path.to_owned();
        let writer = std::thread::Builder::new()
            .name("skyhaul-catalogue".to_owned())
            .spawn(move || write(&file, connection, &waiting))
            .map_err(|error| CatalogueError::Database {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Self { path: path.to_owned(), jobs: Some(jobs), writer: Some(writer) })
    }

    /// A connection that reads.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn reader(&self) -> Result<CatalogueReader, CatalogueError> {
        CatalogueReader::open(&self.path)
    }

    /// What leaves the archive, and what stays.
    pub const fn archive(&self) -> ArchiveWriter<'_> {
        ArchiveWriter(self)
    }

    /// Has something written, and waits until it is on the disk.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, CatalogueError> {
        let jobs = self.jobs.as_ref().ok_or(CatalogueError::Closed)?;
        let ((done, ended), (result, written)) = (channel(), channel());
        let work: Work = Box::new(move |connection| {
            // The caller waits: it is there.
            let _ = result.send(work(connection)?);
            Ok(())
        });
        jobs.send(Job { work, done }).map_err(|_| CatalogueError::Closed)?;
        ended.recv().map_err(|_| CatalogueError::Closed)??;
        written.recv().map_err(|_| CatalogueError::Closed)
    }

    /// Adds an item and begins its deliveries. What is there already stays as it is.
    ///
    /// # Errors
    /// See [`CatalogueError`]: publish it again.
    pub fn publish(
        &self,
        item: Item,
        offers: Vec<DeliveryOffer>,
        now: Utc,
    ) -> Result<PublishedItem, CatalogueError> {
        self.write(move |connection| {
            let (id, is_new) = items::add(connection, &item)?;
            if is_new {
                let text = format!("{} version {}", item.name, item.version);
                events::add(connection, now, EventSubject::Item(id), "published", &text)?;
            }
            let begun = begin(connection, id, &offers, now)?;
            Ok(PublishedItem { item: id, is_new, deliveries: begun })
        })
    }

    /// Begins deliveries of items that are there, in one transaction. Returns each that began with
    /// its destination. What is there already stays as it is.
    ///
    /// # Errors
    /// See [`CatalogueError`]: offer them again.
    pub fn offer(
        &self,
        items: Vec<(u64, Vec<DeliveryOffer>)>,
        now: Utc,
    ) -> Result<Vec<(String, u64)>, CatalogueError> {
        self.write(move |connection| {
            let mut begun = Vec::new();
            for (item, offers) in &items {
                begun.extend(begin(connection, *item, offers, now)?);
            }
            Ok(begun)
        })
    }

    /// Keeps the way of a contact's blocks, which ended then.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_contact(
        &self,
        name: &str,
        closed: Utc,
        contact: ContactTimes,
    ) -> Result<(), CatalogueError> {
        let name = name.to_owned();
        self.write(move |connection| times::keep_contact(connection, &name, closed, &contact))
    }

    /// Keeps the way of the last packet of an item that is there.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_times(
        &self,
        name: &str,
        version: u32,
        item: ItemTimes,
    ) -> Result<(), CatalogueError> {
        let name = name.to_owned();
        self.write(move |connection| times::keep_item(connection, &name, version, &item))
    }

    /// Writes what became of a delivery.
    ///
    /// # Errors
    /// See [`CatalogueError`]: do not let the effect be seen.
    pub fn save(&self, id: u64, delivery: Delivery) -> Result<(), CatalogueError> {
        self.write(move |connection| {
            deliveries::save(connection, id, &delivery)?;
            let text = delivery.reason.as_deref().unwrap_or_default();
            let what = delivery.state.name();
            events::add(connection, delivery.since, EventSubject::Delivery(id), what, text)
        })
    }

    /// Writes that a delivery begins anew, under a new number, which it returns; none where the
    /// files of its item are gone.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn renew(&self, id: u64, delivery: Delivery) -> Result<Option<u32>, CatalogueError> {
        self.write(move |connection| {
            if !deliveries::is_of_present(connection, id)? {
                return Ok(None);
            }
            deliveries::save(connection, id, &delivery)?;
            let sequence = deliveries::renumber(connection, id)?;
            let text = format!("as number {sequence}");
            events::add(connection, delivery.since, EventSubject::Delivery(id), "again", &text)?;
            Ok(Some(sequence))
        })
    }

    /// Keeps the note by which the transfer of a delivery's file goes on.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_note(&self, id: u64, file: &str, note: &str) -> Result<(), CatalogueError> {
        let (file, note) = (file.to_owned(), note.to_owned());
        self.write(move |connection| deliveries::keep_note(connection, id, &file, &note))
    }

    /// Removes the notes of a delivery's files: what they name is gone.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn drop_notes(&self, id: u64) -> Result<(), CatalogueError> {
        self.write(move |connection| deliveries::drop_notes(connection, id))
    }

    /// Keeps what a destination was found to be able to do.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn keep_abilities(&self, destination: &str, text: &str) -> Result<(), CatalogueError> {
        let (destination, text) = (destination.to_owned(), text.to_owned());
        self.write(move |connection| deliveries::keep_abilities(connection, &destination, &text))
    }
}

impl Drop for Catalogue {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Begins deliveries of an item. Returns each that began with its destination.
fn begin(
    connection: &Connection,
    item: u64,
    offers: &[DeliveryOffer],
    now: Utc,
) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut begun = Vec::new();
    for offer in offers {
        let id = deliveries::offer(connection, item, offer, now)?;
        begun.extend(id.map(|id| (offer.destination.clone(), id)));
    }
    Ok(begun)
}

/// Writes until nobody can ask any more.
fn write(path: &Path, mut connection: Connection, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let group: Vec<Job> =
            std::iter::once(first).chain(waiting.try_iter().take(GROUP_MAX - 1)).collect();
        let (work, done): (Vec<Work>, Vec<_>) =
            group.into_iter().map(|job| (job.work, job.done)).unzip();
        let ends = group_written(path, &mut connection, work);
        for (done, end) in done.into_iter().zip(ends) {
            let _ = done.send(end);
        }
    }
}

/// Carries out jobs in one transaction. The failure of one undoes only that one, unless the
/// database cannot go on.
fn group_written(
    path: &Path,
    connection: &mut Connection,
    work: Vec<Work>,
) -> Vec<Result<(), CatalogueError>> {
    let count = work.len();
    let error = |error: &rusqlite::Error| CatalogueError::of(path, error);
    let written = (|| {
        // Immediate: another program that writes is waited for, not met half-way.
        let behaviour = TransactionBehavior::Immediate;
        let mut transaction = connection.transaction_with_behavior(behaviour)?;
        let mut ends = Vec::with_capacity(count);
        for job in work {
            let savepoint = transaction.savepoint()?;
            match job(&savepoint).and_then(|()| savepoint.commit()) {
                // A full disk, for one, undoes the whole transaction.
                Err(failure) if transaction.is_autocommit() => return Err(failure),
                end => ends.push(end.map_err(|failure| error(&failure))),
            }
        }
        transaction.commit()?;
        Ok(ends)
    })();
    // Without the commit nothing of it is written.
    written.unwrap_or_else(|failure: rusqlite::Error| {
        (0..count).map(|_| Err(error(&failure))).collect()
    })
}

#[cfg(test)]
mod tests;
