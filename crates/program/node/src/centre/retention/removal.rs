//! Removes the files of products: each step is durable before the next begins.

use skyhaul_catalogue::Item;
use skyhaul_catalogue_io::{Catalogue, CatalogueError, ItemRemoval, ItemRow};
use skyhaul_units::Utc;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Why products are not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The catalogue cannot be read or written.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store cannot remove a contact.
    #[error("{0}")]
    Store(String),
    /// A file cannot be removed.
    #[error("{place}: {source}; give this user write permission there, or repair the disk")]
    File {
        /// The file or folder.
        place: String,
        /// What the operating system says.
        source: io::Error,
    },
}

/// Marks products as leaving. Returns those that were marked: others are held or needed by now.
pub fn mark(
    catalogue: &Catalogue,
    removals: Vec<ItemRemoval>,
    now: Utc,
) -> Result<Vec<u64>, RemovalError> {
    Ok(catalogue.archive().mark(removals, now)?)
}

/// Removes the files of products that are marked, durably.
pub fn remove_files(products: &Path, leaving: &[ItemRow]) -> Result<(), RemovalError> {
    for row in leaving {
        remove(products, &row.item)?;
    }
    let synced = File::open(products).and_then(|folder| folder.sync_all());
    synced.map_err(|source| at(products, source))
}

/// Settles products whose files are removed.
pub fn settle(catalogue: &Catalogue, leaving: &[ItemRow]) -> Result<(), RemovalError> {
    let ids = leaving.iter().map(|row| row.id).collect();
    Ok(catalogue.archive().settle(ids)?)
}

/// Products of one round.
const ROUND: usize = 256;

/// Removes the files of all products that are marked, and settles them: also those of a run that a
/// kill ended.
pub fn finish(catalogue: &Catalogue, products: &Path) -> Result<(), RemovalError> {
    let reader = catalogue.reader()?;
    loop {
        let leaving = reader.archive().leaving(ROUND)?;
        if leaving.is_empty() {
            return Ok(());
        }
        remove_files(products, &leaving)?;
        settle(catalogue, &leaving)?;
    }
}

/// A file of a product that is not where it was published: the folder may not be mounted.
pub fn absent(products: &Path, item: &Item) -> Option<String> {
    let is_absent = |name: &&str| products.join(name).symlink_metadata().is_err();
    item.files.iter().map(|file| file.name.as_str()).find(is_absent).map(str::to_owned)
}

fn remove(products: &Path, item: &Item) -> Result<(), RemovalError> {
    for file in &item.files {
        let path = products.join(&file.name);
        match fs::remove_file(&path) {
            // Removed before a kill.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(|source| at(&path, source))?,
        }
    }
    Ok(())
}

fn at(path: &Path, source: io::Error) -> RemovalError {
    RemovalError::File { place: path.display().to_string(), source }
}

#[cfg(test)]
mod tests;
