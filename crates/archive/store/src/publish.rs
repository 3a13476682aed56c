//! Files that appear complete or not at all: they are written under another name, synced and
//! renamed, and the directory is synced.

use crate::disk::{Disk, DiskFile, is_full, read_small};
use crate::format::OtherFormat;
use crate::log::crc;
use skyhaul_units::ByteCount;
use std::io::{self, Write};
use std::sync::Arc;

/// Publishes files into one directory.
///
/// ```
/// use skyhaul_store::{Publisher, sim::SimDisk};
/// use skyhaul_units::ByteCount;
/// use std::{io::Write, sync::Arc};
///
/// let publisher = Publisher::open(Arc::new(SimDisk::new(ByteCount::mib(1))), "products")?;
/// let mut file = publisher.begin("P1540000AAAAAAAAAAAAAA24306000000000.PDS")?;
/// file.write_all(b"packets").expect("room for it");
/// publisher.publish(file)?;
/// # Ok::<(), skyhaul_store::PublishError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Publisher {
    disk: Arc<dyn Disk>,
    dir: String,
}

/// A file being written, under its temporary name. Buffers 256 KiB.
#[derive(Debug)]
pub struct Pending {
    file: Arc<dyn DiskFile>,
    name: String,
    buffer: Vec<u8>,
    size: ByteCount,
}

/// Why a file cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Not a plain file name.
    #[error(
        "`{name}` cannot name a file here: use letters, digits, `.`, `_`, `-`, at most 200 of \
        them, not a leading `.`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The device is full. There is no file under the name; try again when there is space.
    #[error("{path}: no space left; free space on this file system and try again")]
    Full {
        /// The file.
        path: String,
    },
    /// A disk operation failed. There is no file under the name.
    #[error("{path}: cannot {action}: {source}; check the disk and the permissions")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl PublishError {
    fn io(action: &'static str, path: &str, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::Full { path: path.to_owned() };
        }
        Self::Io { action, path: path.to_owned(), source }
    }
}

impl Publisher {
    /// Opens a directory, which is created if absent; removes incomplete files of an earlier
    /// process.
    ///
    /// # Errors
    /// [`PublishError::Io`] where the disk refuses.
    pub fn open(disk: Arc<dyn Disk>, dir: &str) -> Result<Self, PublishError> {
        let refused = |action| move |error| PublishError::io(action, dir, error);
        disk.make_dir(dir).map_err(refused("make the directory"))?;
        for entry in disk.list(dir).map_err(refused("list the directory"))? {
            if entry.name.ends_with(TEMPORARY) {
                disk.remove(&format!("{dir}/{}", entry.name))
                    .map_err(refused("remove an unfinished file"))?;
            }
        }
        Ok(Self { disk, dir: dir.to_owned() })
    }

    /// Begins a file. Two files of one name at the same time are the same file.
    ///
    /// # Errors
    /// [`PublishError::Name`], [`PublishError::Full`], [`PublishError::Io`].
    pub fn begin(&self, name: &str) -> Result<Pending, PublishError> {
        if !is_plain_name(name, 200) {
            return Err(PublishError::Name { name: name.to_owned() });
        }
        let path = self.temporary(name);
        let file = self
            .disk
            .create(&path)
            .map_err(|error| PublishError::io("create the file", &path, error))?;
        Ok(Pending { file, name: name.to_owned(), buffer: Vec::new(), size: ByteCount::ZERO })
    }

    /// Makes the file durable and renames it, which replaces a file of that name. Returns its path
    /// on the disk.
    ///
    /// # Errors
    /// [`PublishError::Full`], [`PublishError::Io`]: the temporary file is removed, an older file
    /// of this name stays.
    pub fn publish(&self, mut file: Pending) -> Result<String, PublishError> {
        let (from, to) = (self.temporary(&file.name), format!("{}/{}", self.dir, file.name));
        let outcome = file
            .flush()
            .and_then(|()| file.file.sync())
            .and_then(|()| self.disk.rename(&from, &to));
        if let Err(error) = outcome {
            self.discard(file);
            return Err(PublishError::io("write the file", &to, error));
        }
        self.disk
            .sync_dir(&self.dir)
            .map_err(|error| PublishError::io("sync the directory", &self.dir, error))?;
        Ok(to)
    }

    /// Gives up on a file.
    pub fn discard(&self, file: Pending) {
        // What cannot be removed now is removed when the directory is opened again.
        let _ = self.disk.remove(&self.temporary(&file.name));
    }

    /// Opens a published file.
    ///
    /// # Errors
    /// [`PublishError::Io`] if there is none, or a disk operation fails.
    pub fn read(&self, name: &str) -> Result<Arc<dyn DiskFile>, PublishError> {
        let path = format!("{}/{name}", self.dir);
        self.disk.open(&path).map_err(|error| PublishError::io("open the file", &path, error))
    }

    fn temporary(&self, name: &str) -> String {
        format!("{}/.{name}{TEMPORARY}", self.dir)
    }
}

impl Pending {
    /// What was written so far.
    pub fn size(&self) -> ByteCount {
        self.size
    }

    /// Reads back the bytes written so far.
    ///
    /// # Errors
    /// What the operating system said.
    pub fn read_at(&mut self, buffer: &mut [u8], offset: ByteCount) -> io::Result<usize> {
        self.flush()?;
        self.file.read_at(buffer, offset)
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER.as_usize() {
            self.flush()?;
        }
        let taken = &bytes[..bytes.len().min(BUFFER.as_usize())];
        self.buffer.extend_from_slice(taken);
        self.size += ByteCount::of(taken.len());
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.size - ByteCount::of(self.buffer.len());
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.append(&self.buffer) {
            // No byte may be written twice: the buffer continues from its beginning.
            self.file.truncate(done)?;
            return Err(error);
        }
        self.buffer.clear();
        Ok(())
    }
}

/// One write to the operating system: so large that its cost does not matter.
const BUFFER: ByteCount = ByteCount::kib(256);
const TEMPORARY: &str = ".part";

/// Whether a text is safe as the name of a file or a directory.
pub(crate) fn is_plain_name(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= longest && !name.starts_with('.') && name.bytes().all(plain)
}

/// What a state file holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub body: Vec<u8>,
    /// One of its two copies was damaged: write it again.
    pub is_damaged: bool,
}

/// Replaces a small state file in one step. It has two copies of the same, so that damage of one
/// loses nothing: magic and version, checksum, then `body`. Two files would not do, because one of
/// them might be older.
pub(crate) fn save_state(disk: &dyn Disk, dir: &str, name: &str, body: &[u8]) -> io::Result<()> {
    let (temporary, path) = (format!("{dir}/.{name}{TEMPORARY}"), format!("{dir}/{name}"));
    let bytes = [&STATE_MAGIC[..], &crc(&[body]).to_be_bytes(), body].concat().repeat(2);
    let file = disk.create(&temporary)?;
    let outcome = file
        .append(&bytes)
        .and_then(|()| file.sync())
        .and_then(|()| disk.rename(&temporary, &path));
    if outcome.is_err() {
        let _ = disk.remove(&temporary);
    }
    outcome?;
    disk.sync_dir(dir)
}

/// Reads the result of `save_state`; `None` if there is no such file.
pub(crate) fn load_state(disk: &dyn Disk, path: &str) -> io::Result<Option<State>> {
    let bytes = match read_small(disk, path, STATE_LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let copies = [first, second].map(intact);
    let is_damaged = copies.contains(&None);
    let Some(body) = copies.into_iter().flatten().next() else {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "both copies are damaged");
        return Err(other_format(&bytes).map_or_else(damaged, io::Error::from));
    };
    Ok(Some(State { body: body.to_vec(), is_damaged }))
}

/// The version that a state file has, where it is another one. A later version may have only the
/// first bytes in common with this one.
fn other_format(bytes: &[u8]) -> Option<OtherFormat> {
    let [magic @ .., known] = STATE_MAGIC;
    let found = *bytes.strip_prefix(&magic)?.first()?;
    (found != known).then_some(OtherFormat { found: found.into(), known: known.into() })
}

/// What one copy holds.
fn intact(copy: &[u8]) -> Option<&[u8]> {
    let (sum, body) = copy.strip_prefix(&STATE_MAGIC)?.split_first_chunk::<4>()?;
    (*sum == crc(&[body]).to_be_bytes()).then_some(body)
}

const STATE_MAGIC: [u8; 4] = *b"SKS\x02";
/// Far above what the bounds on flows allow.
const STATE_LARGEST: ByteCount = ByteCount::mib(4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimDisk;

    fn contents(disk: &SimDisk, path: &str) -> Vec<u8> {
        read_small(disk, path, ByteCount::mib(1)).unwrap()
    }

    #[test]
    fn a_published_file_is_whole_or_absent_at_every_fault_and_every_crash() {
        for fault in 0..8 {
            for seed in 0..64 {
                let disk = SimDisk::new(ByteCount::mib(1));
                let publisher = Publisher::open(Arc::new(disk.clone()), "out").unwrap();
                let mut old = publisher.begin("a.dat").unwrap();
                old.write_all(b"old").unwrap();
                publisher.publish(old).unwrap();
                disk.fail_after(fault);
                let published = publisher.begin("a.dat").and_then(|mut new| {
                    new.write_all(b"newer").unwrap();
                    publisher.publish(new)
                });
                disk.crash(seed);
                let found = contents(&disk, "out/a.dat");
                assert!(
                    found == b"newer" || (published.is_err() && found == b"old"),
                    "{fault} {seed} {found:?}"
                );
                Publisher::open(Arc::new(disk.clone()), "out").unwrap();
                assert_eq!(disk.list("out").unwrap().len(), 1, "nothing half-written stays");
            }
        }
    }

    #[test]
    fn a_full_disk_publishes_nothing_and_the_next_try_succeeds() {
        let disk = SimDisk::new(ByteCount::new(600_000));
        let publisher = Publisher::open(Arc::new(disk.clone()), "out").unwrap();
        let content: Vec<u8> = (0..900_000u32).map(|n| (n % 251) as u8).collect();
        let mut file = publisher.begin("b.dat").unwrap();
        assert!(file.write_all(&content).is_err());
        publisher.discard(file);
        assert_eq!(disk.files(), []);
        disk.set_capacity(ByteCount::mib(2));
        let mut file = publisher.begin("b.dat").unwrap();
        file.write_all(&content).unwrap();
        assert_eq!(file.size(), ByteCount::of(content.len()));
        publisher.publish(file).unwrap();
        assert_eq!(contents(&disk, "out/b.dat"), content);
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        let publisher = Publisher::open(Arc::new(SimDisk::new(ByteCount::mib(1))), "out").unwrap();
        for name in ["", ".", "..", "../a", "a/b", ".hidden", "a\0b", "ä", &"x".repeat(201)] {
            assert!(matches!(publisher.begin(name), Err(PublishError::Name { .. })), "{name}");
        }
    }

    #[test]
    fn damage_of_a_state_file_at_any_byte_costs_nothing_and_is_told_and_of_both_copies_is_an_error()
    {
        let disk = SimDisk::new(ByteCount::mib(1));
        disk.make_dir("s").unwrap();
        assert_eq!(load_state(&disk, "s/x").unwrap(), None);
        for body in [&b"body"[..], b""] {
            save_state(&disk, "s", "x", body).unwrap();
            let kept = |is_damaged| Some(State { body: body.to_vec(), is_damaged });
            assert_eq!(load_state(&disk, "s/x").unwrap(), kept(false));
            let copy = (8 + body.len()) as u64;
            for offset in 0..2 * copy {
                disk.damage("s/x", ByteCount::new(offset)).unwrap();
                assert_eq!(load_state(&disk, "s/x").unwrap(), kept(true), "{offset}");
                let other = ByteCount::new((offset + copy) % (2 * copy));
                disk.damage("s/x", other).unwrap();
                assert!(load_state(&disk, "s/x").is_err(), "{offset}");
                disk.damage("s/x", other).unwrap();
                disk.damage("s/x", ByteCount::new(offset)).unwrap();
            }
        }
    }
}
