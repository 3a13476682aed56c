//! What goes wrong with a catalogue.

use std::path::PathBuf;

/// A search may take so many seconds.
pub(crate) const PATIENCE_S: u64 = 10;

/// Why the catalogue cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file was written by a later release.
    #[error(
        "{}: the catalogue has version {found}, this program reads {known}; install the release \
        that wrote it, or a later one",
        .path.display()
    )]
    Later {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The latest that is known here.
        known: u32,
    },
    /// The file was written by an earlier release, and is only read here.
    #[error(
        "{}: the catalogue has version {found}, this program reads {known}; start the node once: \
        it takes the file over",
        .path.display()
    )]
    Earlier {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that is read here.
        known: u32,
    },
    /// The file is no catalogue, or damaged.
    #[error(
        "{}: the catalogue is damaged ({reason}); move it away and start the node: it makes a new \
        one from the products that are there",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// Another program has it open for writing.
    #[error("{}: another program writes the catalogue; end that one", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk of the catalogue is full; free space there", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The query took too long.
    #[error("the search took longer than {0} s; narrow it by mission, product or time")]
    Slow(u64),
    /// Something else.
    #[error("{}: {reason}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The thread that writes has ended.
    #[error("the catalogue is closed")]
    Closed,
}

impl CatalogueError {
    pub(crate) fn of(path: &std::path::Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path, reason }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::OperationInterrupted) => Self::Slow(PATIENCE_S),
            _ => Self::Database { path, reason },
        }
    }
}
