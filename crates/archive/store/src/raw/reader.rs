//! Reads any span of time or bytes of a recording, also while another process writes it.

use super::index::{IndexEntry, data_path, read_index, read_piece, stretches};
use super::{RawError, RawKind, RawStamp};
use crate::disk::{Disk, DiskFile};
use skyhaul_units::{ByteCount, Utc};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Reads the recording of one input.
///
/// ```
/// use skyhaul_store::raw::{RawConfig, RawKind, RawReader, RawRecorder, RawSpan, RawStamp};
/// use skyhaul_store::{Disk, sim::SimDisk};
/// use skyhaul_units::{ByteCount, Utc};
/// use std::sync::Arc;
///
/// let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(512)));
/// let mut recorder = RawRecorder::open(disk.clone(), "raw/x-band", RawConfig::default())?;
/// let received = Utc::from_micros(1_730_419_200_000_000);
/// recorder.append(RawStamp { received, input: 0, kind: RawKind::Stream }, b"as received")?;
/// recorder.flush()?;
///
/// let reader = RawReader::open(disk, "raw/x-band");
/// let mut pieces = reader.read(RawSpan { from: Some(received), ..RawSpan::default() })?;
/// let piece = pieces.next_piece()?.expect("one piece");
/// assert_eq!((&*piece.bytes, piece.stamp.received), (&b"as received"[..], received));
/// # Ok::<(), skyhaul_store::raw::RawError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RawReader {
    disk: Arc<dyn Disk>,
    dir: String,
}

/// The wanted part of a recording; the default is all of it. A piece belongs to it if both
/// conditions hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawSpan {
    /// Received at this time or later.
    pub from: Option<Utc>,
    /// Received before this time.
    pub to: Option<Utc>,
    /// Positions in the recording: pieces with any of these bytes.
    pub places: Option<Range<u64>>,
}

/// What a recording holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawExtent {
    /// When its first piece was received.
    pub first: Utc,
    /// When its last piece was received.
    pub last: Utc,
    /// Bytes in it.
    pub bytes: ByteCount,
    /// Pieces in it, breaks among them.
    pub pieces: u64,
}

/// One piece of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPiece {
    /// The position of its first byte in the recording.
    pub position: u64,
    /// Reception time, position in the input, and kind.
    pub stamp: RawStamp,
    /// The bytes; none for a break.
    pub bytes: Vec<u8>,
    /// The bytes are undamaged. If not, some of them are wrong, or zero.
    pub is_intact: bool,
}

/// The pieces of a span, in the order of the recording.
#[derive(Debug)]
pub struct RawPieces {
    disk: Arc<dyn Disk>,
    dir: String,
    span: RawSpan,
    stretches: VecDeque<u64>,
    open: Option<OpenStretch>,
}

#[derive(Debug)]
struct OpenStretch {
    start: u64,
    data: Arc<dyn DiskFile>,
    entries: std::vec::IntoIter<IndexEntry>,
    /// The position of the next entry's first byte in the recording.
    position: u64,
}

impl RawReader {
    /// The recording in the folder `dir`; an empty one if the folder is absent.
    pub fn open(disk: Arc<dyn Disk>, dir: &str) -> Self {
        Self { disk, dir: dir.to_owned() }
    }

    /// The part of a span that it has now; `None` if it has nothing. Reads all its indexes.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn extent(&self, span: &RawSpan) -> Result<Option<RawExtent>, RawError> {
        let mut extent: Option<RawExtent> = None;
        for stretch in stretches(&*self.disk, &self.dir)? {
            let mut position = stretch.start;
            for entry in
                found(read_index(&*self.disk, &self.dir, stretch.start))?.unwrap_or_default()
            {
                let (length, received) = (u64::from(entry.length), entry.received);
                if span.holds(&entry, position) {
                    let so_far = RawExtent {
                        first: received,
                        last: received,
                        bytes: ByteCount::ZERO,
                        pieces: 0,
                    };
                    let extent = extent.get_or_insert(so_far);
                    extent.first = extent.first.min(received);
                    extent.last = extent.last.max(received);
                    extent.bytes += ByteCount::new(length);
                    extent.pieces += 1;
                }
                position += length;
            }
        }
        Ok(extent)
    }

    /// Begins to read a span.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn read(&self, span: RawSpan) -> Result<RawPieces, RawError> {
        let mut starts: VecDeque<u64> =
            stretches(&*self.disk, &self.dir)?.iter().map(|stretch| stretch.start).collect();
        if let Some(places) = &span.places {
            // A stretch ends where the next one begins.
            while starts.get(1).is_some_and(|next| *next <= places.start) {
                starts.pop_front();
            }
            starts.retain(|start| *start < places.end);
        }
        let (disk, dir) = (self.disk.clone(), self.dir.clone());
        Ok(RawPieces { disk, dir, span, stretches: starts, open: None })
    }
}

impl RawPieces {
    /// The next piece; `None` at the end of the data that was recorded when reading of the stretch
    /// began.
    ///
    /// # Errors
    /// A disk operation fails. Stretches that were removed meanwhile are skipped.
    pub fn next_piece(&mut self) -> Result<Option<RawPiece>, RawError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(start) = self.stretches.pop_front() else { return Ok(None) };
                self.open = found(open_stretch(&*self.disk, &self.dir, start))?;
                continue;
            };
            let Some(entry) = open.entries.next() else {
                self.open = None;
                continue;
            };
            let position = open.position;
            open.position += u64::from(entry.length);
            if !self.span.holds(&entry, position) {
                continue;
            }
            let (bytes, is_intact) = read_piece(&open.data, position - open.start, &entry)
                .map_err(|source| RawError::io(&data_path(&self.dir, open.start), source))?;
            let IndexEntry { received, input, kind, .. } = entry;
            return Ok(Some(RawPiece {
                position,
                stamp: RawStamp { received, input, kind },
                bytes,
                is_intact,
            }));
        }
    }
}

impl RawSpan {
    fn holds(&self, entry: &IndexEntry, position: u64) -> bool {
        let end = position + u64::from(entry.length);
        let in_places = |places: &Range<u64>| {
            position < places.end
                && (end > places.start || entry.kind == RawKind::Break && end == places.start)
        };
        self.from.is_none_or(|from| entry.received >= from)
            && self.to.is_none_or(|to| entry.received < to)
            && self.places.as_ref().is_none_or(in_places)
    }
}

fn open_stretch(disk: &dyn Disk, dir: &str, start: u64) -> Result<OpenStretch, RawError> {
    let path = data_path(dir, start);
    let entries = read_index(disk, dir, start)?.into_iter();
    let data = disk.open(&path).map_err(|source| RawError::io(&path, source))?;
    Ok(OpenStretch { start, data, entries, position: start })
}

/// The opened stretch; `None` if the recorder has removed it, or is just creating it.
fn found<T>(opened: Result<T, RawError>) -> Result<Option<T>, RawError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(RawError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
