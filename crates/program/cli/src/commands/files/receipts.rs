//! The file of receipts: a line of JSON for each file that is complete and on disk at the receiving
//! end.

use skyhaul_exit::Failure;
use skyhaul_files::{FileContent, FileReceipt, RelPath};
use skyhaul_net::Clock;
use skyhaul_node::log;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Appends receipts.
pub struct Receipts {
    file: File,
    path: PathBuf,
    clock: Clock,
}

impl Receipts {
    /// Appends to the file that is `given`, or to this user's. If this user's file cannot be
    /// opened, a note says so and there are no receipts.
    ///
    /// # Errors
    /// The file that is given cannot be written.
    pub fn kept(given: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(path) = given {
            return Self::open(path).map(Some).map_err(|error| failed(path, error));
        }
        let Some(path) = of_this_user() else { return Ok(None) };
        let opened = make_room(&path).and_then(|()| Self::open(&path));
        if let Err(error) = &opened {
            // Standard error may be closed.
            log::say(&format!("note: receipts are not written: {}: {error}", path.display()));
        }
        Ok(opened.ok())
    }

    fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, path: path.to_owned(), clock: Clock::start() })
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
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
        file: FileContent,
    ) -> Result<(), Failure> {
        let receipt = FileReceipt::new(self.clock.utc().as_nanos(), what, peer, path, file);
        let mut line =
            serde_json::to_vec(&receipt).map_err(|error| failed(&self.path, error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| failed(&self.path, error))
    }

    /// Syncs the receipts to disk.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn sync(&self) -> Result<(), Failure> {
        match self.file.sync_data() {
            // A device such as `/dev/null` cannot be synced.
            Err(error) if error.kind() != ErrorKind::InvalidInput => Err(failed(&self.path, error)),
            _ => Ok(()),
        }
    }
}

/// The file in this user's state folder (XDG base directories); a service may have none.
#[allow(clippy::disallowed_methods, reason = "the folder is told by the environment alone")]
fn of_this_user() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("skyhaul/receipts.jsonl"))
}

/// Makes the folder, and renames a file that has become large, over the one renamed before.
fn make_room(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::metadata(path) {
        Ok(found) if found.len() > LARGE => std::fs::rename(path, path.with_extension("old.jsonl")),
        _ => Ok(()),
    }
}

/// Bytes; some 250,000 receipts.
const LARGE: u64 = 64 << 20;

fn failed(path: &Path, source: std::io::Error) -> Failure {
    let help = "give --receipts a writable file on a disk with free space";
    Failure::io("the receipts cannot be written", &path.display().to_string(), help, source)
}
