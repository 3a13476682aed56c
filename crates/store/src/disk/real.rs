//! Files under a root directory.

use super::{Disk, DiskFile, Entry, EntryKind};
use skyhaul_units::Bytes;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system's files under a root directory, held for this process alone, or only looked at.
///
/// ```no_run
/// use skyhaul_store::RealDisk;
/// let disk = RealDisk::open("/var/lib/skyhaul/spool".as_ref())?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    // Released by the operating system when the process ends, however it ends. None: files are only read.
    lock: Option<File>,
}

impl RealDisk {
    /// Takes the directory, made with its parents where absent.
    ///
    /// # Errors
    /// `ResourceBusy` where another process holds it; otherwise what the operating system said, with the
    /// path.
    pub fn open(root: &Path) -> io::Result<Self> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.display()));
        fs::create_dir_all(root).map_err(explain)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(root.join(LOCK_NAME))
            .map_err(explain)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root: root.to_owned(), lock: Some(lock) }),
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

    /// Looks at a directory that another process may hold; whatever would change it is refused.
    pub fn look(root: &Path) -> Self {
        Self { root: root.to_owned(), lock: None }
    }

    fn may_change(&self) -> io::Result<()> {
        let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "the directory is only looked at");
        self.lock.as_ref().map(|_| ()).ok_or_else(refused)
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a file of this disk lies in the operating system's terms.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

const LOCK_NAME: &str = "lock";

impl Disk for RealDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<Entry>> {
        let listing = match fs::read_dir(self.locate(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut entries = Vec::new();
        for entry in listing {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let kind = if metadata.is_dir() { EntryKind::Directory } else { EntryKind::File };
            let size = if metadata.is_dir() { Bytes::ZERO } else { Bytes::new(metadata.len()) };
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry { name, kind, size });
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
            match fs::create_dir(&made) {
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
        OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        Ok(Arc::new(RealFile(OpenOptions::new().read(true).append(true).open(&path)?)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let append = self.lock.is_some();
        Ok(Arc::new(RealFile(OpenOptions::new().read(true).append(append).open(self.locate(path))?)))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.locate(dir))?.sync_all()
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

    fn free_space(&self) -> io::Result<Bytes> {
        let figures = rustix::fs::statvfs(&self.root)?;
        Ok(Bytes::new(figures.f_bavail.saturating_mul(figures.f_frsize)))
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<Bytes> {
        Ok(Bytes::new(self.0.metadata()?.len()))
    }

    fn read_at(&self, buffer: &mut [u8], offset: Bytes) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset.as_u64() + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    fn truncate(&self, size: Bytes) -> io::Result<()> {
        self.0.set_len(size.as_u64())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
