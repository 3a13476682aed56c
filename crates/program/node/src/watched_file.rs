//! A file that another program writes, and that is read again when it changes.

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file, and what was read of it last.
#[derive(Debug)]
pub struct WatchedFile<T> {
    path: PathBuf,
    /// A longer one is cut, and refused by `parse`.
    bytes_max: usize,
    /// Why a text is refused: its place, and what to do.
    parse: fn(&[u8]) -> Result<T, String>,
    content: Option<T>,
    /// The file as it was looked at last.
    seen: Option<FileVersion>,
    /// The file as it was read last, with or without success.
    read: Option<FileVersion>,
    /// Why the file as it is now is not in force.
    fault: Option<String>,
}

/// What tells one content of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    size: u64,
    /// Seconds since 1970, and nanoseconds.
    pub changed: (i64, i64),
}

impl<T: PartialEq> WatchedFile<T> {
    /// A file that was not read yet.
    pub const fn new(
        path: PathBuf,
        bytes_max: usize,
        parse: fn(&[u8]) -> Result<T, String>,
    ) -> Self {
        Self { path, bytes_max, parse, content: None, seen: None, read: None, fault: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in force.
    pub const fn content(&self) -> Option<&T> {
        self.content.as_ref()
    }

    /// Why the file as it is now is not in force.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Looks at the file, and reads it if it changed and is at rest since the last look. Returns
    /// whether another content is in force.
    pub fn look(&mut self) -> bool {
        let version = match std::fs::metadata(&self.path) {
            Ok(metadata) => FileVersion::of(&metadata),
            Err(error) => {
                (self.seen, self.read) = (None, None);
                self.fault = Some(format!("{}: cannot be read ({error})", self.path.display()));
                return false;
            }
        };
        // A program may be writing it; the first look has nothing to lose.
        let is_at_rest = self.content.is_none() || self.seen == Some(version);
        self.seen = Some(version);
        if self.read == Some(version) || !is_at_rest {
            return false;
        }
        self.read = Some(version);
        let path = self.path.display();
        let read = self.bytes().map_err(|error| format!("{path}: cannot be read ({error})"));
        let parsed =
            read.and_then(|bytes| (self.parse)(&bytes).map_err(|error| format!("{path}, {error}")));
        match parsed {
            Ok(content) => {
                self.fault = None;
                let differs = self.content.as_ref() != Some(&content);
                self.content = Some(content);
                differs
            }
            Err(fault) => {
                self.fault = Some(fault);
                false
            }
        }
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_file(&self.path)?.take(self.bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl FileVersion {
    /// Of a file as it is now.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Opens a regular file. A pipe would wait for its other end.
///
/// # Errors
/// It cannot be opened, or is none.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}
