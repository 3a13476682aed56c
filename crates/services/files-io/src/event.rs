//! The events and counters of a transfer.

use skyhaul_files::{Hash, RelPath, TransferRefusal};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

/// The result of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its path below the target folder.
    pub path: RelPath,
    /// Its length; 0 of what is no file.
    pub bytes: u64,
    /// What.
    pub fate: EntryOutcome,
}

/// The outcome of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOutcome {
    /// It is complete, has this hash, and is on disk under its name.
    Copied(Hash),
    /// It was there already.
    Unchanged,
    /// It was there already; its permissions were set to those of the source.
    Rights,
    /// A folder or link was made.
    Made,
    /// It would be copied.
    Wanted,
    /// It was removed, because the source does not have it.
    Removed,
    /// It could not be copied: the reason of this end.
    Failed(TransferRefusal),
    /// It could not be copied: the reason of the far end.
    Refused(TransferRefusal),
}

/// Counts that are read while the transfer goes on.
#[derive(Debug, Default)]
pub struct Counters {
    /// Files found so far.
    pub files: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Whether all were found.
    pub walked: AtomicU64,
    /// Whether a file of unknown length is being moved.
    pub endless: AtomicBool,
    /// Bytes of files handed to the session, or written, including those that need not be moved.
    pub moved: AtomicU64,
    /// Large files that were handed over, in their order: at most [`CURRENT_MAX`], the newest.
    current: Mutex<VecDeque<Current>>,
    /// Blocks that the receiving end received, and those of them that needed FEC repair, as it
    /// reports at the end.
    pub blocks: (AtomicU64, AtomicU64),
    /// Bytes that an earlier transfer had moved.
    pub resumed: AtomicU64,
    /// Bytes of files that were handed over, or written, in this transfer.
    pub carried: AtomicU64,
}

/// The file that is being moved. Small files go many at a time and are not reported one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// Which, below the folder that the transfer goes to.
    pub path: RelPath,
    /// Its length; 0 where it is unknown.
    pub size: u64,
    /// How much of it was moved, in this transfer or an earlier one.
    pub moved: u64,
    /// How much of that in an earlier one.
    pub held: u64,
}

/// Large files that a full session has room for, and more.
const CURRENT_MAX: usize = 4096;

impl Counters {
    /// The large file that is under way, as far as it is, when the last `waiting` bytes still wait
    /// in the session.
    pub fn current(&self, mut waiting: u64) -> Option<Current> {
        let mut files = self.current.lock().ok()?;
        let at = files.iter().rposition(|file| {
            let carried = file.moved - file.held;
            let is_it = waiting < carried;
            waiting -= if is_it { 0 } else { carried };
            is_it
        });
        // Those before it are through.
        files.drain(..at.unwrap_or(0));
        let file = files.front()?.clone();
        // Where even the first waits, nothing of it has moved.
        let waiting = if at.is_some() { waiting } else { file.moved - file.held };
        Some(Current { moved: file.moved - waiting, ..file })
    }
}

/// The receiver of the events and counters of a transfer.
#[derive(Debug, Clone)]
pub struct TransferReports {
    /// Results of entries. A slow reader slows the transfer (backpressure); one that is gone does
    /// not.
    pub events: SyncSender<Event>,
    /// Counts.
    pub counters: Arc<Counters>,
}

impl TransferReports {
    pub(crate) fn tell(&self, path: &RelPath, bytes: u64, fate: EntryOutcome) {
        // The reader may be gone.
        let _ = self.events.send(Event { path: path.clone(), bytes, fate });
    }

    pub(crate) fn found(&self, bytes: u64) {
        add(&self.counters.files, 1);
        add(&self.counters.bytes, bytes);
    }

    /// More bytes of the file of unknown length were found.
    pub(crate) fn grew(&self, bytes: u64) {
        add(&self.counters.bytes, bytes);
    }

    /// A file of unknown length begins.
    pub(crate) fn open(&self) {
        self.counters.endless.store(true, Ordering::Relaxed);
    }

    /// The end of the file of unknown length is reached.
    pub(crate) fn closed(&self) {
        self.counters.endless.store(false, Ordering::Relaxed);
    }

    /// Bytes that need not be moved.
    pub(crate) fn spared(&self, bytes: u64) {
        add(&self.counters.moved, bytes);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.counters.moved, bytes);
        add(&self.counters.carried, bytes);
        if let Ok(mut current) = self.counters.current.lock()
            && let Some(current) = current.back_mut()
        {
            current.moved += bytes;
        }
    }

    pub(crate) fn walked(&self) {
        self.counters.walked.store(1, Ordering::Relaxed);
    }

    pub(crate) fn repaired(&self, blocks: u64, repaired: u64) {
        self.counters.blocks.0.store(blocks, Ordering::Relaxed);
        self.counters.blocks.1.store(repaired, Ordering::Relaxed);
    }

    pub(crate) fn begin(&self, path: &RelPath, size: u64, held: u64) {
        if let Ok(mut current) = self.counters.current.lock() {
            if current.len() == CURRENT_MAX {
                current.pop_front();
            }
            current.push_back(Current { path: path.clone(), size, moved: held, held });
        }
        add(&self.counters.moved, held);
        add(&self.counters.resumed, held);
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(counters: &Counters, waiting: u64) -> (String, u64) {
        let Some(file) = counters.current(waiting) else { return (String::new(), 0) };
        (file.path.to_string(), file.moved)
    }

    #[test]
    fn the_file_under_way_is_the_one_whose_bytes_leave_the_session() {
        let (events, _told) = std::sync::mpsc::sync_channel(1);
        let reports = TransferReports { events, counters: Arc::default() };
        assert_eq!(shown(&reports.counters, 0), (String::new(), 0));
        for (name, size, held) in [("a", 100, 0), ("b", 50, 20)] {
            reports.begin(&RelPath::new(name.as_bytes()).unwrap(), size, held);
            reports.moved(size - held);
        }
        // All waits, then ever less of it.
        for (waiting, name, moved) in [
            (130, "a", 0),
            (90, "a", 40),
            (30, "a", 100),
            (29, "b", 21),
            (0, "b", 50),
            (10, "b", 40),
        ] {
            assert_eq!(shown(&reports.counters, waiting), (name.to_owned(), moved), "{waiting}");
        }
    }

    #[test]
    fn files_that_were_handed_over_are_bounded() {
        let (events, _told) = std::sync::mpsc::sync_channel(1);
        let reports = TransferReports { events, counters: Arc::default() };
        for number in 0..2 * CURRENT_MAX {
            reports.begin(&RelPath::new(number.to_string().as_bytes()).unwrap(), 1, 0);
            reports.moved(1);
        }
        assert_eq!(reports.counters.current.lock().unwrap().len(), CURRENT_MAX);
        assert_eq!(shown(&reports.counters, 0), ((2 * CURRENT_MAX - 1).to_string(), 1));
    }
}
