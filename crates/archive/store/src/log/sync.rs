//! Group commit: one sync makes everything durable that was appended before it began.
//!
//! A sync may take long, so it can run on another thread: [`Log::sync_handle`] returns it,
//! [`SyncHandle::sync`] runs on any thread, and [`Log::synced`] takes the result. Appends continue
//! meanwhile.

use super::checksum::crc;
use super::record::{Header, Kind};
use super::{Log, LogError, Position};
use crate::disk::DiskFile;
use crate::{FlowId, Seq};
use skyhaul_units::{ByteCount, Utc};
use std::sync::{Arc, Mutex};

/// A sync that is due. It may run on any thread.
#[derive(Debug)]
pub struct SyncHandle {
    tail: Arc<Tail>,
    upto: Position,
}

/// A sync that has run, successfully or not. Pass it to [`Log::synced`].
#[derive(Debug)]
pub struct Synced {
    upto: Position,
    outcome: Result<(), String>,
}

/// The file that grows. The operating system reports a failed write-back only once, so after the
/// first failed sync the file counts as failed for all.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) file: Arc<dyn DiskFile>,
    fate: Mutex<Fate>,
}

#[derive(Debug)]
enum Fate {
    Grows,
    /// Complete and durable. It may be removed while a sync of it exists.
    Sealed,
    /// A sync failed, for this reason.
    Spoiled(String),
}

impl Tail {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, fate: Mutex::new(Fate::Grows) }
    }

    pub(super) fn sync(&self) -> Result<(), String> {
        self.sync_to(Fate::Grows)
    }

    /// The last sync: nothing more is appended.
    pub(super) fn seal(&self) -> Result<(), String> {
        self.sync_to(Fate::Sealed)
    }

    fn sync_to(&self, well: Fate) -> Result<(), String> {
        let mut fate = self.fate.lock().expect("no holder of the lock panics");
        if matches!(*fate, Fate::Grows) {
            *fate =
                self.file.sync().map_or_else(|error| Fate::Spoiled(error.to_string()), |()| well);
        }
        match &*fate {
            Fate::Grows | Fate::Sealed => Ok(()),
            Fate::Spoiled(reason) => Err(reason.clone()),
        }
    }
}

impl SyncHandle {
    /// Waits until the disk has it (`fdatasync`).
    pub fn sync(self) -> Synced {
        Synced { upto: self.upto, outcome: self.tail.sync() }
    }
}

impl Log {
    /// Whether there is a record that is not durable.
    pub fn needs_sync(&self) -> bool {
        self.segments.active.as_ref().is_some_and(|active| {
            Position { segment: active.number, offset: active.last_block_end } > self.durable
                && active.last_block_end > ByteCount::ZERO
        })
    }

    /// The sync that makes everything appended so far durable; `None` if it is durable already.
    pub fn sync_handle(&self) -> Option<SyncHandle> {
        let active = self.segments.active.as_ref().filter(|_| self.needs_sync())?;
        let upto = Position { segment: active.number, offset: active.summary.size };
        Some(SyncHandle { tail: active.tail.clone(), upto })
    }

    /// Takes the result of a sync: readers see the records that it made durable.
    ///
    /// # Errors
    /// [`LogError::SyncFailed`] if it failed, now and for every later append.
    pub fn synced(&mut self, synced: Synced) -> Result<(), LogError> {
        if let Err(reason) = synced.outcome {
            return Err(self.fail(reason));
        }
        self.check_failed()?;
        self.durable = self.durable.max(synced.upto);
        let all = self.segments.active.as_ref().is_some_and(|active| {
            synced.upto == Position { segment: active.number, offset: active.summary.size }
        });
        if all {
            self.mark();
        }
        Ok(())
    }

    /// Makes everything appended so far durable, and waits for it.
    ///
    /// # Errors
    /// [`LogError::SyncFailed`], as [`Log::synced`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check_failed()?;
        match self.sync_handle() {
            Some(handle) => self.synced(handle.sync()),
            None => Ok(()),
        }
    }

    /// Behind everything that is durable.
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// Writes a mark for the case that the log is opened after damage: the data before it was
    /// durable. The mark is not essential, so a failure (a full device) has no effect.
    pub(super) fn mark(&mut self) {
        let header = Header {
            kind: Kind::Mark,
            flow: FlowId(0),
            seq: Seq(0),
            length: ByteCount::ZERO,
            written: Utc::default(),
            durable: ByteCount::ZERO,
            payload_crc: crc(&[]),
        };
        let _ = self.write(header, &[]);
    }
}
