//! A disk in memory that loses power on demand: a tool for tests, of this crate and of others.
//!
//! It remembers the synced state of each file and directory, and every change since. At a
//! [`SimDisk::crash`] a prefix of the changes survives, the next change in part or garbled,
//! sometimes also later ones, because a file system may write pages in any order. The same seed
//! gives the same result.

use super::{DirectoryEntry, Disk, DiskFile, EntryKind, not_in_place};
use skyhaul_units::ByteCount;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory. Clones are the same disk, and the same folder on it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// The number of this folder among those that were successively at its place.
    root: u64,
}

impl SimDisk {
    /// An empty disk of the given size.
    pub fn new(capacity: ByteCount) -> Self {
        let mut state = State { capacity, ..State::default() };
        state.dirs.insert(String::new());
        Self { state: Arc::new(Mutex::new(state)), root: 0 }
    }

    /// Removes the root folder with all that is in it, as `rm -r` does while a process uses it:
    /// open files can be read, written and synced, but cannot be found again. Returns the new,
    /// empty folder at its place.
    #[must_use]
    pub fn remove_all(&self) -> Self {
        let mut state = self.state();
        state.root += 1;
        state.names.clear();
        state.durable_names.clear();
        state.name_changes.clear();
        state.dirs.retain(String::is_empty);
        Self { state: self.state.clone(), root: state.root }
    }

    /// Cuts the power: changes that are not synced are lost, kept in part or garbled, by `seed`.
    /// Operations on open files then fail.
    pub fn crash(&self, seed: u64) {
        let mut state = self.state();
        let mut dice = Dice(seed);
        state.generation += 1;
        state.fault = None;
        let names = std::mem::take(&mut state.name_changes);
        let kept = dice.below(names.len() as u64 + 1) as usize;
        let mut durable = std::mem::take(&mut state.durable_names);
        for change in names.into_iter().take(kept) {
            change.apply(&mut durable);
        }
        state.names.clone_from(&durable);
        state.durable_names = durable;
        for file in state.files.values_mut() {
            file.crash(&mut dice);
        }
    }

    /// Another disk with the same files, like a restored backup or the clone of a machine.
    pub fn copy(&self) -> Self {
        let state = self.state();
        let copy = Self::new(ByteCount::new(u64::MAX));
        for dir in state.dirs.iter().filter(|dir| !dir.is_empty()) {
            copy.make_dir(dir).expect("there is room");
        }
        for (path, id) in &state.names {
            // A power cut may bring back the name of a file in a directory that was not durable.
            if let Some((dir, _)) = path.rsplit_once('/') {
                copy.make_dir(dir).expect("there is room");
            }
            let file = copy.create(path).expect("its directory was made");
            file.append(&state.files[id].current)
                .and_then(|()| file.sync())
                .expect("there is room");
        }
        state.dirs.iter().for_each(|dir| copy.sync_dir(dir).expect("it was made"));
        copy.set_capacity(state.capacity);
        copy
    }

    /// Ends the process that used the disk, as `kill -9` does: nothing is lost, but operations on
    /// open files fail.
    pub fn kill(&self) {
        let mut state = self.state();
        state.generation += 1;
        state.fault = None;
    }

    /// Sets the size of the disk; below the space in use it is full at once.
    pub fn set_capacity(&self, capacity: ByteCount) {
        self.state().capacity = capacity;
    }

    /// What the files hold.
    pub fn used(&self) -> ByteCount {
        self.state().used()
    }

    /// After `operations` operations that change the disk (append, sync, create, rename, ...), the
    /// next one fails.
    pub fn fail_after(&self, operations: u64) {
        self.state().fault = Some(operations);
    }

    /// Overwrites one byte of a file, as a bad sector would. Beyond the file's end it has no
    /// effect.
    ///
    /// # Errors
    /// `NotFound` where there is no such file.
    pub fn damage(&self, path: &str, offset: ByteCount) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(path)?;
        let file = state.files.get_mut(&id).expect("a name refers to a file");
        for content in [&mut file.current, &mut file.durable] {
            if let Some(byte) = content.get_mut(offset.as_usize()) {
                *byte ^= 0x55;
            }
        }
        Ok(())
    }

    /// Makes `length` bytes of a file unreadable, as bad sectors do: reading one of them fails.
    ///
    /// # Errors
    /// `NotFound` where there is no such file.
    pub fn spoil(&self, path: &str, offset: ByteCount, length: ByteCount) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(path)?;
        let file = state.files.get_mut(&id).expect("a name refers to a file");
        file.spoilt.push(offset.as_usize()..(offset + length).as_usize());
        Ok(())
    }

    /// The files and their sizes, by path.
    pub fn files(&self) -> Vec<(String, ByteCount)> {
        let state = self.state();
        let size = |id: &u64| {
            state.files.get(id).map_or(ByteCount::ZERO, |file| ByteCount::of(file.current.len()))
        };
        state.names.iter().map(|(name, id)| (name.clone(), size(id))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    fn handle(&self, path: &str, id: u64, generation: u64) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), id, generation })
    }
}

#[derive(Debug, Default)]
struct State {
    capacity: ByteCount,
    generation: u64,
    root: u64,
    fault: Option<u64>,
    next_file: u64,
    files: BTreeMap<u64, FileState>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    name_changes: Vec<NameChange>,
    dirs: BTreeSet<String>,
}

impl State {
    fn used(&self) -> ByteCount {
        let size = |id: &u64| self.files.get(id).map_or(0, |file| file.current.len());
        self.names.values().map(|id| ByteCount::of(size(id))).sum()
    }

    fn find(&self, path: &str) -> io::Result<u64> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn change(&mut self) -> io::Result<()> {
        match self.fault {
            Some(0) => {
                self.fault = None;
                Err(io::Error::other("injected fault"))
            }
            Some(left) => {
                self.fault = Some(left - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn rename_now(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(String, u64),
    Unlink(String),
    Rename(String, String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Link(path, id) => {
                names.insert(path.clone(), *id);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
            Self::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
        }
    }

    fn dir(&self) -> &str {
        match self {
            Self::Link(path, _) | Self::Unlink(path) | Self::Rename(_, path) => parent(path),
        }
    }
}

#[derive(Debug, Default)]
struct FileState {
    current: Vec<u8>,
    durable: Vec<u8>,
    spoilt: Vec<Range<usize>>,
    changes: Vec<FileChange>,
}

#[derive(Debug)]
enum FileChange {
    Append(Vec<u8>),
    Truncate(usize),
}

impl FileState {
    fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    fn crash(&mut self, dice: &mut Dice) {
        let changes = std::mem::take(&mut self.changes);
        let kept = dice.below(changes.len() as u64 + 1) as usize;
        let fate = dice.below(4);
        for (place, change) in changes.into_iter().enumerate() {
            match change {
                change if place < kept => change.apply(&mut self.durable),
                FileChange::Append(mut bytes) if place == kept && fate > 0 => {
                    if fate == 1 {
                        bytes.truncate(dice.below(bytes.len() as u64) as usize);
                    } else {
                        dice.garble(&mut bytes);
                    }
                    self.durable.extend_from_slice(&bytes);
                }
                // Pages may reach the disk in any order: later data may be complete.
                FileChange::Append(bytes) if fate == 3 => self.durable.extend_from_slice(&bytes),
                FileChange::Append(_) | FileChange::Truncate(_) => break,
            }
        }
        self.current.clone_from(&self.durable);
    }
}

impl FileChange {
    fn apply(self, content: &mut Vec<u8>) {
        match self {
            Self::Append(bytes) => content.extend_from_slice(&bytes),
            Self::Truncate(size) => content.truncate(size),
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.roll() % limit }
    }

    /// Zeroes the bytes from a random position on, or flips some.
    fn garble(&mut self, bytes: &mut [u8]) {
        let from = self.below(bytes.len() as u64) as usize;
        if self.below(2) == 0 {
            bytes[from..].fill(0);
        } else if let Some(byte) = bytes.get_mut(from) {
            *byte ^= 1 << self.below(8);
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Disk for SimDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<DirectoryEntry>> {
        let state = self.state();
        let named = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let files = state.names.iter().filter(|(path, _)| parent(path) == dir).map(|(path, id)| {
            DirectoryEntry {
                name: named(path),
                kind: EntryKind::File,
                size: state
                    .files
                    .get(id)
                    .map_or(ByteCount::ZERO, |file| ByteCount::of(file.current.len())),
            }
        });
        let dirs =
            state.dirs.iter().filter(|path| !path.is_empty() && parent(path) == dir).map(|path| {
                DirectoryEntry {
                    name: named(path),
                    kind: EntryKind::Directory,
                    size: ByteCount::ZERO,
                }
            });
        let mut entries: Vec<DirectoryEntry> = files.chain(dirs).collect();
        entries.sort();
        Ok(entries)
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let ends = dir.match_indices('/').map(|(at, _)| at).chain([dir.len()]);
        for end in ends {
            state.dirs.insert(dir[..end].to_owned());
        }
        Ok(())
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.change()?;
        if !state.dirs.contains(parent(path)) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such directory"));
        }
        let id = state.next_file;
        state.next_file += 1;
        state.files.insert(id, FileState::default());
        state.rename_now(NameChange::Link(path.to_owned(), id));
        Ok(self.handle(path, id, state.generation))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state();
        Ok(self.handle(path, state.find(path)?, state.generation))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let changes = std::mem::take(&mut state.name_changes);
        let (synced, waiting): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.dir() == dir);
        for change in synced {
            change.apply(&mut state.durable_names);
        }
        state.name_changes = waiting;
        drop(state);
        self.in_place()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.find(from)?;
        state.rename_now(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.find(path)?;
        state.rename_now(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        if state.names.keys().any(|path| parent(path) == dir) {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "directory not empty"));
        }
        state.dirs.remove(dir);
        Ok(())
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        let state = self.state();
        Ok(state.capacity - state.used())
    }

    fn in_place(&self) -> io::Result<()> {
        if self.state().root == self.root { Ok(()) } else { Err(not_in_place(&"the folder")) }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    path: String,
    id: u64,
    generation: u64,
}

impl SimFile {
    fn with<T>(
        &self,
        action: impl FnOnce(&mut FileState, ByteCount) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.disk.state();
        if state.generation != self.generation {
            return Err(io::Error::other("the disk lost power since this file was opened"));
        }
        let free = state.capacity - state.used();
        action(state.files.get_mut(&self.id).expect("files are never forgotten"), free)
    }

    fn change(&self) -> io::Result<()> {
        self.disk.state().change()
    }
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<ByteCount> {
        self.with(|file, _| Ok(ByteCount::of(file.current.len())))
    }

    fn read_at(&self, buffer: &mut [u8], offset: ByteCount) -> io::Result<usize> {
        self.with(|file, _| {
            let rest = file.current.get(offset.as_usize()..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            let at = offset.as_usize();
            if file.spoilt.iter().any(|spoilt| spoilt.start < at + count && at < spoilt.end) {
                return Err(io::Error::other("the sector cannot be read"));
            }
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let fault = self.change();
        self.with(|file, free| {
            let fits =
                if fault.is_err() { bytes.len() / 2 } else { bytes.len().min(free.as_usize()) };
            let written = bytes[..fits].to_vec();
            file.current.extend_from_slice(&written);
            file.changes.push(FileChange::Append(written));
            fault?;
            if fits < bytes.len() {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
            }
            Ok(())
        })
    }

    fn truncate(&self, size: ByteCount) -> io::Result<()> {
        self.change()?;
        self.with(|file, _| {
            file.current.truncate(size.as_usize());
            file.changes.push(FileChange::Truncate(size.as_usize()));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.change()?;
        self.with(|file, _| {
            file.sync();
            Ok(())
        })?;
        if self.disk.state().names.get(&self.path) != Some(&self.id) {
            return Err(not_in_place(&self.path));
        }
        Ok(())
    }
}
