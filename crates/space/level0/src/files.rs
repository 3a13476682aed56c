//! The interface to storage: the caller provides [`Files`], so that this crate opens no files.

use crate::digests::DigestKinds;
use std::io;

/// A place to keep files by name while a contact is processed, and to publish products.
///
/// Names are flat: letters, digits, `.`, `-` and `_`, no path. Working files of an earlier attempt
/// may exist after a restart: `create` replaces them.
pub trait Files {
    /// A file being written. Writes need no order or durability until it is published.
    type Writer: io::Write;
    /// A file being read.
    type Reader: io::Read;

    /// Begins an empty file, and replaces one of that name.
    ///
    /// # Errors
    /// The reason that the file cannot be made.
    fn create(&mut self, name: &str) -> io::Result<Self::Writer>;

    /// Reads from the start of a file that `create` made and whose writer was flushed.
    ///
    /// # Errors
    /// The reason that the file cannot be read.
    fn open(&mut self, name: &str) -> io::Result<Self::Reader>;

    /// Makes a finished file durable, then visible under its final name.
    ///
    /// # Errors
    /// The reason that the file cannot be published; the product is then incomplete.
    fn publish(&mut self, file: Self::Writer, working: &str, name: &str) -> io::Result<()>;

    /// Deletes a working file.
    ///
    /// # Errors
    /// The reason that the file cannot be removed.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Which digests are taken of published files.
    fn digests(&self) -> DigestKinds {
        DigestKinds::Account
    }
}

impl<F: Files> Files for &mut F {
    type Writer = F::Writer;
    type Reader = F::Reader;

    fn create(&mut self, name: &str) -> io::Result<Self::Writer> {
        (**self).create(name)
    }
    fn open(&mut self, name: &str) -> io::Result<Self::Reader> {
        (**self).open(name)
    }
    fn publish(&mut self, file: Self::Writer, working: &str, name: &str) -> io::Result<()> {
        (**self).publish(file, working, name)
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }
    fn digests(&self) -> DigestKinds {
        (**self).digests()
    }
}

/// Why a contact's products could not be made. Only the environment can fail; no data is an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be used.
    #[error(
        "cannot {what} the file `{name}` of a Level-0 product: {source}; free the space or mend \
        the permission and process the contact again"
    )]
    Files {
        /// What was tried.
        what: &'static str,
        /// The file's name.
        name: String,
        /// What the storage said.
        source: io::Error,
    },
    /// No name is left for a product.
    #[error(
        "ten products named like `{name}` exist already for this second; give a later creation time"
    )]
    NamesUsedUp {
        /// The first of them.
        name: String,
    },
    /// More entries than a construction record has room for.
    #[error(transparent)]
    Construction(#[from] crate::construction::WriteError),
}

impl Error {
    /// An error handler for trying `what` on the file `name`.
    pub(crate) fn on(what: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Files { what, name: name.to_owned(), source }
    }
}
