//! Files under a root directory.

use super::{DirectoryEntry, Disk, DiskFile, EntryKind, not_in_place};
use skyhaul_units::ByteCount;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system's files under a root directory, which is locked for this process, or only
/// read. New files are for this user only: folders have the mode 0700, files 0600.
///
/// ```no_run
/// use skyhaul_store::RealDisk;
/// let disk = RealDisk::open("/var/lib/skyhaul/spool".as_ref())?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    /// The folder itself, even if its name leads elsewhere later. None if files are only read.
    home: Option<File>,
    // Released by the operating system when the process ends, for any reason. None if files are
    // only read.
    lock: Option<File>,
}

impl RealDisk {
    /// Locks the directory, which is created with its parents if absent.
    ///
    /// # Errors
    /// `ResourceBusy` if another process holds it; otherwise the operating system's error, with the
    /// path.
    pub fn open(root: &Path) -> io::Result<Self> {
        let explain =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.display()));
        private_folder().recursive(true).create(root).map_err(explain)?;
        let home = Some(File::open(root).map_err(explain)?);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(PRIVATE_FILE)
            .open(root.join(LOCK_NAME))
            .map_err(explain)?;
        // A user who may open it may lock it, which would prevent this node from starting.
        lock.set_permissions(Permissions::from_mode(PRIVATE_FILE)).map_err(explain)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_owned(), home, lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!(
                    "{} is in use by another process: stop it or choose another directory",
                    root.display()
                ),
            )),
            Err(TryLockError::Error(error)) => Err(explain(error)),
        }
    }

    /// Reads a directory that another process may hold; changes are refused.
    pub fn look(root: &Path) -> Self {
        Self { root: root.to_owned(), home: None, lock: None }
    }

    fn may_change(&self) -> io::Result<()> {
        let refused = || {
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the directory is open for reading only",
            )
        };
        self.lock.as_ref().map(|_| ()).ok_or_else(refused)
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file of this disk in the operating system.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

const LOCK_NAME: &str = "lock";
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(PRIVATE_FOLDER);
    builder
}

impl Disk for RealDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<DirectoryEntry>> {
        let listing = match fs::read_dir(self.locate(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut entries = Vec::new();
        for entry in listing {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let kind = if metadata.is_dir() { EntryKind::Directory } else { EntryKind::File };
            let size =
                if metadata.is_dir() { ByteCount::ZERO } else { ByteCount::new(metadata.len()) };
            // A name that is not UTF-8 is not one of this crate.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirectoryEntry { name, kind, size });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        self.may_change()?;
        let mut made = PathBuf::from(&self.root);
        for part in dir.split('/').filter(|part| !part.is_empty()) {
            let parent = made.clone();
            made.push(part);
            match private_folder().create(&made) {
                Ok(()) => File::open(&parent)?.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && made.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.may_change()?;
        let path = self.locate(path);
        // Append mode and truncation exclude one another: the file is emptied first.
        OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(PRIVATE_FILE)
            .open(&path)?;
        RealFile::open(OpenOptions::new().read(true).append(true), path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let append = self.lock.is_some();
        RealFile::open(OpenOptions::new().read(true).append(append), self.locate(path))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.locate(dir))?.sync_all()?;
        self.in_place()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.may_change()?;
        fs::rename(self.locate(from), self.locate(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.may_change()?;
        fs::remove_file(self.locate(path))
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        self.may_change()?;
        fs::remove_dir(self.locate(dir))
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        let figures = rustix::fs::statvfs(&self.root)?;
        Ok(ByteCount::new(figures.f_bavail.saturating_mul(figures.f_frsize)))
    }

    fn in_place(&self) -> io::Result<()> {
        self.home.as_ref().map_or(Ok(()), |home| leads_to(&self.root, home))
    }
}

/// Whether a name still leads to the file that was opened by it.
fn leads_to(path: &Path, opened: &File) -> io::Result<()> {
    let named = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(not_in_place(&path.display()));
        }
        other => other?,
    };
    let opened = opened.metadata()?;
    if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
        return Err(not_in_place(&path.display()));
    }
    Ok(())
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl RealFile {
    fn open(options: &OpenOptions, path: PathBuf) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(Self { file: options.open(&path)?, path }))
    }
}

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<ByteCount> {
        Ok(ByteCount::new(self.file.metadata()?.len()))
    }

    fn read_at(&self, buffer: &mut [u8], offset: ByteCount) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset.as_u64() + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn truncate(&self, size: ByteCount) -> io::Result<()> {
        self.file.set_len(size.as_u64())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // After the sync, so that a removal during the sync is detected.
        leads_to(&self.path, &self.file)
    }
}
