//! The source of a transfer: a file or tree on disk, or a pipe.

use crate::place::{Directory, file_type};
use rustix::fs::FileType;
use rustix::io::Errno;
use skyhaul_files::{RelPath, SelectionError, is_pattern, pattern};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A source.
pub enum FileSource {
    /// A file, folder or link, with all that is in it.
    Tree {
        /// The folder that it is in.
        place: Directory,
        /// Where it is there.
        at: RelPath,
        /// Under which name it is offered; none for what is in it, without itself.
        name: RelPath,
    },
    /// A pipe: bytes of unknown number, under a name.
    Pipe(RelPath, Option<Box<dyn Read + Send>>),
}

/// An open source.
pub(super) enum Reader {
    Tree { place: Directory, at: RelPath, name: RelPath },
    Pipe(Option<Box<dyn Read + Send>>),
}

/// Why a source cannot be used.
#[derive(Debug)]
pub enum FileSourceError {
    /// Error of the operating system.
    System(io::Error),
    /// It has no name.
    Nameless,
    /// The pattern is invalid.
    Pattern(SelectionError),
    /// Nothing fits the pattern.
    Nothing,
    /// The path leads out of the folder.
    Leads,
}

impl FileSource {
    /// The file or folder at `path` of this machine. Where it is a symbolic link, what that leads
    /// to; with `inside`, what is in it and not itself.
    ///
    /// # Errors
    /// It is not there, or its folder may not be read.
    pub fn local(path: &Path, inside: Inside) -> Result<Self, FileSourceError> {
        let real = path.canonicalize()?;
        let (Some(folder), Some(real_name)) = (real.parent(), real.file_name()) else {
            return Err(FileSourceError::Nameless);
        };
        let name = match inside {
            Inside::Without => RelPath::here(),
            Inside::Itself => RelPath::new(path.file_name().unwrap_or(real_name).as_bytes())
                .map_err(|_| FileSourceError::Nameless)?,
        };
        let at = RelPath::new(real_name.as_bytes()).map_err(|_| FileSourceError::Nameless)?;
        Ok(Self::Tree { place: Directory::open(folder)?, at, name })
    }

    /// What `path` names below `place`: one, or all that fit where it is a pattern.
    ///
    /// # Errors
    /// There is nothing of that name.
    pub fn below(place: &Directory, path: &RelPath) -> Result<Vec<Self>, FileSourceError> {
        let mut found = vec![RelPath::here()];
        for part in path.parts() {
            if !is_pattern(part) {
                let joined =
                    found.iter().map(|above| above.join(part).map_err(|_| FileSourceError::Leads));
                found = joined.collect::<Result<_, _>>()?;
                continue;
            }
            let text = core::str::from_utf8(part).map_err(|_| FileSourceError::Nothing)?;
            let fits = pattern(text).map_err(FileSourceError::Pattern)?;
            let mut next = Vec::new();
            for above in &found {
                // What is no folder has nothing in it.
                let names =
                    place.folder(above).and_then(|folder| folder.names()).unwrap_or_default();
                let hidden = |name: &Vec<u8>| name.starts_with(b".") && !part.starts_with(b".");
                let fitting = names.into_iter().filter(|name| fits(name) && !hidden(name));
                next.extend(fitting.filter_map(|name| above.join(&name).ok()));
            }
            found = next;
        }
        if path.parts().any(is_pattern) {
            found.retain(|path| stands(place, path).is_ok());
        }
        if found.is_empty() {
            return Err(FileSourceError::Nothing);
        }
        found.into_iter().map(|at| Self::of(place, at)).collect()
    }

    /// The folder `path` of the one at `root`, offered under its path there.
    ///
    /// # Errors
    /// The folder at `root` may not be read.
    pub fn within(root: &Path, path: &RelPath) -> Result<Self, FileSourceError> {
        Ok(Self::Tree { place: Directory::open(root)?, at: path.clone(), name: path.clone() })
    }

    /// Whether it is anything but a folder.
    pub(crate) fn is_single(&self) -> bool {
        let Self::Tree { place, at, .. } = self else { return true };
        let Some((above, name)) = at.split() else { return false };
        let found = place.folder(&above).and_then(|folder| folder.look(name));
        found.is_ok_and(|stat| file_type(&stat) != FileType::Directory)
    }

    /// Offers it under this name.
    pub(crate) fn rename(&mut self, to: RelPath) {
        match self {
            Self::Tree { name, .. } | Self::Pipe(name, _) => *name = to,
        }
    }

    fn of(place: &Directory, at: RelPath) -> Result<Self, FileSourceError> {
        stands(place, &at)?;
        let name = match at.split() {
            Some((_, name)) => RelPath::new(name).map_err(|_| FileSourceError::Leads)?,
            None => RelPath::here(),
        };
        Ok(Self::Tree { place: place.clone(), at, name })
    }

    pub(super) fn reader(&mut self) -> Reader {
        match self {
            Self::Tree { place, at, name } => {
                Reader::Tree { place: place.clone(), at: at.clone(), name: name.clone() }
            }
            Self::Pipe(_, pipe) => Reader::Pipe(pipe.take()),
        }
    }
}

/// Whether a folder itself is copied, or what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// The folder, under its name.
    Itself,
    /// What is in it.
    Without,
}

fn stands(place: &Directory, path: &RelPath) -> Result<(), Errno> {
    match path.split() {
        Some((above, name)) => place.folder(&above)?.look(name).map(drop),
        None => Ok(()),
    }
}

/// The path on disk of an entry that was offered under another path.
pub(super) fn on_disk(at: &RelPath, name: &RelPath, entry: &RelPath) -> RelPath {
    let mut path = at.clone();
    for part in entry.parts().skip(name.parts().count()) {
        // Found by the walk in this way, so that it is no longer than it was there.
        path = path.join(part).unwrap_or(path);
    }
    path
}

impl From<io::Error> for FileSourceError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Errno> for FileSourceError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl fmt::Display for FileSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                f.write_str("its symbolic links form a loop; give the path of their target")
            }
            Self::System(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => f
                .write_str(
                    "a symbolic link points outside the folder; copy its target by its own path",
                ),
            Self::System(error) => write!(f, "{error}; check the name and the read permission"),
            Self::Nameless => f.write_str("it has no file name; give the names of its contents"),
            Self::Pattern(error) => error.fmt(f),
            Self::Nothing => f.write_str("no file matches the pattern; list the files there"),
            Self::Leads => f.write_str("the path leads out of the folder; remove `..`"),
        }
    }
}
