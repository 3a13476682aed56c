//! The file of receipts: a line of JSON for each file that is whole and on disk at the receiving end.

use crate::failure::Failure;
use skyhaul_files::{Hash, Receipt, RelPath};
use skyhaul_net::Clock;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Appends receipts.
pub struct Receipts {
    file: File,
    path: PathBuf,
    clock: Clock,
}

impl Receipts {
    /// At the end of the file at `path`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file =
            OpenOptions::new().create(true).append(true).open(path).map_err(|error| failed(path, error))?;
        Ok(Self { file, path: path.to_owned(), clock: Clock::start() })
    }

    /// Adds one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(
        &mut self,
        what: &'static str,
        peer: &str,
        path: &RelPath,
        file: (u64, Hash),
    ) -> Result<(), Failure> {
        let receipt = Receipt::new(self.clock.utc().as_nanos(), what, peer, path, file);
        let mut line = serde_json::to_vec(&receipt).map_err(|error| failed(&self.path, error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| failed(&self.path, error))
    }

    /// Has them on disk.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn sync(&self) -> Result<(), Failure> {
        self.file.sync_data().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, source: std::io::Error) -> Failure {
    let help = "give --receipts a file in a folder with room that may be written";
    Failure::io("the receipts cannot be written", &path.display().to_string(), help, source)
}
