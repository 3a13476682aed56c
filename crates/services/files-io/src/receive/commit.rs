//! Syncs and renames files on a thread of its own, many at a time.

use super::part::{Keep, Part, Sync};
use super::{JOBS, Receiving};
use crate::end::TransferEnd;
use crate::event::EntryOutcome;
use crate::place::{exists, refusal, times};
use rustix::fs::Mode;
use rustix::io::Errno;
use skyhaul_files::wire::{Message, OfferId};
use skyhaul_files::{Entry, Hash, TransferRefusal};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::mpsc::Receiver;

/// What is to be done with the disk.
#[derive(Debug)]
pub(super) enum Job {
    /// The map is to say that these chunks are on disk.
    Sync(Sync),
    /// A file is whole.
    Publish(Box<Ready>),
}

/// A file that is written and has the hash that it should.
#[derive(Debug)]
pub(super) struct Ready {
    pub id: OfferId,
    pub entry: Entry,
    pub part: Part,
    pub has_map: bool,
    pub size: u64,
    pub hash: Hash,
}

/// The thread.
pub(super) struct Committer<'a> {
    receiving: &'a Receiving<'a>,
}

impl<'a> Committer<'a> {
    pub const fn new(receiving: &'a Receiving<'a>) -> Self {
        Self { receiving }
    }

    /// Until no more jobs come.
    pub fn run(self, jobs: Receiver<Job>) -> Result<(), TransferEnd> {
        while let Ok(first) = jobs.recv() {
            let mut ready = Vec::new();
            for job in core::iter::once(first).chain(jobs.try_iter().take(JOBS - 1)) {
                match job {
                    // A map that lacks chunks costs their repetition after an interruption, nothing
                    // else.
                    Job::Sync(sync) => drop(sync.run()),
                    Job::Publish(file) => ready.push(*file),
                }
            }
            if !ready.is_empty()
                && let Err(end) = self.publish(ready)
            {
                // The thread that waits for the far end shall not wait for this one.
                self.receiving.cancel.set();
                return Err(end);
            }
        }
        Ok(())
    }

    fn publish(&self, ready: Vec<Ready>) -> Result<(), TransferEnd> {
        let synced = sync_all(&ready);
        let keep = match self.receiving.options.keep {
            true => Keep::Existing,
            false => Keep::Nothing,
        };
        let mut folders = BTreeMap::new();
        let mut results: Vec<(Ready, Result<(), Errno>)> = Vec::new();
        for file in ready {
            let last = file.entry.path.split().map_or(&[][..], |(_, last)| last);
            let named = synced.and_then(|()| file.part.publish(last, keep));
            if named.is_ok() && file.has_map {
                file.part.remove_map();
            }
            if named.is_ok() {
                folders.insert(file.part.folder.fd().as_raw_fd(), file.part.folder.clone());
            }
            results.push((file, named));
        }
        // The names are durable when their folders are.
        let mut durable = Ok(());
        for folder in folders.values() {
            durable = durable.and(rustix::fs::fsync(folder.fd()));
        }
        let mut done: Vec<(OfferId, Result<Hash, TransferRefusal>)> = Vec::new();
        for (file, named) in results {
            let path = &file.entry.path;
            let result = match named.and(durable) {
                Ok(()) => Ok(file.hash),
                Err(Errno::EXIST) if keep == Keep::Existing => Err(exists(path)),
                Err(error) => Err(refusal(path, "cannot be written", error)),
            };
            let fate = result.clone().map_or_else(EntryOutcome::Failed, EntryOutcome::Copied);
            self.receiving.reports.tell(path, file.size, fate);
            done.push((file.id, result));
        }
        for some in done.chunks(DONE_AT_ONCE) {
            self.receiving.say(&Message::Done(some.to_vec()))?;
        }
        Ok(())
    }
}

/// Sets the attributes, and has the contents on disk.
fn sync_all(ready: &[Ready]) -> Result<(), Errno> {
    let mut systems = BTreeMap::new();
    for file in ready {
        rustix::fs::fchmod(&file.part.file, Mode::from_raw_mode(file.entry.mode.into()))?;
        rustix::fs::futimens(&file.part.file, &times(file.entry.mtime))?;
        if ready.len() <= ALONE_MAX {
            rustix::fs::fsync(&file.part.file)?;
        } else {
            systems.insert(rustix::fs::fstat(&file.part.file)?.st_dev, &file.part.file);
        }
    }
    for file in systems.values() {
        rustix::fs::syncfs(file)?;
    }
    Ok(())
}

/// Up to so many files are synced one by one; more, with all that their file system has.
const ALONE_MAX: usize = 8;
/// Results in one message: refusals are long.
const DONE_AT_ONCE: usize = 128;
