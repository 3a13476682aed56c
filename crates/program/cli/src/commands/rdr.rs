//! `skyhaul rdr`: makes JPSS Raw Data Records from packet files, and extracts their packets.

mod dump;
mod info;
mod make;

use skyhaul_exit::{Exit, Failure};
use skyhaul_hdf5::{Error, Library, LoadError, RdrReader};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The subcommands of `skyhaul rdr`.
#[derive(clap::Subcommand)]
pub enum Rdr {
    /// Makes Raw Data Record files from packet files, one for each sensor.
    Make(make::Make),
    /// Shows the content of Raw Data Record files: granules, packets, missing data.
    Info(info::Info),
    /// Writes the packets of a Raw Data Record file back to a packet file.
    Dump(dump::Dump),
}

/// Where the HDF5 library is.
#[derive(clap::Args)]
struct Hdf5 {
    /// The HDF5 library, if it is not found under its usual names.
    #[arg(long, value_name = "FILE")]
    hdf5_library: Option<PathBuf>,
}

impl Hdf5 {
    fn load(&self) -> Result<Library, Failure> {
        Library::load(self.hdf5_library.as_deref()).map_err(|error| {
            let exit = match error {
                LoadError::Missing { .. } | LoadError::Unfit { .. } => Exit::Environment,
            };
            Failure::from_sentence(exit, &error.to_string())
        })
    }
}

/// Carries out the subcommand.
///
/// # Errors
/// There is no HDF5 library, a file cannot be read or written, or it is not what it should be.
pub fn run(command: Rdr, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Rdr::Make(command) => make::run(&command, out),
        Rdr::Info(command) => info::run(&command, out),
        Rdr::Dump(command) => dump::run(&command, out),
    }
}

fn open(library: Library, file: &Path) -> Result<RdrReader, Failure> {
    RdrReader::open(library, file).map_err(|error| refused(&error))
}

/// A file that cannot be read, because of the library or its content.
fn refused(error: &Error) -> Failure {
    let (exit, help) = match error {
        Error::Library { .. } => (Exit::Environment, "give the path of a readable HDF5 file"),
        Error::Content { .. } => (Exit::Result, "check that it is a Raw Data Record (RDR) of JPSS"),
    };
    Failure::new(exit, &error.to_string(), help)
}
