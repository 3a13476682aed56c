//! The catalogue behind the answers, and the files.

use crate::place::{ServeNotice, ServePlace, ServedContacts};
use skyhaul_catalogue::{Filter, ItemListing};
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, ItemRow, ListedItems};
use skyhaul_serve::{
    BodyPlace, ContactSession, FileBody, HeldCollection, HeldItem, HeldPage, HoldingsError,
    ServeAnswer, ServedCatalogue, gone,
};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections to the catalogue that are not in use.
pub struct Readers {
    catalogue: Option<PathBuf>,
    free: Mutex<Vec<CatalogueReader>>,
}

/// The catalogue for one request.
pub struct CatalogueHoldings<'a> {
    /// None where no products are served.
    reader: Option<&'a CatalogueReader>,
    contacts: Option<&'a ServedContacts>,
    /// What the operator should know of it.
    pub failure: Option<ServeNotice>,
}

impl Readers {
    /// Of a catalogue; none where no products are served.
    pub const fn new(catalogue: Option<PathBuf>) -> Self {
        Self { catalogue, free: Mutex::new(Vec::new()) }
    }

    /// Asks the catalogue on a connection that nobody else uses meanwhile.
    pub fn with<T>(
        &self,
        ask: impl FnOnce(Option<&CatalogueReader>) -> T,
    ) -> Result<T, CatalogueError> {
        let Some(catalogue) = &self.catalogue else { return Ok(ask(None)) };
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = free.map_or_else(|| CatalogueReader::open(catalogue), Ok)?;
        let answer = ask(Some(&reader));
        // As many as searches at a time, at most.
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(answer)
    }
}

impl<'a> CatalogueHoldings<'a> {
    pub const fn new(
        reader: Option<&'a CatalogueReader>,
        contacts: Option<&'a ServedContacts>,
    ) -> Self {
        Self { reader, contacts, failure: None }
    }

    /// What the catalogue says; `nothing` where there is none.
    fn ask<T>(
        &mut self,
        nothing: T,
        ask: impl FnOnce(&CatalogueReader) -> Result<T, CatalogueError>,
    ) -> Result<T, HoldingsError> {
        let Some(reader) = self.reader else { return Ok(nothing) };
        ask(reader).map_err(|error| match error {
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
        let nothing = ListedItems { items: Vec::new(), next: None };
        let page = self.ask(nothing, |reader| reader.list(listing))?;
        Ok(HeldPage { items: page.items.into_iter().map(held).collect(), next: page.next })
    }

    fn count(&mut self, filter: &Filter, most: u64) -> Result<u64, HoldingsError> {
        self.ask(0, |reader| reader.count(filter, most))
    }

    fn named(&mut self, name: &str, version: u32) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(self.ask(None, |reader| reader.item_named(name, version))?.map(held))
    }

    fn numbered(&mut self, id: u64) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(self.ask(None, |reader| reader.item(id))?.map(held))
    }

    fn collections(
        &mut self,
        mission: Option<&str>,
        filter: &Filter,
    ) -> Result<Vec<HeldCollection>, HoldingsError> {
        let rows = self.ask(Vec::new(), |reader| reader.collections(mission, filter))?;
        let held = rows.into_iter().map(|row| HeldCollection {
            mission: row.mission,
            product: row.product,
            first: row.first,
            last: row.last,
            items: row.items,
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
    let folder = match body.place {
        BodyPlace::Products => place.products.as_ref().map(|products| &products.folder),
        BodyPlace::Contacts => place.contacts.as_ref().map(|contacts| &contacts.folder),
    };
    let folder = folder.ok_or_else(gone)?;
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
