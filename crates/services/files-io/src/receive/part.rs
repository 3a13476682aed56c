//! A partial file under a temporary name, and the map of its chunks on disk.

use crate::claims::Claim;
use crate::place::{Directory, name};
use crate::receive::Receiving;
use crate::{MAP, PART};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use skyhaul_files::map::{self, Map};
use skyhaul_files::{Chain, RelPath};
use std::fs::File;
use std::io::Read;

/// A partial file that is open and locked. Closing it unlocks it.
#[derive(Debug)]
pub(super) struct Part {
    pub file: File,
    pub folder: Directory,
    /// Under which name it is written.
    pub part: Vec<u8>,
    /// The name of its map.
    pub map: Vec<u8>,
    _claim: Claim,
}

impl Part {
    /// Opens the partial file of `last`. Where it does not exist, it is made or `None` is returned,
    /// as `make` says.
    pub fn open(
        receiving: &Receiving<'_>,
        folder: &Directory,
        last: &[u8],
        make: Make,
    ) -> Result<Option<Self>, Errno> {
        let part = part_name(last);
        let create = if make == Make::New { OFlags::CREATE } else { OFlags::empty() };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | create;
        for _ in 0..TRIES {
            let open =
                rustix::fs::openat(folder.fd(), name(&part), flags, Mode::from_raw_mode(0o600));
            let file = match open {
                Err(Errno::NOENT) if make == Make::No => return Ok(None),
                other => File::from(other?),
            };
            let stat = rustix::fs::fstat(&file)?;
            let key = (stat.st_dev, stat.st_ino);
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                if !receiving.claims.take_over(key, &receiving.holder()) {
                    return Err(Errno::BUSY);
                }
                // The session that was ended may still sync what it wrote.
                std::thread::park_timeout(BETWEEN_TRIES);
                continue;
            }
            // Between opening and locking, who had it may have finished it.
            if folder.look(&part).is_ok_and(|now| (now.st_dev, now.st_ino) == key) {
                let _claim = receiving.claims.hold(key, receiving.holder());
                return Ok(Some(Self {
                    file,
                    folder: folder.clone(),
                    part,
                    map: map_name(last),
                    _claim,
                }));
            }
        }
        Err(Errno::BUSY)
    }

    /// Its map, if there is one.
    pub fn read_map(&self) -> Option<Map> {
        let file = self.folder.read(&RelPath::new(&self.map).ok()?).ok()?;
        let mut bytes = Vec::new();
        file.take(map::LEN_MAX).read_to_end(&mut bytes).ok()?;
        Map::read(&bytes)
    }

    /// Begins a map, or goes on behind `entries` of the one that is there.
    pub fn open_map(&self, head: &[u8], entries: u64) -> Result<File, Errno> {
        use std::os::unix::fs::FileExt;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let map = rustix::fs::openat(
            self.folder.fd(),
            name(&self.map),
            flags,
            Mode::from_raw_mode(0o600),
        )?;
        let file = File::from(map);
        rustix::fs::ftruncate(&file, if entries == 0 { 0 } else { map::len(entries) })?;
        if entries == 0 {
            file.write_all_at(head, 0)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        Ok(file)
    }

    /// Removes the partial file and its map.
    pub fn remove(self) {
        let _ = self.folder.remove(&self.part);
        let _ = self.folder.remove(&self.map);
    }

    /// Gives it its name; `EXIST` where another file has it, and `keep` says that it stays.
    pub fn publish(&self, last: &[u8], keep: Keep) -> Result<(), Errno> {
        let (folder, from, to) = (self.folder.fd(), name(&self.part), name(last));
        match keep {
            Keep::Nothing => rustix::fs::renameat(folder, from, folder, to),
            Keep::Existing => {
                let flags = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(folder, from, folder, to, flags) {
                    // The file system cannot do it in one step, such as NFS.
                    Err(Errno::INVAL | Errno::NOSYS) => match self.folder.look(last) {
                        Ok(_) => Err(Errno::EXIST),
                        Err(_) => rustix::fs::renameat(folder, from, folder, to),
                    },
                    other => other,
                }
            }
        }
    }

    /// Removes the map of a file that has its name.
    pub fn remove_map(&self) {
        let _ = rustix::fs::unlinkat(self.folder.fd(), name(&self.map), AtFlags::empty());
    }
}

/// What a file that gets its name may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Any file.
    Nothing,
    /// No file.
    Existing,
}

/// Whether a partial file is made where none exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    New,
    No,
}

/// Chunks whose bytes are written and not yet known to be on disk.
#[derive(Debug)]
pub(super) struct Sync {
    /// The partial file, once more.
    pub file: File,
    /// The map, once more.
    pub map: File,
    /// Where the entries go in the map, and what they are.
    pub at: u64,
    pub entries: Vec<u8>,
}

impl Sync {
    /// The map says what is on disk, after it is.
    pub fn run(&self) -> Result<(), Errno> {
        use std::os::unix::fs::FileExt;
        rustix::fs::fdatasync(&self.file)?;
        let written = self.map.write_all_at(&self.entries, self.at);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// The entries of `chains`, of which the first is chunk number `first`.
    pub fn of(part: &Part, map: &File, head: &[u8], first: u64, chains: &[Chain]) -> Option<Self> {
        // Without further descriptors the map says less, and more is sent again after an
        // interruption.
        let (file, map) = (part.file.try_clone().ok()?, map.try_clone().ok()?);
        Some(Self { file, map, at: map::len(first), entries: map::entries(head, first, chains) })
    }
}

/// The temporary name of a file.
pub(super) fn part_name(last: &[u8]) -> Vec<u8> {
    beside(last, PART)
}

fn map_name(last: &[u8]) -> Vec<u8> {
    beside(last, MAP)
}

/// `.NAME` and `end`; where that would be too long, the name's hash stands for it.
fn beside(last: &[u8], end: &str) -> Vec<u8> {
    if last.len() + 1 + end.len() <= RelPath::NAME_MAX {
        return [b".", last, end.as_bytes()].concat();
    }
    [&b"."[..], blake3::hash(last).to_hex().as_bytes(), end.as_bytes()].concat()
}

/// How often it is tried to lock a partial file that another one is about to let go of, and how
/// long it is waited in between.
const TRIES: usize = 60;
const BETWEEN_TRIES: std::time::Duration = std::time::Duration::from_millis(50);
