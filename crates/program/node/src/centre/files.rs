//! Product files on disk: written in a hidden folder, made durable, then made visible.

use skyhaul_level0::{DigestKinds, Files};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The files of one contact's products.
#[derive(Debug, Clone)]
pub struct ProductFiles {
    /// Where products appear.
    products: PathBuf,
    /// The hidden folder: on the same file system, so that a rename moves the files.
    work: PathBuf,
}

/// A file that is being written. It is flushed to the disk now and then, so that the final sync is
/// short.
#[derive(Debug)]
pub struct ProductWriter {
    file: BufWriter<File>,
    unsynced: u64,
}

/// The bytes of one flush: a sixteenth of a second on a slow disk.
const SYNC_EVERY: u64 = 16 << 20;

impl ProductFiles {
    /// Files of the contact called `contact`, to appear in the folder `products`. Leftovers of an
    /// earlier attempt are removed. The folder `products` is not created here: where it has
    /// vanished, its file system is not mounted.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(products: &Path, contact: &str) -> io::Result<Self> {
        let work = products.join(format!(".{contact}.work"));
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir(&work).map_err(|error| vanished(error, products))?;
        Ok(Self { products: products.to_owned(), work })
    }

    /// Removes the folder that was worked in.
    pub fn clean(products: &Path, contact: &str) {
        // It holds nothing that counts; the next contact of this name clears it too.
        let _ = fs::remove_dir_all(products.join(format!(".{contact}.work")));
    }
}

/// Names the folder in the error where it is missing.
fn vanished(error: io::Error, products: &Path) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound && !products.exists() {
        return io::Error::new(
            io::ErrorKind::NotFound,
            "the folder is missing; mount or create it",
        );
    }
    error
}

impl Files for ProductFiles {
    type Writer = ProductWriter;
    type Reader = File;

    fn create(&mut self, name: &str) -> io::Result<ProductWriter> {
        let file =
            File::create(self.work.join(name)).map_err(|error| vanished(error, &self.products))?;
        let file = BufWriter::with_capacity(256 << 10, file);
        Ok(ProductWriter { file, unsynced: 0 })
    }

    fn open(&mut self, name: &str) -> io::Result<File> {
        File::open(self.work.join(name)).map_err(|error| vanished(error, &self.products))
    }

    fn publish(&mut self, mut file: ProductWriter, working: &str, name: &str) -> io::Result<()> {
        file.flush()?;
        file.file.get_ref().sync_data()?;
        fs::rename(self.work.join(working), self.products.join(name))
            .map_err(|error| vanished(error, &self.products))?;
        File::open(&self.products)?.sync_all()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.work.join(name)).map_err(|error| vanished(error, &self.products))
    }

    /// The catalogue keeps them, for delivery records.
    fn digests(&self) -> DigestKinds {
        DigestKinds::Records
    }
}

impl Write for ProductWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written as u64;
        if self.unsynced >= SYNC_EVERY {
            self.unsynced = 0;
            self.file.flush()?;
            self.file.get_ref().sync_data()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
