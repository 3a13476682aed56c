//! Why no Raw Data Records were made.

use skyhaul_level0::rdr::{GranuleError, IndexError};
use std::io;
use std::path::PathBuf;

/// Why no Raw Data Records were made.
#[derive(Debug, thiserror::Error)]
pub enum RdrError {
    /// A packet file cannot be read.
    #[error("{} cannot be read ({source}); give the path of a readable packet \
            file", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is no packet file.
    #[error(
        "{} has no space packet at byte {offset}; give packet files, as `skyhaul decode \
        --packets-out` writes them",
        file.display()
    )]
    NotPackets {
        /// Which.
        file: PathBuf,
        /// Where the packets end.
        offset: u64,
    },
    /// The packets cannot be sorted.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A granule cannot be packed.
    #[error(transparent)]
    Granule(#[from] GranuleError),
    /// The library refused.
    #[error("{0}; free space there or repair the folder")]
    Hdf5(#[from] skyhaul_hdf5::Error),
    /// A file cannot be written.
    #[error("{} cannot be written ({source}); free space there or repair the \
            folder", file.display())]
    Write {
        /// Which.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}
