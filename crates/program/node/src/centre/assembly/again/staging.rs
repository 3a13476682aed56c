//! The hidden folder in which products are made again, before it is known whether they differ.

use skyhaul_catalogue::Item;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder in which products are made again, empty.
pub fn staging(products: &Path) -> io::Result<PathBuf> {
    let dir = place(products);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir(&dir)?;
    Ok(dir)
}

fn place(products: &Path) -> PathBuf {
    products.join(".reprocess.work")
}

/// Removes it.
pub fn clean(products: &Path) {
    // It holds nothing that counts; the next job clears it too.
    let _ = fs::remove_dir_all(place(products));
}

/// Moves the files of a product that was made again to where products are, its record last.
pub fn commit(products: &Path, item: &Item) -> io::Result<()> {
    let from = place(products);
    for file in &item.files {
        match fs::rename(from.join(&file.name), products.join(&file.name)) {
            // Moved before another product of the job failed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                products.join(&file.name).metadata().map(drop)?;
            }
            moved => moved?,
        }
    }
    File::open(products)?.sync_all()
}
