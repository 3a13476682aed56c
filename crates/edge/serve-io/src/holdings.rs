//! The catalogue behind the answers, and the files.

use crate::place::{ServeNotice, ServePlace, ServedContacts};
use skyhaul_catalogue::{Filter, ItemListing};
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, ItemRow};
use skyhaul_serve::{
    BodyPlace, ContactSession, FileBody, HeldCollection, HeldItem, HeldPage, HoldingsError,
    ServeAnswer, ServedCatalogue, gone,
};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections to the catalogue that are not in use.
pub struct Readers {
    catalogue: PathBuf,
    free: Mutex<Vec<CatalogueReader>>,
}

/// The catalogue for one request.
pub struct CatalogueHoldings<'a> {
    reader: &'a CatalogueReader,
    contacts: Option<&'a ServedContacts>,
    /// What the operator should know of it.
    pub failure: Option<ServeNotice>,
}

impl Readers {
    pub const fn new(catalogue: PathBuf) -> Self {
        Self { catalogue, free: Mutex::new(Vec::new()) }
    }

    /// Asks the catalogue on a connection that nobody else uses meanwhile.
    pub fn with<T>(&self, ask: impl FnOnce(&CatalogueReader) -> T) -> Result<T, CatalogueError> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = free.map_or_else(|| CatalogueReader::open(&self.catalogue), Ok)?;
        let answer = ask(&reader);
        // As many as searches at a time, at most.
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(answer)
    }
}

impl<'a> CatalogueHoldings<'a> {
    pub const fn new(reader: &'a CatalogueReader, contacts: Option<&'a ServedContacts>) -> Self {
        Self { reader, contacts, failure: None }
    }

    fn kept<T>(&mut self, answer: Result<T, CatalogueError>) -> Result<T, HoldingsError> {
        answer.map_err(|error| match error {
            CatalogueError::Slow(_) => HoldingsError::Slow,
            error => {
                let what = format!("the catalogue cannot be searched: {error}");
                self.failure = Some(ServeNotice::Warning(what));
                HoldingsError::Failed
            }
        })
    }
}

fn held(row: ItemRow) -> HeldItem {
    HeldItem { id: row.id, item: row.item }
}

impl ServedCatalogue for CatalogueHoldings<'_> {
    fn list(&mut self, listing: &ItemListing) -> Result<HeldPage, HoldingsError> {
        let page = self.kept(self.reader.list(listing))?;
        Ok(HeldPage { items: page.items.into_iter().map(held).collect(), next: page.next })
    }

    fn count(&mut self, filter: &Filter, most: u64) -> Result<u64, HoldingsError> {
        self.kept(self.reader.count(filter, most))
    }

    fn named(&mut self, name: &str, version: u32) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(self.kept(self.reader.item_named(name, version))?.map(held))
    }

    fn numbered(&mut self, id: u64) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(self.kept(self.reader.item(id))?.map(held))
    }

    fn collections(&mut self, filter: &Filter) -> Result<Vec<HeldCollection>, HoldingsError> {
        let rows = self.kept(self.reader.collections(filter))?;
        let held = rows.into_iter().map(|row| HeldCollection {
            mission: row.mission,
            product: row.product,
            first: row.first,
        });
        Ok(held.collect())
    }

    fn sessions(&mut self) -> Vec<Arc<ContactSession>> {
        self.contacts.map(|contacts| contacts.board.all()).unwrap_or_default()
    }
}

/// Opens the file of a body.
///
/// # Errors
/// The answer where it is not there, or is not the one that was published.
pub fn open(place: &ServePlace, body: &FileBody) -> Result<File, ServeAnswer> {
    let mut parts = Path::new(&body.name).components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if !is_name {
        return Err(gone());
    }
    let folder = match (body.place, &place.contacts) {
        (BodyPlace::Products, _) => &place.products,
        (BodyPlace::Contacts, Some(contacts)) => &contacts.folder,
        (BodyPlace::Contacts, None) => return Err(gone()),
    };
    let file = File::open(folder.join(&body.name)).map_err(|_| gone())?;
    match file.metadata() {
        Ok(found) if found.is_file() && found.len() == body.size => Ok(file),
        Ok(found) if found.is_file() => {
            let what = "the file is not the one that was published; the operator has the reason";
            Err(ServeAnswer::problem(500, what))
        }
        _ => Err(gone()),
    }
}
