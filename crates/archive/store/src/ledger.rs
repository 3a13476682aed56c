//! Small named records in a directory, each replaced atomically: the journal of work that may be
//! killed at any instant and continues after a restart.

use crate::disk::{Disk, EntryKind};
use crate::format::{help, is_other};
use crate::publish::{is_plain_name, load_state, save_state};
use skyhaul_units::ByteCount;
use std::io;
use std::sync::Arc;

/// A directory of records.
///
/// ```
/// use skyhaul_store::{RecordDirectory, sim::SimDisk};
/// use skyhaul_units::ByteCount;
/// use std::sync::Arc;
///
/// let disk = Arc::new(SimDisk::new(ByteCount::mib(1)));
/// let ledger = RecordDirectory::open(disk, "jobs")?;
/// ledger.put("window-1", b"planned")?;
/// assert_eq!(ledger.load()?.records, [("window-1".to_owned(), b"planned".to_vec())]);
/// # Ok::<(), skyhaul_store::LedgerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordDirectory {
    disk: Arc<dyn Disk>,
    dir: String,
}

/// What a ledger holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Names and contents, by name.
    pub records: Vec<(String, Vec<u8>)>,
    /// Files that are not records, and damaged records.
    pub damaged: Vec<String>,
    /// Records with one damaged copy of two: the other one was used. See [`RecordDirectory::mend`].
    pub mended: Vec<String>,
}

/// Why a ledger cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Not a plain file name.
    #[error(
        "`{0}` cannot name a record: use letters, digits, `.`, `_`, `-`, at most 200 of them, not \
        a leading `.`"
    )]
    Name(String),
    /// Longer than a record may be.
    #[error("`{name}` has {size}, the limit of a record is {LARGEST}")]
    TooLarge {
        /// The record.
        name: String,
        /// Its length.
        size: ByteCount,
    },
    /// The disk operation failed. The record is as it was.
    #[error(
        "{path}: {source}{}",
        help(.source, "; check the disk and the permissions of the state folder")
    )]
    Io {
        /// The file.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
}

/// The longest record: far more than a plan or a state needs.
const LARGEST: ByteCount = ByteCount::new((1 << 20) - 64);

impl RecordDirectory {
    /// Opens a directory, which is created if absent; removes incomplete files of an earlier
    /// process.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn open(disk: Arc<dyn Disk>, dir: &str) -> Result<Self, LedgerError> {
        let refused = |source| LedgerError::Io { path: dir.to_owned(), source };
        disk.make_dir(dir).map_err(refused)?;
        // The last process may have ended between a rename and its sync: files that are visible now
        // must not vanish later.
        disk.sync_dir(dir).map_err(refused)?;
        for entry in disk.list(dir).map_err(refused)? {
            if entry.kind == EntryKind::File && entry.name.starts_with('.') {
                disk.remove(&format!("{dir}/{}", entry.name)).map_err(refused)?;
            }
        }
        Ok(Self { disk, dir: dir.to_owned() })
    }

    /// Opens a directory to read while another process may write: nothing is created, mended or
    /// removed.
    pub fn as_it_is(disk: Arc<dyn Disk>, dir: &str) -> Self {
        Self { disk, dir: dir.to_owned() }
    }

    /// All records.
    ///
    /// # Errors
    /// [`LedgerError::Io`] if the directory cannot be listed, or a record is of another version of
    /// this program.
    pub fn load(&self) -> Result<Loaded, LedgerError> {
        let listed = self.disk.list(&self.dir);
        let entries =
            listed.map_err(|source| LedgerError::Io { path: self.dir.clone(), source })?;
        let mut loaded = Loaded::default();
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            match load_state(&*self.disk, &self.path(&entry.name)) {
                Ok(Some(state)) => {
                    if state.is_damaged {
                        loaded.mended.push(entry.name.clone());
                    }
                    loaded.records.push((entry.name, state.body));
                }
                Ok(None) => {}
                Err(source) if is_other(&source) => {
                    return Err(LedgerError::Io { path: self.path(&entry.name), source });
                }
                Err(_) => loaded.damaged.push(entry.name),
            }
        }
        Ok(loaded)
    }

    /// Writes the records with a damaged copy again, and returns their names.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn mend(&self, loaded: &Loaded) -> Result<Vec<String>, LedgerError> {
        let mut told = Vec::new();
        for (name, body) in loaded.records.iter().filter(|(name, _)| loaded.mended.contains(name)) {
            self.put(name, body)?;
            told.push(format!(
                "{name}: one of two copies was damaged; the other copy was used, no data is lost"
            ));
        }
        Ok(told)
    }

    /// Writes a record, and replaces one of that name in one step. Durable when this returns.
    ///
    /// # Errors
    /// [`LedgerError`]: the record is as it was.
    pub fn put(&self, name: &str, body: &[u8]) -> Result<(), LedgerError> {
        if !is_plain_name(name, 200) {
            return Err(LedgerError::Name(name.to_owned()));
        }
        let size = ByteCount::of(body.len());
        if size > LARGEST {
            return Err(LedgerError::TooLarge { name: name.to_owned(), size });
        }
        let refused = |source| LedgerError::Io { path: self.path(name), source };
        save_state(&*self.disk, &self.dir, name, body).map_err(refused)
    }

    /// Removes a record; an absent one is not an error.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), LedgerError> {
        let path = self.path(name);
        let removed = match self.disk.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.disk.sync_dir(&self.dir),
        };
        removed.map_err(|source| LedgerError::Io { path, source })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimDisk;

    fn open(disk: &SimDisk) -> RecordDirectory {
        RecordDirectory::open(Arc::new(disk.clone()), "jobs").unwrap()
    }

    #[test]
    fn a_record_is_what_it_was_or_what_it_became_at_every_fault_and_crash() {
        for fault in 0..8 {
            for seed in 0..32 {
                let disk = SimDisk::new(ByteCount::mib(1));
                open(&disk).put("a", b"planned").unwrap();
                let ledger = open(&disk);
                disk.fail_after(fault);
                let put = ledger.put("a", b"done");
                disk.crash(seed);
                let loaded = open(&disk).load().unwrap();
                assert!(loaded.damaged.is_empty(), "{:?}", loaded.damaged);
                let body = &loaded.records[0].1;
                assert!(body == b"done" || (put.is_err() && body == b"planned"), "{fault} {seed}");
            }
        }
    }

    #[test]
    fn a_damaged_record_is_named_and_the_others_are_read() {
        let disk = SimDisk::new(ByteCount::mib(1));
        let ledger = open(&disk);
        ledger.put("a", b"one").unwrap();
        ledger.put("b", b"two").unwrap();
        disk.damage("jobs/a", ByteCount::new(9)).unwrap();
        let loaded = ledger.load().unwrap();
        assert_eq!(
            (&loaded.damaged, &loaded.mended, loaded.records.len()),
            (&vec![], &vec!["a".to_owned()], 2)
        );
        assert!(ledger.mend(&loaded).unwrap()[0].starts_with("a: one of two copies"));
        assert!(ledger.load().unwrap().mended.is_empty());
        disk.damage("jobs/a", ByteCount::new(9)).unwrap();
        disk.damage("jobs/a", ByteCount::new(20)).unwrap();
        let loaded = ledger.load().unwrap();
        assert_eq!((loaded.damaged, loaded.records.len()), (vec!["a".to_owned()], 1));
        ledger.remove("b").unwrap();
        ledger.remove("b").unwrap();
        assert!(ledger.load().unwrap().records.is_empty());
    }

    #[test]
    fn names_that_leave_the_directory_and_bodies_too_long_are_refused() {
        let ledger = open(&SimDisk::new(ByteCount::mib(4)));
        assert!(matches!(ledger.put("../a", b""), Err(LedgerError::Name(_))));
        assert!(matches!(ledger.put("a", &vec![0; 1 << 20]), Err(LedgerError::TooLarge { .. })));
    }
}
