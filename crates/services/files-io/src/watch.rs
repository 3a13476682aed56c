//! Folders that are watched for changes, by inotify.

use crate::place::{Directory, file_type};
use crate::send::{FileSource, FileSourceError, Inside};
use rustix::fs::FileType;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use skyhaul_files::RelPath;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A watched tree.
#[derive(Debug)]
pub struct TreeWatch {
    inotify: OwnedFd,
    root: PathBuf,
    /// The folder of each watch.
    folders: BTreeMap<i32, RelPath>,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Nothing.
    None,
    /// These folders, and what is in them; none lies in another.
    Folders(BTreeSet<RelPath>),
    /// Too many changes to list: everything may have changed.
    All,
}

impl Changes {
    /// The union of both.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        match (self, others) {
            (Self::None, some) | (some, Self::None) => some,
            (Self::Folders(these), Self::Folders(those)) => {
                Self::Folders(these.into_iter().chain(those).collect())
            }
            _ => Self::All,
        }
    }

    /// The folders below `root` to walk again; for a folder that is gone, its parent.
    ///
    /// # Errors
    /// The folder is not there, or may not be read.
    pub fn sources(&self, root: &Path) -> Result<Vec<FileSource>, FileSourceError> {
        let source = |path: &RelPath| {
            if path.is_here() {
                FileSource::local(root, Inside::Without)
            } else {
                FileSource::within(root, path)
            }
        };
        match self {
            Self::Folders(folders) => standing(root, folders).iter().map(source).collect(),
            Self::All | Self::None => Ok(vec![source(&RelPath::here())?]),
        }
    }
}

fn standing(root: &Path, folders: &BTreeSet<RelPath>) -> BTreeSet<RelPath> {
    let stands = |path: &RelPath| root.join(OsStr::from_bytes(path.as_bytes())).is_dir();
    let nearest = |path: &RelPath| {
        let mut at = path.clone();
        while !at.is_here() && !stands(&at) {
            at = at.split().map_or(RelPath::here(), |(above, _)| above);
        }
        at
    };
    let standing: BTreeSet<RelPath> = folders.iter().map(nearest).collect();
    if standing.contains(&RelPath::here()) { [RelPath::here()].into() } else { standing }
}

impl TreeWatch {
    /// Watches the folder at `root` and all in it.
    ///
    /// # Errors
    /// The system has no more watches, or the folder may not be read.
    pub fn new(root: &Path) -> io::Result<Self> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watch = Self { inotify, root: root.to_owned(), folders: BTreeMap::new() };
        watch.add(&RelPath::here())?;
        Ok(watch)
    }

    /// What changed since it was last asked.
    ///
    /// # Errors
    /// The system has no more watches, for a folder that is new.
    pub fn changes(&mut self) -> io::Result<Changes> {
        let mut buffer = [MaybeUninit::uninit(); 1 << 14];
        let (mut changed, mut new) = (BTreeSet::new(), Vec::new());
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Folders may have come of which nothing is known.
                changed = BTreeSet::from([RelPath::here()]);
                new.push(RelPath::here());
                continue;
            }
            if event.events().contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
                continue;
            }
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let is_folder = event.events().contains(ReadFlags::ISDIR);
            let appeared = event.events().intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            if let (true, true, Some(name)) = (is_folder, appeared, event.file_name())
                && let Ok(path) = folder.join(name.to_bytes())
            {
                new.push(path);
            }
            changed.insert(folder.clone());
        }
        for path in new {
            self.add(&path)?;
        }
        Ok(outermost(changed))
    }

    /// Watches a folder and all in it. One that is gone again is none.
    fn add(&mut self, path: &RelPath) -> io::Result<()> {
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            let at = self.root.join(OsStr::from_bytes(path.as_bytes()));
            match add_watch(&self.inotify, &at, WHAT) {
                Ok(number) => drop(self.folders.insert(number, path.clone())),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if !path.is_here() => continue,
                Err(error) => return Err(error.into()),
            }
            let Ok(folder) = Directory::open(&at) else { continue };
            for name in folder.names().unwrap_or_default() {
                let is_folder =
                    folder.look(&name).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
                if let (true, Ok(path)) = (is_folder, path.join(&name)) {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }
}

/// The folders of `changed` that lie in no other; everything, where there are many.
fn outermost(changed: BTreeSet<RelPath>) -> Changes {
    if changed.is_empty() {
        return Changes::None;
    }
    let mut outermost: BTreeSet<RelPath> = BTreeSet::new();
    for path in changed {
        let mut above = path.split().map(|(above, _)| above);
        let mut covered = false;
        while let Some(folder) = above {
            covered |= outermost.contains(&folder);
            above = folder.split().map(|(above, _)| above);
        }
        if !covered {
            outermost.insert(path);
        }
    }
    if outermost.iter().any(RelPath::is_here) || outermost.len() > FOLDERS_MAX {
        return Changes::All;
    }
    Changes::Folders(outermost)
}

/// Folders that are gone through again one by one; with more, everything is.
const FOLDERS_MAX: usize = 64;
const WHAT: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn changes_are_told_by_folder_in_new_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::create_dir(folder.path().join("c")).unwrap();
        let mut watch = TreeWatch::new(folder.path()).unwrap();
        assert_eq!(watch.changes().unwrap(), Changes::None);
        std::fs::write(folder.path().join("a/b/file"), "x").unwrap();
        assert_eq!(watch.changes().unwrap(), Changes::Folders([path("a/b")].into()));
        std::fs::create_dir_all(folder.path().join("c/new/deep")).unwrap();
        assert_eq!(watch.changes().unwrap(), Changes::Folders([path("c")].into()));
        std::fs::write(folder.path().join("c/new/deep/file"), "x").unwrap();
        std::fs::remove_file(folder.path().join("a/b/file")).unwrap();
        let both = Changes::Folders([path("a/b"), path("c/new/deep")].into());
        assert_eq!(watch.changes().unwrap(), both);
        std::fs::write(folder.path().join("top"), "x").unwrap();
        assert_eq!(watch.changes().unwrap(), Changes::All);
    }

    #[test]
    fn a_folder_in_another_that_changed_is_not_named() {
        let changed = [path("a"), path("a/b"), path("ab"), path("c/d")].into();
        assert_eq!(
            outermost(changed),
            Changes::Folders([path("a"), path("ab"), path("c/d")].into())
        );
    }
}
