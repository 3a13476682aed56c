//! An append-only log of checksummed records in segment files.
//!
//! ```text
//! DIR/0000000000000001.seg   block block mark block ... seal      sealed: opened by its seal alone
//! DIR/0000000000000002.seg   block block mark block               active: read wholly when the log is opened
//! ```
//!
//! An appended record is not durable, and no [`Cursor`] sees it, until a sync that began after it
//! ends well. Sealing a segment syncs it before the next one is made, so only the last file can
//! have a torn end.
//!
//! Memory: 56 bytes a flow and segment, 100 bytes a segment, and one buffer of the largest record.
//! A log of 1 TB in segments of 64 MiB with three flows in each takes 4 MB.

mod cursor;
mod guard;
mod open;
mod record;
mod scan;
mod summary;
mod sync;

use crate::disk::{Disk, DiskFile, is_full};
use crate::{FlowId, Seq};
use record::{Header, Kind, VERSION};
use skyhaul_units::{ByteCount, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use summary::file_name;

pub use cursor::{Cursor, Item};
pub use open::open_bytes;
pub use record::MAX_PAYLOAD;
pub(crate) use record::{block_size, crc};
pub use summary::{FlowSpan, Summary};
pub use sync::{SyncHandle, Synced};

/// A segment's number: ascending, never used again within a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNo(pub u64);

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The segment.
    pub segment: SegmentNo,
    /// Bytes from the segment's start.
    pub offset: ByteCount,
}

/// What may be set of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogConfig {
    /// A segment is closed before it grows beyond this. Default 64 MiB: 5.8 s at 93 Mbit/s, the
    /// unit in which space is freed and the most that is read again when the log is opened.
    pub segment_size: ByteCount,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { segment_size: ByteCount::mib(64) }
    }
}

/// A record to append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
    /// When it is written; kept in microseconds.
    pub written: Utc,
    /// At most [`MAX_PAYLOAD`].
    pub payload: &'a [u8],
}

/// A record read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The flow.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
    /// When it was written.
    pub written: Utc,
    /// What the caller handed over.
    pub payload: Vec<u8>,
}

/// A stretch of durable data that the disk gave back damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What became of it.
    pub fate: DamageFate,
    /// The segment's file.
    pub file: String,
    /// Where it begins.
    pub offset: ByteCount,
    /// How far the next valid record is.
    pub length: ByteCount,
}

/// What became of damaged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageFate {
    /// It was made again from what guards it: nothing is lost.
    Mended,
    /// It was stepped over: what was in it is lost.
    SteppedOver,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (offset, length) = (self.offset.as_u64(), self.length.as_u64());
        let fate = match self.fate {
            DamageFate::Mended => "had damage that was repaired, no data is lost",
            DamageFate::SteppedOver => "are damaged and were skipped",
        };
        write!(f, "{}: {length} bytes at offset {offset} {fate}; check the disk", self.file)
    }
}

/// What a log has counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Records appended.
    pub appended: u64,
    /// Bytes found behind the last valid record when the log was opened, and cut off: they were
    /// never durable.
    pub torn: ByteCount,
    /// Damaged stretches stepped over, when opening and when reading.
    pub damages: u64,
    /// Bytes in them.
    pub damaged: ByteCount,
    /// Damaged records that were mended.
    pub mended: u64,
    /// Appends that failed half-way and were taken back.
    pub taken_back: u64,
}

/// Why the log cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The device has no room; the log is as it was before the call. Ends by itself when there is
    /// room again.
    #[error(
        "{path}: no space left; free space on this file system, the log then continues by itself"
    )]
    Full {
        /// The file that could not grow.
        path: String,
    },
    /// The payload is larger than a record may be.
    #[error("a record of {size} is too large, the limit is {MAX_PAYLOAD}: write smaller records")]
    TooLarge {
        /// Its size.
        size: ByteCount,
    },
    /// A sync failed, so the operating system may have dropped data without a trace: nothing more
    /// is taken or promised.
    #[error("{path}: data did not reach the disk ({reason}); check the disk, then restart")]
    SyncFailed {
        /// The file.
        path: String,
        /// What the operating system said.
        reason: String,
    },
    /// The files were written by another version of this program.
    #[error(
        "{path}: format version {version}, this program reads version {VERSION}: use the release \
        that wrote it"
    )]
    OtherVersion {
        /// The file.
        path: String,
        /// The version it names.
        version: u8,
    },
    /// The disk refused.
    #[error("{path}: cannot {action}: {source}; check the disk and the permissions")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl LogError {
    pub(crate) fn io(action: &'static str, path: &str, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::Full { path: path.to_owned() };
        }
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// An append-only log in a directory of its own.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: String,
    config: LogConfig,
    sealed: BTreeMap<SegmentNo, Sealed>,
    sealed_size: ByteCount,
    active: Option<Active>,
    /// Behind everything that is durable.
    durable: Position,
    next_segment: SegmentNo,
    failed: Option<String>,
    stats: LogStats,
    damages: VecDeque<Damage>,
}

#[derive(Debug)]
struct Sealed {
    summary: Summary,
    /// The file's length, seal included.
    file: ByteCount,
}

#[derive(Debug)]
struct Active {
    number: SegmentNo,
    tail: Arc<sync::Tail>,
    summary: Summary,
    /// Where the last block ends.
    last_block_end: ByteCount,
    /// A failed append could not be taken back yet: the file is longer than what is valid.
    ragged: bool,
}

impl Log {
    /// Appends one record. It is not durable, and no reader sees it, until a sync that begins later
    /// ends well.
    ///
    /// # Errors
    /// [`LogError::Full`] where the device is full: the log is as it was, and the same call may be
    /// repeated.
    pub fn append(&mut self, record: NewRecord<'_>) -> Result<Position, LogError> {
        self.check_failed()?;
        let size = ByteCount::of(record.payload.len());
        if size > MAX_PAYLOAD {
            return Err(LogError::TooLarge { size });
        }
        let total = block_size(size);
        if self.active.as_ref().is_some_and(|active| !active.takes(record.flow, total, self.config))
        {
            self.seal()?;
        }
        self.make_active()?;
        let header = Header {
            kind: Kind::Block,
            flow: record.flow,
            seq: record.seq,
            length: size,
            written: record.written,
            durable: ByteCount::ZERO,
            payload_crc: crc(&[record.payload]),
        };
        let at = self.write(header, record.payload)?;
        let active = self.active.as_mut().expect("made above");
        active.summary.note(&header, at.offset);
        active.last_block_end = active.summary.size;
        self.stats.appended += 1;
        Ok(at)
    }

    /// What the next append of this payload may add to the files: the record, and a seal where one
    /// is due.
    pub fn growth(&self, payload: ByteCount) -> ByteCount {
        let seal =
            self.active.as_ref().map_or(ByteCount::ZERO, |active| active.summary.seal_size());
        block_size(payload) + seal
    }

    /// Closes the active segment, durably, so that it can be removed. Nothing happens where it
    /// holds no record.
    ///
    /// # Errors
    /// As [`Log::append`] and [`Log::sync`].
    pub fn seal(&mut self) -> Result<(), LogError> {
        self.check_failed()?;
        let Some(active) = self.active.as_ref().filter(|active| !active.summary.flows.is_empty())
        else {
            return Ok(());
        };
        let payload = active.summary.encode();
        let size = active.summary.size;
        let header = Header {
            kind: Kind::Seal,
            flow: FlowId(0),
            seq: Seq(0),
            length: ByteCount::of(payload.len()),
            written: active.summary.last_written().unwrap_or_default(),
            durable: ByteCount::ZERO,
            payload_crc: crc(&[&payload]),
        };
        let tail = active.tail.clone();
        self.write(header, &payload)?;
        if let Err(reason) = tail.seal() {
            return Err(self.fail(reason));
        }
        let mut active = self.active.take().expect("present above");
        let file = active.summary.size;
        active.summary.size = size;
        self.durable = self.durable.max(Position { segment: active.number, offset: size });
        self.sealed_size += file;
        self.sealed.insert(active.number, Sealed { summary: active.summary, file });
        Ok(())
    }

    /// Removes a sealed segment; nothing happens where there is none of this number. Follow with
    /// [`Log::sync_removals`].
    ///
    /// # Errors
    /// [`LogError::Io`] where the disk refuses; the segment is still there.
    pub fn remove(&mut self, segment: SegmentNo) -> Result<ByteCount, LogError> {
        let Some(sealed) = self.sealed.get(&segment) else {
            return Ok(ByteCount::ZERO);
        };
        let freed = sealed.file;
        let path = self.path(segment);
        self.disk.remove(&path).map_err(|error| LogError::io("remove the file", &path, error))?;
        self.sealed.remove(&segment);
        self.sealed_size = self.sealed_size - freed;
        Ok(freed)
    }

    /// Makes removals durable.
    ///
    /// # Errors
    /// [`LogError::Io`] where the disk refuses: after a power cut, removed segments may be there
    /// again.
    pub fn sync_removals(&mut self) -> Result<(), LogError> {
        self.disk
            .sync_dir(&self.dir)
            .map_err(|error| LogError::io("sync the directory", &self.dir, error))
    }

    /// The bytes in all files.
    pub fn size(&self) -> ByteCount {
        let active = self.active.as_ref().map_or(ByteCount::ZERO, |active| active.summary.size);
        self.sealed_size + active
    }

    /// What the sealed segments hold, oldest first.
    pub fn sealed(&self) -> impl DoubleEndedIterator<Item = (SegmentNo, &Summary)> {
        self.sealed.iter().map(|(number, sealed)| (*number, &sealed.summary))
    }

    /// What one sealed segment holds.
    pub fn sealed_summary(&self, segment: SegmentNo) -> Option<&Summary> {
        self.sealed.get(&segment).map(|sealed| &sealed.summary)
    }

    /// What the active segment holds, durable or not; `None` between two segments.
    pub fn active(&self) -> Option<(SegmentNo, &Summary)> {
        self.active.as_ref().map(|active| (active.number, &active.summary))
    }

    /// What all segments hold, oldest first.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentNo, &Summary)> {
        self.sealed().chain(self.active())
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        self.stats
    }

    /// The newest damages met, oldest first, mended or not; at most 16, all are counted in
    /// [`LogStats`].
    pub fn damages(&self) -> impl Iterator<Item = &Damage> {
        self.damages.iter()
    }

    fn path(&self, segment: SegmentNo) -> String {
        format!("{}/{}", self.dir, file_name(segment))
    }

    fn check_failed(&self) -> Result<(), LogError> {
        match &self.failed {
            Some(reason) => {
                Err(LogError::SyncFailed { path: self.dir.clone(), reason: reason.clone() })
            }
            None => Ok(()),
        }
    }

    fn fail(&mut self, reason: String) -> LogError {
        self.failed = Some(reason.clone());
        LogError::SyncFailed { path: self.dir.clone(), reason }
    }

    fn make_active(&mut self) -> Result<(), LogError> {
        if self.active.is_some() {
            return Ok(());
        }
        let number = self.next_segment;
        let path = self.path(number);
        let file = self
            .disk
            .create(&path)
            .map_err(|error| LogError::io("create the file", &path, error))?;
        self.disk
            .sync_dir(&self.dir)
            .map_err(|error| LogError::io("sync the directory", &self.dir, error))?;
        self.next_segment = SegmentNo(number.0 + 1);
        self.active = Some(Active::new(number, file));
        Ok(())
    }

    /// Writes at the end of the active segment, or leaves it as it was.
    fn write(&mut self, mut header: Header, payload: &[u8]) -> Result<Position, LogError> {
        let durable = self.durable;
        let active = self.active.as_mut().expect("the caller made it");
        let at = Position { segment: active.number, offset: active.summary.size };
        header.durable =
            if durable.segment == active.number { durable.offset } else { ByteCount::ZERO };
        let mut bytes = Vec::with_capacity(header.total().as_usize());
        let head = header.encode(at.segment, at.offset);
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(payload);
        if header.kind == Kind::Block {
            guard::write(payload, &head, &mut bytes);
        }
        let mut outcome = active.smooth();
        if outcome.is_ok() {
            outcome = active.tail.file.append(&bytes);
            active.ragged = outcome.is_err();
        }
        match outcome {
            Ok(()) => {
                active.summary.size += header.total();
                Ok(at)
            }
            Err(error) => {
                // Where this fails too, the next append tries again before it writes.
                let _ = active.smooth();
                self.stats.taken_back += 1;
                Err(LogError::io("append to the file", &self.path(at.segment), error))
            }
        }
    }

    fn note_damage(&mut self, damage: Damage) {
        // What was found when the log was opened is met again when it is read.
        if self.damages.contains(&damage) {
            return;
        }
        match damage.fate {
            DamageFate::Mended => self.stats.mended += 1,
            DamageFate::SteppedOver => {
                self.stats.damages += 1;
                self.stats.damaged += damage.length;
            }
        }
        if self.damages.len() == DAMAGES_KEPT {
            self.damages.pop_front();
        }
        self.damages.push_back(damage);
    }
}

/// Damages kept for status output. A disk with more of them needs no longer list.
const DAMAGES_KEPT: usize = 16;

impl Active {
    fn new(number: SegmentNo, file: Arc<dyn DiskFile>) -> Self {
        Self {
            number,
            tail: Arc::new(sync::Tail::new(file)),
            summary: Summary::default(),
            last_block_end: ByteCount::ZERO,
            ragged: false,
        }
    }

    fn takes(&self, flow: FlowId, total: ByteCount, config: LogConfig) -> bool {
        let empty = self.summary.flows.is_empty();
        empty
            || (self.summary.size + total <= config.segment_size && self.summary.has_room_for(flow))
    }

    /// Cuts off what a failed append left.
    fn smooth(&mut self) -> io::Result<()> {
        if self.ragged {
            self.tail.file.truncate(self.summary.size)?;
            self.ragged = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
