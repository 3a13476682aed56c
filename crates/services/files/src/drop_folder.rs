//! A folder that hands over each file once: when a file is whole, what is to be done with it, and
//! what is remembered of it.
//!
//! The caller lists the folder ([`DropFolder::begin_scan`], [`DropFolder::see`],
//! [`DropFolder::end_scan`]) and runs the errands that [`DropFolder::next`] gives. Every
//! [`LedgerLine`] is to be durable before it is noted ([`DropFolder::note`]); after a restart the
//! lines are noted again, and the folder knows what it knew. Sans-IO: nothing is opened here.
//!
//! A file is whole when it was renamed into the folder while that was watched, or when its size and
//! modification time stood still for the quiet time. A whole file is read and hashed before it is
//! taken, so that what cannot be read to its end is never handed over in part. What was handed over
//! is known by name, size, modification time and inode. A file that differs in one of these is read
//! again: one with the same hash under its old name (it was touched, or copied over itself), or
//! with the inode of a file that is gone (it was renamed), is not handed over again. Other contents
//! are, under whatever name. A renamed file is known also where a new file has its old name, as a
//! program that rotates its files leaves them. A file that leaves the folder is not forgotten: a
//! file system that is not mounted looks like an empty folder.

mod ledger_line;
#[cfg(test)]
mod tests;

pub use ledger_line::{DroppedFile, FolderLedger, FolderLedgerError, HandedFile, LedgerLine};

use crate::hash::Hash;
use crate::path::RelPath;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// How a file came to the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It was renamed into it: it is whole.
    Renamed,
    /// It is not known: it is whole when it has stood still.
    Unknown,
}

/// What becomes of a file that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// It stays in the folder, and is remembered.
    Stays,
    /// It is removed or moved away, and then forgotten.
    Leaves,
}

/// What the caller is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropErrand {
    /// Read and hash a whole file, then call [`DropFolder::was_read`].
    Read(DroppedFile),
    /// Make these lines durable, and note them.
    Note(Vec<LedgerLine>),
    /// Remove a file that was handed over, if it is still this version; then write
    /// [`LedgerLine::Forgotten`].
    Leave(DroppedFile),
}

/// What a file was found to be when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOutcome {
    /// It changed while it was read, or is gone: it is looked at again.
    Changed,
    /// Its contents were handed over before: make these lines durable, and note them.
    Known(Vec<LedgerLine>),
    /// It is to be handed over: make [`LedgerLine::Taken`] durable, hand it over, make
    /// [`LedgerLine::Done`] durable.
    New(HandedFile),
}

/// The state of a folder whose files are handed over.
#[derive(Debug)]
pub struct DropFolder {
    quiet: Duration,
    leaving: Leaving,
    /// What was handed over, by name.
    done: BTreeMap<RelPath, Remembered>,
    /// The names of those, by inode.
    by_inode: BTreeMap<u64, RelPath>,
    /// What was handed over under a name that another file has by now, by inode: it may have been
    /// renamed, and not yet been looked at under its new name.
    displaced: BTreeMap<u64, Remembered>,
    /// What is being handed over.
    taken: BTreeMap<RelPath, HandedFile>,
    /// Files that are to be looked at: at most [`Self::WAITING_MAX`].
    waiting: BTreeMap<RelPath, Waiting>,
    /// Files that were handed over and have not left.
    staying: BTreeSet<RelPath>,
    /// No file is removed before.
    leave_after: Instant,
    /// The number of the present listing, and when it began.
    scan: u64,
    scanned_at: Instant,
    /// Files that the last listing had.
    listed: u64,
    /// Files that the last listing had no room for.
    crowded: u64,
}

#[derive(Debug)]
struct Remembered {
    handed: HandedFile,
    /// The last listing that had it under its name.
    scan: u64,
}

#[derive(Debug)]
struct Waiting {
    file: DroppedFile,
    arrival: Arrival,
    /// Since when it stands still, and up to when that was seen.
    since: Instant,
    seen_at: Instant,
    /// The first and the last listing that had this version.
    first_scan: u64,
    scan: u64,
    /// It is left alone until then.
    not_before: Instant,
}

impl DropFolder {
    /// Files that wait at a time: with the first of them gone, the next listing brings others.
    pub const WAITING_MAX: usize = 10_000;
    /// Files that are remembered: 60 MB of memory with usual names.
    pub const REMEMBERED_MAX: usize = 250_000;
    /// Files that are forgotten at once.
    const FORGOTTEN_AT_ONCE: usize = 1_000;

    /// A folder of which nothing is known.
    pub const fn new(quiet: Duration, leaving: Leaving) -> Self {
        Self {
            quiet,
            leaving,
            done: BTreeMap::new(),
            by_inode: BTreeMap::new(),
            displaced: BTreeMap::new(),
            taken: BTreeMap::new(),
            waiting: BTreeMap::new(),
            staying: BTreeSet::new(),
            leave_after: Instant::ZERO,
            scan: 0,
            scanned_at: Instant::ZERO,
            listed: 0,
            crowded: 0,
        }
    }

    /// Notes a line that is durable.
    pub fn note(&mut self, line: LedgerLine) {
        match line {
            LedgerLine::Taken(handed) => {
                self.waiting.remove(&handed.file.name);
                self.taken.insert(handed.file.name.clone(), handed);
            }
            LedgerLine::Done(handed) => {
                let (name, inode) = (handed.file.name.clone(), handed.file.inode);
                if let Some(old) = self.forget(&name) {
                    self.displaced.insert(old.handed.file.inode, Remembered { scan: 0, ..old });
                }
                self.displaced.remove(&inode);
                self.by_inode.insert(inode, name.clone());
                self.done.insert(name, Remembered { handed, scan: self.scan });
            }
            LedgerLine::Forgotten(name) => drop(self.forget(&name)),
        }
    }

    /// Forgets what is known of a name. Returns what was handed over under it, unless that is known
    /// under another name by now.
    fn forget(&mut self, name: &RelPath) -> Option<Remembered> {
        self.taken.remove(name);
        self.waiting.remove(name);
        self.staying.remove(name);
        let gone = self.done.remove(name)?;
        let inode = gone.handed.file.inode;
        if self.by_inode.get(&inode) != Some(name) {
            return None;
        }
        self.by_inode.remove(&inode);
        Some(gone)
    }

    /// All that is remembered, in as few lines as say it.
    pub fn lines(&self) -> impl Iterator<Item = LedgerLine> + '_ {
        // Displaced ones first: the line of the file that has the name displaces them again.
        let done = self.displaced.values().chain(self.done.values());
        let done = done.map(|known| LedgerLine::Done(known.handed.clone()));
        done.chain(self.taken.values().cloned().map(LedgerLine::Taken))
    }

    /// What is being handed over: after a restart, what was.
    pub fn taken(&self) -> impl Iterator<Item = &HandedFile> {
        self.taken.values()
    }

    /// A listing of the folder begins.
    pub fn begin_scan(&mut self, now: Instant) {
        self.scan += 1;
        self.scanned_at = now;
        (self.listed, self.crowded) = (0, 0);
        self.staying.clear();
    }

    /// The listing has this file.
    pub fn see(&mut self, file: DroppedFile, arrival: Arrival) {
        let (now, scan) = (self.scanned_at, self.scan);
        self.listed += 1;
        if self.taken.contains_key(&file.name) {
            return;
        }
        if let Some(known) = self.done.get_mut(&file.name)
            && known.handed.file.inode == file.inode
        {
            known.scan = scan;
            if known.handed.file.is_same_version(&file) {
                if self.leaving == Leaving::Leaves {
                    self.staying.insert(file.name);
                }
                return;
            }
        }
        let is_crowded = self.waiting.len() >= Self::WAITING_MAX;
        match self.waiting.get_mut(&file.name) {
            Some(waiting) if waiting.file.is_same_version(&file) => {
                (waiting.seen_at, waiting.scan) = (now, scan);
                if arrival == Arrival::Renamed {
                    waiting.arrival = arrival;
                }
            }
            None if is_crowded => self.crowded += 1,
            _ => {
                let new = Waiting {
                    arrival,
                    since: now,
                    seen_at: now,
                    first_scan: scan,
                    scan,
                    not_before: Instant::ZERO,
                    file,
                };
                self.waiting.insert(new.file.name.clone(), new);
            }
        }
    }

    /// The listing is complete. One that failed is not to be ended: the next one begins anew.
    pub fn end_scan(&mut self) {
        let scan = self.scan;
        self.waiting.retain(|_, waiting| waiting.scan == scan);
        // An empty listing may be that of a file system that is not mounted.
        if self.listed > 0 && !self.displaced.is_empty() {
            let here: BTreeSet<_> = self.waiting.values().map(|one| one.file.inode).collect();
            self.displaced.retain(|inode, _| here.contains(inode));
        }
    }

    /// The next errand, after a complete listing; none where nothing is due.
    pub fn next(&mut self, now: Instant) -> Option<DropErrand> {
        if now >= self.leave_after {
            while let Some(name) = self.staying.pop_first() {
                if let Some(known) = self.done.get(&name) {
                    return Some(DropErrand::Leave(known.handed.file.clone()));
                }
            }
        }
        let due = self.waiting.values().find(|waiting| self.is_due(waiting, now))?;
        if let Some(old) = self.renamed_from(&due.file).filter(|old| {
            old.handed.file.modified_ns == due.file.modified_ns
                && old.handed.file.size == due.file.size
        }) {
            let handed = HandedFile { file: due.file.clone(), hash: old.handed.hash };
            return Some(DropErrand::Note(self.renamed(&old.handed.file.name, handed)));
        }
        if self.done.len() + self.taken.len() >= Self::REMEMBERED_MAX {
            let absent = self.done.iter().filter(|(_, known)| known.scan != self.scan);
            let absent = absent.take(Self::FORGOTTEN_AT_ONCE);
            let lines: Vec<_> =
                absent.map(|(name, _)| LedgerLine::Forgotten(name.clone())).collect();
            return (!lines.is_empty()).then_some(DropErrand::Note(lines));
        }
        Some(DropErrand::Read(due.file.clone()))
    }

    fn is_due(&self, waiting: &Waiting, now: Instant) -> bool {
        let is_whole = waiting.arrival == Arrival::Renamed
            || waiting.seen_at.since(waiting.since) >= self.quiet;
        // A listing during a rename may have both names: the next one has one of them.
        let is_ambiguous = waiting.first_scan == self.scan
            && self.other_name(&waiting.file).is_some_and(|known| known.scan == self.scan);
        is_whole && !is_ambiguous && now >= waiting.not_before
    }

    /// What was handed over and had this inode under a name that it does not have any more.
    fn renamed_from(&self, file: &DroppedFile) -> Option<&Remembered> {
        self.other_name(file).filter(|known| known.scan != self.scan)
    }

    /// What was handed over and had this inode under another name.
    fn other_name(&self, file: &DroppedFile) -> Option<&Remembered> {
        let known = match self.by_inode.get(&file.inode) {
            Some(name) => self.done.get(name),
            None => self.displaced.get(&file.inode),
        };
        known.filter(|known| known.handed.file.name != file.name)
    }

    /// What is to be noted of a file that was called `old`.
    fn renamed(&self, old: &RelPath, handed: HandedFile) -> Vec<LedgerLine> {
        // Where another file has that name, what is known of it stays.
        let is_free = !self.waiting.contains_key(old) && !self.taken.contains_key(old);
        let is_known =
            self.done.get(old).is_some_and(|known| known.handed.file.inode == handed.file.inode);
        let forgotten = (is_free && is_known).then(|| LedgerLine::Forgotten(old.clone()));
        forgotten.into_iter().chain([LedgerLine::Done(handed)]).collect()
    }

    /// A file was read whole and has this hash; afterwards it looked like `after`.
    pub fn was_read(
        &mut self,
        file: &DroppedFile,
        hash: Hash,
        after: Option<&DroppedFile>,
    ) -> ReadOutcome {
        if after.is_none_or(|after| !after.is_same_version(file)) {
            self.changed(&file.name);
            return ReadOutcome::Changed;
        }
        let handed = HandedFile { file: file.clone(), hash };
        let same = |known: &&Remembered| known.handed.hash == hash;
        if self.done.get(&file.name).filter(same).is_some() {
            return ReadOutcome::Known(vec![LedgerLine::Done(handed)]);
        }
        match self.renamed_from(file).filter(same) {
            Some(old) => ReadOutcome::Known(self.renamed(&old.handed.file.name, handed)),
            None => ReadOutcome::New(handed),
        }
    }

    /// A file changed while it was read, or is gone: the next listing begins anew with it.
    pub fn changed(&mut self, name: &RelPath) {
        self.waiting.remove(name);
    }

    /// A file that was taken was not handed over: it is looked at again.
    pub fn release(&mut self, name: &RelPath) {
        self.taken.remove(name);
    }

    /// Leaves a file alone until `until`, where it could neither be handed over nor set aside.
    pub fn postpone(&mut self, name: &RelPath, until: Instant) {
        if let Some(waiting) = self.waiting.get_mut(name) {
            waiting.not_before = until;
        }
    }

    /// Removes no file until `until`, where one could not be removed.
    pub const fn postpone_leaving(&mut self, until: Instant) {
        self.leave_after = until;
    }

    /// Whether more files are in the folder than are remembered: no other one is taken.
    pub fn is_full(&self) -> bool {
        self.done.len() + self.taken.len() >= Self::REMEMBERED_MAX
            && self.done.values().all(|known| known.scan == self.scan)
    }

    /// Files that are to be handed over, as of the last listing.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64 + self.crowded
    }

    /// Whether all files were handed over, and those that are to leave have left, as of the last
    /// listing.
    pub fn is_done(&self) -> bool {
        let is_here = |known: &Remembered| known.scan == self.scan;
        let is_gone = match self.leaving {
            Leaving::Stays => true,
            Leaving::Leaves => !self.done.values().any(is_here),
        };
        self.waiting() == 0 && self.taken.is_empty() && is_gone
    }

    /// Files that are remembered.
    pub fn remembered(&self) -> u64 {
        self.done.len() as u64
    }
}

/// Whether a name is one of a file that may be handed over: neither hidden, nor one that programs
/// write under before they rename.
pub fn is_dropped_name(name: &[u8]) -> bool {
    let unfinished = [&b".part"[..], b".tmp", b".partial", b".filepart", b".crdownload", b"~"];
    let lower = name.to_ascii_lowercase();
    !name.starts_with(b".") && !unfinished.iter().any(|end| lower.ends_with(end))
}
