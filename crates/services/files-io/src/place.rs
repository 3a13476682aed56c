//! Access below a folder: no name leads out of it, not even over symbolic links.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, Timestamps};
use rustix::io::Errno;
use skyhaul_files::{PathKind, RefusalReason, RelPath, SourceStamp, TransferRefusal};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// An open folder.
#[derive(Debug, Clone)]
pub struct Directory(Arc<OwnedFd>);

/// A cache of open folders, so that not every file has to look up its folder.
#[derive(Debug)]
pub(crate) struct Folders {
    place: Directory,
    open: BTreeMap<RelPath, Directory>,
}

impl Directory {
    /// The folder at `path`, which may lie anywhere.
    ///
    /// # Errors
    /// It is no folder, or may not be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self(Arc::new(folder)))
    }

    /// A folder below this one.
    pub(crate) fn folder(&self, path: &RelPath) -> Result<Self, Errno> {
        if path.is_here() {
            return Ok(self.clone());
        }
        Ok(Self(Arc::new(self.open_below(path, FOLDER)?)))
    }

    /// A folder below this one. It is made where it does not exist, with its parents.
    pub(crate) fn make(&self, path: &RelPath) -> Result<Self, Errno> {
        match self.folder(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let mut above = RelPath::here();
        for part in path.parts() {
            let folder = self.folder(&above)?;
            match rustix::fs::mkdirat(folder.fd(), name(part), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            above = above.join(part).map_err(|_| Errno::NAMETOOLONG)?;
        }
        self.folder(path)
    }

    /// A file below this folder, for reading; the last name is no symbolic link.
    pub(crate) fn read(&self, path: &RelPath) -> Result<std::fs::File, Errno> {
        // Opening a pipe must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        self.open_below(path, flags).map(Into::into)
    }

    fn open_below(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match rustix::fs::openat2(&*self.0, name(path.as_bytes()), flags, Mode::empty(), below)
            {
                // Something was renamed at the same time.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A kernel before 5.6, or a filter of system calls that does not know it: no
                // symbolic link then.
                Err(Errno::NOSYS | Errno::PERM) => return self.open_step_by_step(path, flags),
                other => return other,
            }
        }
    }

    fn open_step_by_step(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut at = self.0.clone();
        let Some((_, last)) = path.split() else { return Err(Errno::INVAL) };
        let count = path.parts().count();
        for part in path.parts().take(count - 1) {
            at = Arc::new(rustix::fs::openat(
                &*at,
                name(part),
                FOLDER | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        }
        rustix::fs::openat(&*at, name(last), flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// The attributes of an entry of this folder; symbolic links are not followed.
    pub(crate) fn look(&self, at: &[u8]) -> Result<Stat, Errno> {
        rustix::fs::statat(&*self.0, name(at), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The target of a symbolic link in this folder.
    pub(crate) fn link(&self, at: &[u8]) -> Result<Vec<u8>, Errno> {
        rustix::fs::readlinkat(&*self.0, name(at), Vec::new()).map(std::ffi::CString::into_bytes)
    }

    /// The names in this folder, sorted.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&*self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    pub(crate) fn remove(&self, at: &[u8]) -> Result<(), Errno> {
        rustix::fs::unlinkat(&*self.0, name(at), AtFlags::empty())
    }
}

impl Folders {
    pub fn of(place: Directory) -> Self {
        Self { place, open: BTreeMap::new() }
    }

    /// The folder that an entry is in.
    pub fn holding(&mut self, path: &RelPath) -> Result<Directory, Errno> {
        let above = path.split().map_or(RelPath::here(), |(above, _)| above);
        if above.is_here() {
            return Ok(self.place.clone());
        }
        if let Some(found) = self.open.get(&above) {
            return Ok(found.clone());
        }
        let folder = self.place.folder(&above)?;
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        self.open.insert(above, folder.clone());
        Ok(folder)
    }

    pub const fn place(&self) -> &Directory {
        &self.place
    }
}

/// A name as the system takes it.
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Whether it is a file, a folder or a link; `None` of anything else.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// What the rules of a selection tell apart.
pub(crate) fn path_kind(stat: &Stat) -> PathKind {
    match file_type(stat) {
        FileType::Directory => PathKind::Folder,
        _ => PathKind::Other,
    }
}

/// When the contents were last changed: nanoseconds since 1970.
pub(crate) fn mtime(stat: &Stat) -> i64 {
    stat.st_mtime.saturating_mul(NANOS).saturating_add(stat.st_mtime_nsec as i64)
}

/// The stamp that identifies this version of the file.
pub(crate) fn stamp(stat: &Stat) -> SourceStamp {
    SourceStamp::of(stat.st_dev, stat.st_ino, stat.st_size.unsigned_abs(), mtime(stat))
}

/// A time of change, and no other time.
pub(crate) fn times(mtime: i64) -> Timestamps {
    let tv_nsec = mtime.rem_euclid(NANOS);
    let last_modification = rustix::fs::Timespec { tv_sec: mtime.div_euclid(NANOS), tv_nsec };
    let omit = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access: omit, last_modification }
}

/// A file with other contents is there.
pub(crate) fn exists(path: &RelPath) -> TransferRefusal {
    let sentence = format!(
        "a file {path} with other contents is there, and stays untouched; remove it there, or copy \
         under another name"
    );
    TransferRefusal::new(RefusalReason::Exists, &sentence)
}

/// Why the system does not do `what` (such as `cannot be written`) with `path`, and what to do.
pub(crate) fn refusal(path: &RelPath, what: &str, error: Errno) -> TransferRefusal {
    let (reason, help) = match error {
        Errno::NOSPC | Errno::DQUOT => (
            RefusalReason::NoSpace,
            "free space there, then run the same command again: it resumes",
        ),
        Errno::ACCESS | Errno::PERM => {
            (RefusalReason::NoPermission, "give the user that runs it permission")
        }
        Errno::ROFS => {
            (RefusalReason::ReadOnly, "mount the file system for writing, or use another folder")
        }
        Errno::NOENT => {
            (RefusalReason::Absent, "check the name, and that its parent folders exist")
        }
        Errno::XDEV => (
            RefusalReason::Outside,
            "a symbolic link points outside the folder; copy its target by its own path",
        ),
        Errno::ISDIR | Errno::NOTDIR | Errno::EXIST | Errno::NOTEMPTY => {
            (RefusalReason::InTheWay, "a file of another kind has that name: move it away")
        }
        Errno::LOOP => (
            RefusalReason::Name,
            "its symbolic links form a loop, or it is a link that is not followed",
        ),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => {
            (RefusalReason::Name, "the file system there does not allow this name")
        }
        _ => {
            (RefusalReason::Failed, "check that disk, then run the same command again: it resumes")
        }
    };
    TransferRefusal::new(reason, &format!("{path} {what} ({}); {help}", io::Error::from(error)))
}

/// The same of an error of the standard library.
pub(crate) fn io_refusal(path: &RelPath, what: &str, error: &io::Error) -> TransferRefusal {
    refusal(path, what, Errno::from_io_error(error).unwrap_or(Errno::IO))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NANOS: i64 = 1_000_000_000;
/// Folders that stay open at a time.
const OPEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn no_symbolic_link_leads_out_and_those_within_do() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("root/in")).unwrap();
        std::fs::create_dir(outer.path().join("out")).unwrap();
        std::fs::write(outer.path().join("root/in/file"), "a").unwrap();
        std::fs::write(outer.path().join("out/file"), "b").unwrap();
        symlink("../out", outer.path().join("root/up")).unwrap();
        symlink(outer.path().join("out"), outer.path().join("root/away")).unwrap();
        symlink("in", outer.path().join("root/within")).unwrap();
        symlink("circle", outer.path().join("root/circle")).unwrap();
        let place = Directory::open(&outer.path().join("root")).unwrap();
        for out in ["up", "away"] {
            assert_eq!(place.folder(&path(out)).unwrap_err(), Errno::XDEV, "{out}");
            assert_eq!(
                place.read(&path(out).join(b"file").unwrap()).unwrap_err(),
                Errno::XDEV,
                "{out}"
            );
            assert_eq!(
                place.make(&path(out).join(b"new").unwrap()).unwrap_err(),
                Errno::XDEV,
                "{out}"
            );
        }
        assert!(place.read(&path("within/file")).is_ok());
        assert_eq!(place.folder(&path("circle/a")).unwrap_err(), Errno::LOOP);
        let refusal = refusal(&path("up/file"), "cannot be written", Errno::XDEV);
        assert_eq!(refusal.reason, RefusalReason::Outside);
    }

    #[test]
    fn without_openat2_no_symbolic_link_is_followed() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("in")).unwrap();
        std::fs::write(outer.path().join("in/file"), "a").unwrap();
        symlink("in", outer.path().join("within")).unwrap();
        let place = Directory::open(outer.path()).unwrap();
        assert!(place.open_step_by_step(&path("in/file"), OFlags::RDONLY).is_ok());
        assert!(place.open_step_by_step(&path("within/file"), OFlags::RDONLY).is_err());
    }

    #[test]
    fn times_before_1970_are_kept() {
        let times = times(-1);
        let last = times.last_modification;
        assert_eq!((last.tv_sec, last.tv_nsec), (-1, 999_999_999));
    }
}
