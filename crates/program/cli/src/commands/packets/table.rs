//! `--parquet`: packets as rows of a table.

use super::{Picked, refused};
use skyhaul_columns::{Error, PacketTable, Row, TableContent};
use skyhaul_exit::{Exit, Failure};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// The table that packets are written to.
pub struct ParquetTable {
    table: PacketTable<BufWriter<File>>,
    path: PathBuf,
}

impl ParquetTable {
    /// Begins a table.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, content: TableContent) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|source| refused(path, source))?;
        let file = BufWriter::with_capacity(super::WRITE_SIZE, file);
        let table = PacketTable::create(file, content).map_err(|error| failed(path, &error))?;
        Ok(Self { table, path: path.to_owned() })
    }

    /// The next packets come from this file.
    pub fn begin(&mut self, file: &str) {
        self.table.file(file);
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&mut self, packet: &Picked<'_>) -> Result<(), Failure> {
        let Picked { offset, header, time, bytes } = *packet;
        let row = Row { offset, header, time, bytes };
        self.table.push(&row).map_err(|error| failed(&self.path, &error))
    }

    /// Completes the table.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(self) -> Result<(), Failure> {
        let file = self.table.finish().map_err(|error| failed(&self.path, &error))?;
        file.into_inner().map_err(|error| refused(&self.path, error.into_error()))?;
        Ok(())
    }
}

fn failed(path: &Path, error: &Error) -> Failure {
    let what = format!("the table cannot be written ({error})");
    let help = "give the path of a writable file on a disk with free space";
    Failure::new(Exit::Environment, &what, help).at(&path.display().to_string())
}
