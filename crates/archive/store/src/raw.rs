//! Recordings of an input, byte for byte, with reception times.
//!
//! ```text
//! DIR/00000000000000000000.raw   the bytes as received, and nothing else
//! DIR/00000000000000000000.idx   one entry a piece: length, kind, time, place in the input,
//!                                checksums
//! DIR/00000000000067108352.raw   the next stretch, named by the place of its first byte in the
//!                                recording
//! DIR/00000000000067108352.idx
//! ```
//!
//! A [`RawRecorder`] collects the bytes received within 10 ms and appends them to the newest
//! stretch, the bytes before their entry. The power may fail at any instant: opening cuts the
//! newest stretch after its last complete piece. If the recording is too large or too old, the
//! oldest stretches are removed as a whole. A [`RawReader`] reads any span of time or of bytes,
//! also while another process continues the recording.
//!
//! Memory: 40 bytes for each stretch, and the bytes collected; a reader has one index (32 MiB at
//! most) and one piece.

mod index;
mod reader;

use crate::disk::{Disk, DiskFile, is_full};
use crate::format::help;
use crate::log::crc;
use index::{
    ENTRY_LEN, HEAD, IndexEntry, Listed, MAX_ENTRIES, MAX_PIECE, data_path, index_path, read_index,
    read_piece, stretches,
};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

pub use reader::{RawExtent, RawPiece, RawPieces, RawReader, RawSpan};

/// The settings of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawConfig {
    /// A stretch is closed before it grows beyond this; space is freed in whole stretches. Default
    /// 64 MiB: 34 s at 15 Mbit/s.
    pub segment_size: ByteCount,
    /// The space for all stretches together, with their indexes. Default 64 GB: nine hours of 15
    /// Mbit/s. At least two stretches.
    pub max_size: ByteCount,
    /// How long a recording is kept. Default 7 days.
    pub retention: Duration,
    /// The space that stays free on the file system. Default 256 MiB, four times the reserve of a
    /// spool: the recording stops before the spool does.
    pub reserve: ByteCount,
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            segment_size: ByteCount::mib(64),
            max_size: ByteCount::new(64_000_000_000),
            retention: Duration::from_secs(7 * 86_400),
            reserve: ByteCount::mib(256),
        }
    }
}

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// No space. The present bytes are not recorded; later pieces are, when there is space.
    #[error(
        "no space for the recording: {available} available, {reserve} of it reserved for the \
        spool; free space on the state folder's file system, or lower raw_size"
    )]
    Full {
        /// What there is.
        available: ByteCount,
        /// What is left free.
        reserve: ByteCount,
    },
    /// The configuration cannot work.
    #[error("raw_size {max_size} is less than two files of {segment_size}: raise it")]
    Config {
        /// As configured.
        max_size: ByteCount,
        /// As configured.
        segment_size: ByteCount,
    },
    /// The disk refuses.
    #[error("{path}: {source}{}", help(.source, "; check the disk and the permissions"))]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl RawError {
    fn io(path: &str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Whether the error ends by itself when there is space.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Io { source, .. } => is_full(source),
            Self::Config { .. } => false,
        }
    }
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawKind {
    /// Bytes of a stream: the ends of pieces have no meaning.
    Stream,
    /// One datagram.
    Datagram,
    /// No bytes: the sender ended a transmission here.
    Break,
}

/// When and where in the input bytes were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStamp {
    /// When the last of them was received; kept to the microsecond.
    pub received: Utc,
    /// The input's own count of the first of them. If it does not continue, some bytes were not
    /// recorded, or the input began again.
    pub input: u64,
    /// What they are.
    pub kind: RawKind,
}

/// The counts of a recording so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawStats {
    /// Bytes recorded since it was opened.
    pub recorded: ByteCount,
    /// Bytes that could not be recorded.
    pub dropped: ByteCount,
    /// What data and indexes fill.
    pub disk: ByteCount,
    /// Stretches removed for age or size since it was opened.
    pub removed: u64,
}

/// Writes the recording of one input.
#[derive(Debug)]
pub struct RawRecorder {
    disk: Arc<dyn Disk>,
    dir: String,
    config: RawConfig,
    closed: VecDeque<Stretch>,
    active: Option<Active>,
    gathered: Gathered,
    /// The position of the next byte in the recording.
    next: u64,
    stats: RawStats,
}

/// A stretch that is no longer written.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u64,
    size: ByteCount,
    newest: Utc,
}

/// The stretch being written.
#[derive(Debug)]
struct Active {
    start: u64,
    data: Arc<dyn DiskFile>,
    index: Arc<dyn DiskFile>,
    length: u64,
    entries: u64,
    newest: Utc,
    is_synced: bool,
    /// A write failed and may have left bytes after the last complete piece.
    is_torn: bool,
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    pieces: Vec<(RawStamp, usize)>,
}

/// Bytes received within this time are written together, and of a stream they form one piece: the
/// resolution of a replay's timing.
const GRAIN: Duration = Duration::from_millis(10);
/// Most bytes written together: 10 ms at 200 Mbit/s.
const GATHER: usize = 256 << 10;

impl RawRecorder {
    /// Continues the recording in the folder `dir` of `disk`, which is created if absent. An
    /// incomplete end after a power cut is cut off.
    ///
    /// # Errors
    /// The configuration is not possible, or a disk operation fails.
    pub fn open(disk: Arc<dyn Disk>, dir: &str, config: RawConfig) -> Result<Self, RawError> {
        let RawConfig { max_size, segment_size, .. } = config;
        if max_size < segment_size + segment_size {
            return Err(RawError::Config { max_size, segment_size });
        }
        disk.make_dir(dir).map_err(|source| RawError::io(dir, source))?;
        let mut recorder = Self {
            disk,
            dir: dir.to_owned(),
            config,
            closed: VecDeque::new(),
            active: None,
            gathered: Gathered::default(),
            next: 0,
            stats: RawStats::default(),
        };
        let mut listed = stretches(&*recorder.disk, dir)?;
        let last = listed.pop();
        for stretch in listed {
            recorder.adopt(&stretch)?;
        }
        if let Some(last) = last {
            recorder.go_on(&last)?;
        }
        recorder.measure();
        Ok(recorder)
    }

    /// Takes bytes that were received together; none for a break. They are collected, and written
    /// 10 ms later or by [`Self::flush`].
    ///
    /// # Errors
    /// The collected bytes cannot be written and are dropped; later bytes may be written.
    pub fn append(&mut self, stamp: RawStamp, bytes: &[u8]) -> Result<(), RawError> {
        let first = self.gathered.pieces.first().map(|(stamp, _)| stamp.received);
        let is_over = first.is_some_and(|first| stamp.received.since(first) >= GRAIN);
        let written = if is_over || self.gathered.bytes.len() + bytes.len() > GATHER {
            self.flush()
        } else {
            Ok(())
        };
        for (place, part) in bytes.chunks(MAX_PIECE).enumerate() {
            let input = stamp.input.saturating_add((place * MAX_PIECE) as u64);
            self.gathered.push(RawStamp { input, ..stamp }, part);
        }
        if bytes.is_empty() {
            self.gathered.push(stamp, bytes);
        }
        written
    }

    /// Writes what is gathered.
    ///
    /// # Errors
    /// The bytes cannot be written and are dropped; earlier ones stay as they are.
    pub fn flush(&mut self) -> Result<(), RawError> {
        let gathered = std::mem::take(&mut self.gathered);
        if gathered.pieces.is_empty() {
            return Ok(());
        }
        let length = ByteCount::of(gathered.bytes.len());
        let written = self.write(&gathered);
        if written.is_ok() {
            self.stats.recorded += length;
        } else {
            self.stats.dropped += length;
        }
        self.measure();
        written
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&mut self) -> Result<(), RawError> {
        let Some(active) = self.active.as_mut().filter(|active| !active.is_synced) else {
            return Ok(());
        };
        // The bytes first, because an entry means that they are there.
        let synced = active.data.sync().and_then(|()| active.index.sync());
        synced.map_err(|source| RawError::io(&data_path(&self.dir, active.start), source))?;
        active.is_synced = true;
        Ok(())
    }

    /// Removes stretches that are older than the retention at `now`.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn trim(&mut self, now: Utc) -> Result<(), RawError> {
        let RawConfig { retention, .. } = self.config;
        let is_old = |newest: Utc| now.since(newest) > retention;
        if self.active.as_ref().is_some_and(|active| active.entries > 0 && is_old(active.newest)) {
            self.close_active()?;
        }
        while self.closed.front().is_some_and(|stretch| is_old(stretch.newest)) {
            self.remove_oldest()?;
        }
        self.measure();
        Ok(())
    }

    /// What became of it so far.
    pub const fn stats(&self) -> RawStats {
        self.stats
    }

    /// Counts received bytes that are not passed to it, so that its account is complete.
    pub fn count_dropped(&mut self, bytes: ByteCount) {
        self.stats.dropped += bytes;
    }

    fn write(&mut self, gathered: &Gathered) -> Result<(), RawError> {
        self.cut_back()?;
        let index_len = gathered.pieces.len() * ENTRY_LEN;
        let needed = ByteCount::of(gathered.bytes.len() + index_len);
        let is_full = self.active.as_ref().is_some_and(|active| {
            let grown = ByteCount::new(active.length) + ByteCount::of(gathered.bytes.len());
            let entries = active.entries + gathered.pieces.len() as u64;
            active.length > 0 && grown > self.config.segment_size || entries > MAX_ENTRIES
        });
        if is_full {
            self.close_active()?;
        }
        while self.used() + needed > self.config.max_size && !self.closed.is_empty() {
            self.remove_oldest()?;
        }
        let available = self.disk.free_space().map_err(|source| RawError::io(&self.dir, source))?;
        if available < needed + self.config.reserve {
            return Err(RawError::Full { available, reserve: self.config.reserve });
        }
        if self.active.is_none() {
            self.active = Some(self.create()?);
        }
        let Some(active) = self.active.as_mut() else { return Ok(()) };
        let mut index = Vec::with_capacity(index_len);
        let (mut at, mut newest) = (0, active.newest);
        for (stamp, length) in &gathered.pieces {
            let piece = &gathered.bytes[at..at + length];
            let RawStamp { received, input, kind } = *stamp;
            // A piece is at most MAX_PIECE long.
            let entry = IndexEntry {
                length: *length as u32,
                kind,
                received,
                input,
                data_crc: crc(&[piece]),
            };
            index.extend_from_slice(&entry.encode(self.next + at as u64));
            at += length;
            newest = newest.max(received);
        }
        active.is_synced = false;
        let data = active.data.append(&gathered.bytes);
        if let Err(source) = data.and_then(|()| active.index.append(&index)) {
            active.is_torn = true;
            // If that fails too, it is tried again before the next write.
            let _ = active.cut_back();
            return Err(RawError::io(&data_path(&self.dir, active.start), source));
        }
        active.length += gathered.bytes.len() as u64;
        active.entries += gathered.pieces.len() as u64;
        active.newest = newest;
        self.next += gathered.bytes.len() as u64;
        Ok(())
    }

    fn create(&self) -> Result<Active, RawError> {
        let (start, dir) = (self.next, &self.dir);
        let make =
            |path: String| self.disk.create(&path).map_err(|source| RawError::io(&path, source));
        let (data, index) = (make(data_path(dir, start))?, make(index_path(dir, start))?);
        // The version is durable before the first entry: a torn one is none of a later program's.
        index
            .append(HEAD)
            .and_then(|()| index.sync())
            .map_err(|source| RawError::io(&index_path(dir, start), source))?;
        self.disk.sync_dir(dir).map_err(|source| RawError::io(dir, source))?;
        let newest = Utc::from_micros(i64::MIN);
        Ok(Active {
            start,
            data,
            index,
            length: 0,
            entries: 0,
            newest,
            is_synced: false,
            is_torn: false,
        })
    }

    fn cut_back(&mut self) -> Result<(), RawError> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active
            .cut_back()
            .map_err(|source| RawError::io(&data_path(&self.dir, active.start), source))
    }

    fn close_active(&mut self) -> Result<(), RawError> {
        self.cut_back()?;
        self.sync()?;
        self.closed.extend(self.active.take().map(|active| active.closed()));
        Ok(())
    }

    fn remove_oldest(&mut self) -> Result<(), RawError> {
        let Some(oldest) = self.closed.front() else { return Ok(()) };
        self.remove(oldest.start)?;
        self.closed.pop_front();
        self.stats.removed += 1;
        Ok(())
    }

    fn remove(&self, start: u64) -> Result<(), RawError> {
        // The index first: bytes without an entry are ignored, but an entry without bytes would be
        // wrong.
        for path in [index_path(&self.dir, start), data_path(&self.dir, start)] {
            match self.disk.remove(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(RawError::io(&path, source)),
            }
        }
        Ok(())
    }

    /// Removes an empty stretch durably: if it came back after a power cut, it would overlap the
    /// continuation of the one before it.
    fn unmake(&self, start: u64) -> Result<(), RawError> {
        self.remove(start)?;
        self.disk.sync_dir(&self.dir).map_err(|source| RawError::io(&self.dir, source))
    }

    /// Adopts a stretch that an earlier run closed.
    fn adopt(&mut self, listed: &Listed) -> Result<(), RawError> {
        let newest = match listed.index {
            Some(_) => {
                let entries = read_index(&*self.disk, &self.dir, listed.start)?;
                entries.iter().map(|entry| entry.received).max()
            }
            None => None,
        };
        let size = listed.data.unwrap_or_default() + listed.index.unwrap_or_default();
        // A stretch without a time cannot be read: it is removed first.
        let newest = newest.unwrap_or(Utc::from_micros(i64::MIN));
        self.closed.push_back(Stretch { start: listed.start, size, newest });
        Ok(())
    }

    /// Continues the newest stretch, cut after its last complete piece.
    fn go_on(&mut self, listed: &Listed) -> Result<(), RawError> {
        let start = listed.start;
        self.next = start;
        if listed.data.is_none() || listed.index.is_none_or(|size| size < ByteCount::of(HEAD.len()))
        {
            // The power failed while it was created.
            return self.unmake(start);
        }
        let entries = read_index(&*self.disk, &self.dir, start)?;
        let opened =
            |path: String| self.disk.open(&path).map_err(|source| RawError::io(&path, source));
        let (data, index) =
            (opened(data_path(&self.dir, start))?, opened(index_path(&self.dir, start))?);
        let newest = Utc::from_micros(i64::MIN);
        let mut active = Active {
            start,
            data,
            index,
            length: 0,
            entries: 0,
            newest,
            is_synced: false,
            is_torn: false,
        };
        for entry in &entries {
            let (_, is_intact) = read_piece(&active.data, active.length, entry)
                .map_err(|source| RawError::io(&data_path(&self.dir, start), source))?;
            if !is_intact {
                break;
            }
            active.length += u64::from(entry.length);
            active.entries += 1;
            active.newest = active.newest.max(entry.received);
        }
        if active.entries == 0 {
            // Its first bytes may be anything.
            return self.unmake(start);
        }
        let cut = active.data.truncate(ByteCount::new(active.length));
        let cut = cut.and_then(|()| active.index.truncate(index_size(active.entries)));
        cut.map_err(|source| RawError::io(&data_path(&self.dir, start), source))?;
        self.next += active.length;
        self.active = Some(active);
        Ok(())
    }

    fn used(&self) -> ByteCount {
        let closed: ByteCount = self.closed.iter().map(|stretch| stretch.size).sum();
        closed + self.active.as_ref().map_or(ByteCount::ZERO, Active::size)
    }

    fn measure(&mut self) {
        self.stats.disk = self.used();
    }
}

impl Active {
    /// Removes the rest of a failed write.
    fn cut_back(&mut self) -> io::Result<()> {
        if self.is_torn {
            // The index first, because an entry means that its bytes are there.
            self.index.truncate(index_size(self.entries))?;
            self.data.truncate(ByteCount::new(self.length))?;
            self.is_torn = false;
        }
        Ok(())
    }

    fn size(&self) -> ByteCount {
        ByteCount::new(self.length) + index_size(self.entries)
    }

    fn closed(&self) -> Stretch {
        Stretch { start: self.start, size: self.size(), newest: self.newest }
    }
}

impl Gathered {
    fn push(&mut self, stamp: RawStamp, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if let Some((last, length)) = self.pieces.last_mut()
            && last.kind == RawKind::Stream
            && stamp.kind == RawKind::Stream
            && last.input + *length as u64 == stamp.input
            && *length + bytes.len() <= MAX_PIECE
        {
            last.received = stamp.received;
            *length += bytes.len();
            return;
        }
        self.pieces.push((stamp, bytes.len()));
    }
}

const fn index_size(entries: u64) -> ByteCount {
    ByteCount::new(HEAD.len() as u64 + entries * ENTRY_LEN as u64)
}

#[cfg(test)]
mod tests;
