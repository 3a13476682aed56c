//! A drop folder on the file system: its listing, its watch, and the reading of its files.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use skyhaul_files::drop_folder::{Arrival, DropFolder, DroppedFile, is_dropped_name};
use skyhaul_files::{FileHasher, Hash, PathKind, RelPath, Selection};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A folder, and which of its files take part.
#[derive(Debug)]
pub struct DropPlace {
    path: PathBuf,
    selection: Selection,
    /// None where it cannot be watched: it is listed all the same.
    watch: Option<Watch>,
}

/// The watch of a folder: on a network file system it notices only what this host does.
#[derive(Debug)]
struct Watch {
    inotify: OwnedFd,
    /// The device and inode of the folder that is watched.
    of: [u64; 2],
    /// Names that were renamed into it since the last listing.
    renamed: BTreeSet<RelPath>,
    /// Whether anything happened since the last listing.
    is_stirred: bool,
}

/// What a listing found, beside the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// The folder of the last listing, or the first one.
    Same,
    /// Another folder under the same path: something was mounted, unmounted or made anew.
    Other,
}

/// Read at once.
const READ: usize = 1 << 20;
/// Names that are remembered as renamed: what is beyond has to stand still.
const RENAMED_MAX: usize = 10_000;

impl DropPlace {
    /// The folder at `path`.
    pub const fn new(path: PathBuf, selection: Selection) -> Self {
        Self { path, selection, watch: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether less than a twentieth of its file system is free for this user: files leave for room
    /// then, before programs cannot write any more.
    pub fn is_nearly_full(&self) -> bool {
        let found = rustix::fs::statvfs(&self.path);
        found.is_ok_and(|found| found.f_bavail.saturating_mul(20) < found.f_blocks)
    }

    /// Where a file of it is.
    pub fn file(&self, name: &RelPath) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.as_bytes()))
    }

    /// Lists it for `folder`.
    ///
    /// # Errors
    /// It is missing or cannot be read; `folder` forgets nothing.
    pub fn list(&mut self, folder: &mut DropFolder, now: Instant) -> io::Result<Ground> {
        let ground = self.watch()?;
        let renamed = self.watch.as_mut().map(Watch::take).unwrap_or_default();
        folder.begin_scan(now);
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if !is_dropped_name(name.as_bytes()) {
                continue;
            }
            let Ok(name) = RelPath::new(name.as_bytes()) else { continue };
            if !self.selection.takes(&name, PathKind::Other) {
                continue;
            }
            match entry.metadata() {
                Ok(found) if found.is_file() => {
                    let arrival = match renamed.contains(&name) {
                        true => Arrival::Renamed,
                        false => Arrival::Unknown,
                    };
                    folder.see(dropped(name, &found), arrival);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        folder.end_scan();
        Ok(ground)
    }

    /// Watches the folder that is there now.
    fn watch(&mut self) -> io::Result<Ground> {
        let found = fs::metadata(&self.path)?;
        if !found.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder"));
        }
        let of = [found.dev(), found.ino()];
        if self.watch.as_ref().is_some_and(|watch| watch.of == of) {
            return Ok(Ground::Same);
        }
        let is_other = self.watch.is_some();
        // Without a watch, files are whole when they have stood still.
        self.watch = Watch::new(&self.path, of).ok();
        Ok(if is_other { Ground::Other } else { Ground::Same })
    }

    /// Waits until something happens in the folder, up to `patience`. Returns whether it did.
    pub fn wait(&mut self, patience: Duration) -> bool {
        match &mut self.watch {
            Some(watch) => watch.wait(patience),
            None => {
                pause(patience);
                false
            }
        }
    }

    /// How a file looks now; none where it is gone.
    ///
    /// # Errors
    /// The file system does not say.
    pub fn look(&self, name: &RelPath) -> io::Result<Option<DroppedFile>> {
        match fs::symlink_metadata(self.file(name)) {
            Ok(found) => Ok(found.is_file().then(|| dropped(name.clone(), &found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name under which a file is now: the same one, or another one to which it was renamed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn find(&self, file: &DroppedFile) -> io::Result<Option<RelPath>> {
        if self.look(&file.name)?.is_some_and(|found| found.is_same_version(file)) {
            return Ok(Some(file.name.clone()));
        }
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let (Ok(name), Ok(found)) =
                (RelPath::new(entry.file_name().as_bytes()), entry.metadata())
            else {
                continue;
            };
            if found.is_file() && dropped(name.clone(), &found).is_same_version(file) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Hashes a file; none where it has another length, or `stop` says so.
    ///
    /// # Errors
    /// It cannot be read to its end.
    pub fn hash(&self, of: &DroppedFile, stop: impl Fn() -> bool) -> io::Result<Option<Hash>> {
        let mut file = File::open(self.file(&of.name))?;
        let mut hasher = FileHasher::new(of.size);
        let mut buffer = vec![0; READ];
        let mut left = of.size;
        while !stop() {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(if left == 0 { hasher.finish() } else { None }),
                Ok(read) if read as u64 > left => return Ok(None),
                Ok(read) => {
                    hasher.update(&buffer[..read]);
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Watch {
    fn new(path: &Path, of: [u64; 2]) -> io::Result<Self> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let events = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        add_watch(&inotify, path, events)?;
        Ok(Self { inotify, of, renamed: BTreeSet::new(), is_stirred: false })
    }

    /// Reads the events that are there.
    fn drain(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 1 << 14];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    self.is_stirred = true;
                    let name = event.file_name().map(std::ffi::CStr::to_bytes).map(RelPath::new);
                    if event.events().contains(ReadFlags::MOVED_TO)
                        && let Some(Ok(name)) = name
                        && self.renamed.len() < RENAMED_MAX
                    {
                        self.renamed.insert(name);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// The names that were renamed into the folder since the last call.
    fn take(&mut self) -> BTreeSet<RelPath> {
        self.drain();
        self.is_stirred = false;
        core::mem::take(&mut self.renamed)
    }

    fn wait(&mut self, patience: Duration) -> bool {
        let nanos = patience.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let mut ready = [PollFd::new(&self.inotify, PollFlags::IN)];
        if poll(&mut ready, Some(&timeout)).is_err() {
            pause(patience);
        }
        self.drain();
        self.is_stirred
    }
}

fn dropped(name: RelPath, found: &Metadata) -> DroppedFile {
    let modified_ns =
        found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    DroppedFile { name, size: found.size(), modified_ns, inode: found.ino() }
}

#[allow(clippy::disallowed_methods, reason = "a folder without a watch has nothing to wait on")]
fn pause(span: Duration) {
    std::thread::sleep(span.to_std());
}
