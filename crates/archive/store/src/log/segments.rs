//! The list of the segment files of a log, with the summary of each.

use super::record::block_size;
use super::summary::file_name;
use super::sync::Tail;
use super::{LogConfig, LogError, SegmentNo, SegmentSummary};
use crate::FlowId;
use crate::disk::{Disk, DiskFile};
use skyhaul_units::ByteCount;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The segments of a log.
#[derive(Debug)]
pub struct Segments {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: String,
    pub(super) sealed: BTreeMap<SegmentNo, Sealed>,
    /// The bytes in the files of the sealed ones.
    pub(super) sealed_size: ByteCount,
    pub(super) active: Option<Active>,
    /// The number of the next one.
    pub(super) next: SegmentNo,
}

#[derive(Debug)]
pub(super) struct Sealed {
    pub summary: SegmentSummary,
    /// The file's length, seal included.
    pub file: ByteCount,
}

#[derive(Debug)]
pub(super) struct Active {
    pub number: SegmentNo,
    pub tail: Arc<Tail>,
    pub summary: SegmentSummary,
    /// Where the last block ends.
    pub last_block_end: ByteCount,
    /// A failed append could not be undone yet: the file is longer than its valid data.
    pub ragged: bool,
}

impl Segments {
    /// None, in the directory `dir`.
    pub(super) fn none(disk: Arc<dyn Disk>, dir: &str) -> Self {
        Self {
            disk,
            dir: dir.to_owned(),
            sealed: BTreeMap::new(),
            sealed_size: ByteCount::ZERO,
            active: None,
            next: SegmentNo(1),
        }
    }

    /// Adds a sealed segment, whose file has this length.
    pub(super) fn add_sealed(
        &mut self,
        number: SegmentNo,
        summary: SegmentSummary,
        file: ByteCount,
    ) {
        self.sealed_size += file;
        self.sealed.insert(number, Sealed { summary, file });
    }

    /// The bytes that the next append of this payload may add to the files: the record, and a seal
    /// if one is due.
    pub fn growth(&self, payload: ByteCount) -> ByteCount {
        let seal =
            self.active.as_ref().map_or(ByteCount::ZERO, |active| active.summary.seal_size());
        block_size(payload) + seal
    }

    /// Removes a sealed segment; no effect if there is none of this number. Then call
    /// [`Self::sync_removals`].
    ///
    /// # Errors
    /// [`LogError::Io`] if a disk operation fails; the segment is still there.
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
    /// [`LogError::Io`] if a disk operation fails: after a power cut, removed segments may be there
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

    /// The summaries of the sealed segments, oldest first.
    pub fn sealed(&self) -> impl DoubleEndedIterator<Item = (SegmentNo, &SegmentSummary)> {
        self.sealed.iter().map(|(number, sealed)| (*number, &sealed.summary))
    }

    /// What one sealed segment holds.
    pub fn get(&self, segment: SegmentNo) -> Option<&SegmentSummary> {
        self.sealed.get(&segment).map(|sealed| &sealed.summary)
    }

    /// The summary of the active segment, durable or not; `None` between two segments.
    pub fn active(&self) -> Option<(SegmentNo, &SegmentSummary)> {
        self.active.as_ref().map(|active| (active.number, &active.summary))
    }

    /// What all segments hold, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentNo, &SegmentSummary)> {
        self.sealed().chain(self.active())
    }

    pub(super) fn path(&self, segment: SegmentNo) -> String {
        format!("{}/{}", self.dir, file_name(segment))
    }

    /// Begins a segment if none is active. The file's name is durable when this returns.
    pub(super) fn make_active(&mut self) -> Result<(), LogError> {
        if self.active.is_some() {
            return Ok(());
        }
        let number = self.next;
        let path = self.path(number);
        let file = self
            .disk
            .create(&path)
            .map_err(|error| LogError::io("create the file", &path, error))?;
        self.disk
            .sync_dir(&self.dir)
            .map_err(|error| LogError::io("sync the directory", &self.dir, error))?;
        self.next = SegmentNo(number.0 + 1);
        self.active = Some(Active::new(number, file));
        Ok(())
    }
}

impl Active {
    pub fn new(number: SegmentNo, file: Arc<dyn DiskFile>) -> Self {
        Self {
            number,
            tail: Arc::new(Tail::new(file)),
            summary: SegmentSummary::default(),
            last_block_end: ByteCount::ZERO,
            ragged: false,
        }
    }

    pub fn takes(&self, flow: FlowId, total: ByteCount, config: LogConfig) -> bool {
        let empty = self.summary.flows.is_empty();
        empty
            || (self.summary.size + total <= config.segment_size && self.summary.has_room_for(flow))
    }

    /// Cuts off the rest of a failed append.
    pub fn smooth(&mut self) -> io::Result<()> {
        if self.ragged {
            self.tail.file.truncate(self.summary.size)?;
            self.ragged = false;
        }
        Ok(())
    }
}
