//! What a transfer tells while it goes on.

use skyhaul_files::{Hash, Refusal, RelPath};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

/// Something happened to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Which, below the folder that the transfer goes to.
    pub path: RelPath,
    /// Its length; 0 of what is no file.
    pub bytes: u64,
    /// What.
    pub fate: Fate,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is whole, has this hash, and is on disk under its name.
    Copied(Hash),
    /// It was there already.
    Unchanged,
    /// A folder or link was made.
    Made,
    /// It would be copied.
    Wanted,
    /// It was removed, because the source does not have it.
    Removed,
    /// It could not be copied: what this end says.
    Failed(Refusal),
    /// It could not be copied: what the far end says.
    Refused(Refusal),
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
    /// Bytes of files handed to the session, or written; with those that need not be.
    pub moved: AtomicU64,
    /// The large file that is under way.
    pub current: Mutex<Option<Current>>,
    /// Blocks that the receiving end got, and those of them that needed repair, as it says at the end.
    pub blocks: (AtomicU64, AtomicU64),
    /// Bytes that an earlier transfer had brought.
    pub resumed: AtomicU64,
    /// Bytes of files that were handed over, or written, in this transfer.
    pub carried: AtomicU64,
}

/// The file that is moved now; small ones go many at a time, and are not told of by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// Which, below the folder that the transfer goes to.
    pub path: RelPath,
    /// Its length; 0 of what has an end that nobody knows.
    pub size: u64,
    /// How much of it was moved, in this transfer or an earlier one.
    pub moved: u64,
}

/// Where a transfer tells.
#[derive(Debug, Clone)]
pub struct Reports {
    /// What happens to entries. A reader that is slow holds the transfer back; one that is gone does not.
    pub events: SyncSender<Event>,
    /// Counts.
    pub counters: Arc<Counters>,
}

impl Reports {
    pub(crate) fn tell(&self, path: &RelPath, bytes: u64, fate: Fate) {
        // Nobody has to listen.
        let _ = self.events.send(Event { path: path.clone(), bytes, fate });
    }

    pub(crate) fn found(&self, bytes: u64) {
        add(&self.counters.files, 1);
        add(&self.counters.bytes, bytes);
    }

    /// Bytes that need not be moved.
    pub(crate) fn spared(&self, bytes: u64) {
        add(&self.counters.moved, bytes);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.counters.moved, bytes);
        add(&self.counters.carried, bytes);
        if let Ok(mut current) = self.counters.current.lock()
            && let Some(current) = &mut *current
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
            *current = Some(Current { path: path.clone(), size, moved: held });
        }
        add(&self.counters.moved, held);
        add(&self.counters.resumed, held);
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
