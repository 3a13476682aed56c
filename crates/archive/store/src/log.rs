//! An append-only log of checksummed records in segment files.
//!
//! ```text
//! DIR/0000000000000001.seg   block block mark block ... seal      sealed: opened by its seal alone
//! DIR/0000000000000002.seg   block block mark block               active: read wholly when the log
//!                                                                 is opened
//! ```
//!
//! An appended record is not durable, and no [`LogCursor`] sees it, until a sync that began after
//! it ends well. Sealing a segment syncs it before the next one is made, so only the last file can
//! have a torn end.
//!
//! Memory: 56 bytes for each flow of a segment, 100 bytes for each segment, and one buffer of the
//! largest record. A log of 1 TB in segments of 64 MiB with three flows in each takes 4 MB.

mod checksum;
mod cursor;
mod damages;
mod guard;
mod open;
mod record;
mod scan;
mod segments;
mod summary;
mod sync;

use crate::disk::is_full;
use crate::{FlowId, Seq};
use damages::Damages;
use record::{Header, Kind, VERSION};
use skyhaul_units::{ByteCount, Utc};
use std::io;

pub(crate) use checksum::crc;
pub use cursor::{LogCursor, LogEntry};
pub use damages::{DamageFate, DamagedRange};
pub use open::open_bytes;
pub use record::MAX_PAYLOAD;
pub(crate) use record::block_size;
pub use segments::Segments;
pub use summary::{FlowSpan, SegmentSummary};
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

/// The settings of a log.
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
pub struct LogRecord {
    /// The flow.
    pub flow: FlowId,
    /// Its place there.
    pub seq: Seq,
    /// When it was written.
    pub written: Utc,
    /// What the caller handed over.
    pub payload: Vec<u8>,
}

/// The counts of a log since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Records appended.
    pub appended: u64,
    /// Bytes after the last valid record that were cut off when the log was opened: they were never
    /// durable.
    pub torn: ByteCount,
    /// Damaged stretches skipped, when opening and when reading.
    pub damages: u64,
    /// Bytes in them.
    pub damaged: ByteCount,
    /// Damaged records that were mended.
    pub mended: u64,
    /// Appends that failed half-way and were undone.
    pub taken_back: u64,
}

/// Why an operation of the log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The device has no space; the log is as it was before the call. The error ends by itself when
    /// there is space.
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
    /// A sync failed, so the operating system may have dropped data without notice: the log accepts
    /// no more records and reports none as durable.
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
    config: LogConfig,
    segments: Segments,
    /// Behind everything that is durable.
    durable: Position,
    failed: Option<String>,
    stats: LogStats,
    damages: Damages,
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
        if self
            .segments
            .active
            .as_ref()
            .is_some_and(|active| !active.takes(record.flow, total, self.config))
        {
            self.seal()?;
        }
        self.segments.make_active()?;
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
        let active = self.segments.active.as_mut().expect("made above");
        active.summary.note(&header, at.offset);
        active.last_block_end = active.summary.size;
        self.stats.appended += 1;
        Ok(at)
    }

    /// Closes the active segment durably, so that it can be removed. No effect if it has no record.
    ///
    /// # Errors
    /// As [`Log::append`] and [`Log::sync`].
    pub fn seal(&mut self) -> Result<(), LogError> {
        self.check_failed()?;
        let Some(active) =
            self.segments.active.as_ref().filter(|active| !active.summary.flows.is_empty())
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
        let mut active = self.segments.active.take().expect("present above");
        let file = active.summary.size;
        active.summary.size = size;
        self.durable = self.durable.max(Position { segment: active.number, offset: size });
        self.segments.add_sealed(active.number, active.summary, file);
        Ok(())
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        self.stats
    }

    /// The newest damages found, oldest first, mended or not; at most 16. [`LogStats`] counts all.
    pub fn damages(&self) -> impl Iterator<Item = &DamagedRange> {
        self.damages.newest()
    }

    /// The segments.
    pub const fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The segments, to remove some.
    pub const fn segments_mut(&mut self) -> &mut Segments {
        &mut self.segments
    }

    fn check_failed(&self) -> Result<(), LogError> {
        match &self.failed {
            Some(reason) => Err(LogError::SyncFailed {
                path: self.segments.dir.clone(),
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    fn fail(&mut self, reason: String) -> LogError {
        self.failed = Some(reason.clone());
        LogError::SyncFailed { path: self.segments.dir.clone(), reason }
    }

    /// Writes at the end of the active segment, or leaves it as it was.
    fn write(&mut self, mut header: Header, payload: &[u8]) -> Result<Position, LogError> {
        let durable = self.durable;
        let active = self.segments.active.as_mut().expect("the caller made it");
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
                // If this fails too, the next append tries again before it writes.
                let _ = active.smooth();
                self.stats.taken_back += 1;
                Err(LogError::io("append to the file", &self.segments.path(at.segment), error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
