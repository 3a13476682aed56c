//! The interface to the file system: the same code runs on files and on a simulated disk that loses
//! power on demand.
//!
//! Paths are relative to the disk's root, with `/` between parts; this crate makes all of them from
//! numbers and checked names, so none can leave the root. Files grow only at their end, or are cut.

mod real;
pub mod sim;

use core::fmt::Debug;
use skyhaul_units::ByteCount;
use std::io;
use std::sync::Arc;

pub use real::RealDisk;

/// A file system under one root directory.
pub trait Disk: Debug + Send + Sync {
    /// The entries of a directory, sorted by name; empty if the directory does not exist.
    fn list(&self, dir: &str) -> io::Result<Vec<DirectoryEntry>>;
    /// Makes a directory and its parents durably. An existing one is left as it is.
    fn make_dir(&self, dir: &str) -> io::Result<()>;
    /// Makes an empty file; one that exists is emptied. Durable after [`Disk::sync_dir`] of its
    /// directory.
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that exists.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes creations, renames and removals in this directory durable. Fails if [`Disk::in_place`]
    /// does.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Renames a file and replaces the file of that name, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &str) -> io::Result<()>;
    /// Space left for this process.
    fn free_space(&self) -> io::Result<ByteCount>;
    /// An error of the kind `NotFound` if the root is no longer the folder that was opened: it was
    /// removed, moved or unmounted, and data written under its name is now elsewhere.
    fn in_place(&self) -> io::Result<()>;
}

/// An open file. Shared between threads: a sync may run while another thread appends.
pub trait DiskFile: Debug + Send + Sync {
    /// The file's length now, synced or not.
    fn size(&self) -> io::Result<ByteCount>;
    /// Reads at `offset` until `buffer` is full or the file ends; returns the number of bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: ByteCount) -> io::Result<usize>;
    /// Writes all of `bytes` at the end. After an error any part of them may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file to `size`.
    fn truncate(&self, size: ByteCount) -> io::Result<()>;
    /// Makes what was appended before the call durable (`fdatasync`), under the name by which the
    /// file was opened. An error of the kind `NotFound` if that name no longer leads to the file,
    /// whose data could not be found again.
    fn sync(&self) -> io::Result<()>;
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// The name within the directory.
    pub name: String,
    /// File or directory.
    pub kind: EntryKind,
    /// The file's length; zero for a directory.
    pub size: ByteCount,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Reads a whole small file; refuses one larger than `limit`.
pub(crate) fn read_small(disk: &dyn Disk, path: &str, limit: ByteCount) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let size = file.size()?;
    if size > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{size} long, at most {limit}"),
        ));
    }
    let mut bytes = vec![0; size.as_usize()];
    let read = file.read_at(&mut bytes, ByteCount::ZERO)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The text for a folder or file that is not where it was.
pub(crate) fn not_in_place(path: &dyn core::fmt::Display) -> io::Error {
    let said = format!("{path} is missing: the file or its folder was removed, moved or unmounted");
    io::Error::new(io::ErrorKind::NotFound, said)
}

/// Whether the cause of an error is a full device, quota or file size limit: it ends by itself when
/// there is space.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
