//! Why there is no library, and what it refused.

/// Why the HDF5 library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// There is none.
    #[error(
        "there is no HDF5 library: tried {} ({why}); install it (Debian: libhdf5-103-1 or \
        libhdf5-310, Fedora: hdf5, \
         macOS: brew install hdf5), or give the path of libhdf5.so",
        tried.join(", ")
    )]
    Missing {
        /// Names that were tried, in order.
        tried: Vec<String>,
        /// What the system said of the last one.
        why: String,
    },
    /// It is not the library, or one without something that is needed.
    #[error("{name} cannot be used as the HDF5 library: {why}; install HDF5 1.10 or later")]
    Unfit {
        /// Its name.
        name: String,
        /// What it lacks.
        why: String,
    },
}

/// What could not be done with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library refused.
    #[error("cannot {what} {place}: {said}")]
    Library {
        /// What was tried: `create`, `read`.
        what: &'static str,
        /// File, or object within it.
        place: String,
        /// The library's own words.
        said: String,
    },
    /// What is there is not what a Raw Data Record has there.
    #[error("{place} {what}")]
    Content {
        /// Object within the file.
        place: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    pub(crate) fn content(place: &str, what: impl Into<String>) -> Self {
        Self::Content { place: place.to_owned(), what: what.into() }
    }
}
