//! Reads the durable part of a log in order.

use super::damages::{DamageFate, DamagedRange};
use super::record::{Header, Kind};
use super::scan::{Condition, Walker, fate};
use super::segments::Segments;
use super::{Log, LogError, LogRecord, Position, SegmentNo};
use crate::disk::DiskFile;
use crate::{FlowId, Seq};
use skyhaul_units::ByteCount;
use std::sync::Arc;

/// A reader's position in a log. It holds one open file and no record.
#[derive(Debug, Clone)]
pub struct LogCursor {
    at: Position,
    file: Option<(SegmentNo, Arc<dyn DiskFile>)>,
}

/// What a reader meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// A record.
    Block(LogRecord),
    /// Durable data that is damaged; reading continues after it.
    Damaged(DamagedRange),
    /// The end of the sealed segment of this number.
    SegmentEnd(SegmentNo),
}

impl LogCursor {
    /// At the start of a segment or, if it does not exist, of the next one.
    pub fn at_segment(segment: SegmentNo) -> Self {
        Self::at(Position { segment, offset: ByteCount::ZERO })
    }

    /// At a record's beginning.
    pub fn at(at: Position) -> Self {
        Self { at, file: None }
    }

    /// Where it is.
    pub fn position(&self) -> Position {
        self.at
    }
}

impl Log {
    /// At the oldest record.
    pub fn start(&self) -> LogCursor {
        let first = self.segments.iter().next().map_or(self.segments.next, |(number, _)| number);
        LogCursor::at_segment(first)
    }

    /// Behind everything that is durable.
    pub fn end(&self) -> LogCursor {
        LogCursor::at(self.durable)
    }

    /// The next entry in the order of the log; `None` if everything durable was read. Read again
    /// after a sync.
    ///
    /// # Errors
    /// [`LogError::Io`] where a file cannot be opened. Unreadable sectors are
    /// [`LogEntry::Damaged`].
    pub fn read(&mut self, cursor: &mut LogCursor) -> Result<Option<LogEntry>, LogError> {
        self.read_where(cursor, |_, _| true)
    }

    /// As [`Log::read`], but skips records that `wanted` refuses, without reading their payload.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_where(
        &mut self,
        cursor: &mut LogCursor,
        wanted: impl Fn(FlowId, Seq) -> bool,
    ) -> Result<Option<LogEntry>, LogError> {
        loop {
            let Some(limit) = self.segments.readable_to(cursor, self.durable) else {
                return Ok(None);
            };
            if cursor.at.offset >= limit {
                let Some(sealed) =
                    self.segments.sealed.get(&cursor.at.segment).map(|_| cursor.at.segment)
                else {
                    return Ok(None);
                };
                cursor.at = Position { segment: SegmentNo(sealed.0 + 1), offset: ByteCount::ZERO };
                return Ok(Some(LogEntry::SegmentEnd(sealed)));
            }
            let file = self.segments.file(cursor)?;
            let walker = Walker { file: &*file, segment: cursor.at.segment, limit };
            let at = cursor.at.offset;
            let (found, header) = match walker.header(at) {
                Some(header) => (Condition::Intact, header),
                None => match walker.beyond(at) {
                    (next, Some(header)) if next == at => (Condition::Mended, header),
                    (next, _) => {
                        cursor.at.offset = next;
                        let fate = fate(next - at);
                        let damage = self.damaged(cursor, at, fate);
                        if fate == DamageFate::SteppedOver {
                            return Ok(Some(LogEntry::Damaged(damage)));
                        }
                        continue;
                    }
                },
            };
            cursor.at.offset = at + header.total();
            if header.kind != Kind::Block || !wanted(header.flow, header.seq) {
                continue;
            }
            let mut payload = Vec::new();
            let Some(condition) = walker.payload(at, &header, &mut payload) else {
                return Ok(Some(LogEntry::Damaged(self.damaged(
                    cursor,
                    at,
                    DamageFate::SteppedOver,
                ))));
            };
            if [found, condition].contains(&Condition::Mended) {
                self.damaged(cursor, at, DamageFate::Mended);
            }
            return Ok(Some(LogEntry::Block(record(&header, payload))));
        }
    }

    fn damaged(&mut self, cursor: &LogCursor, offset: ByteCount, fate: DamageFate) -> DamagedRange {
        let length = cursor.at.offset - offset;
        let damage =
            DamagedRange { fate, file: self.segments.path(cursor.at.segment), offset, length };
        self.damages.note(damage.clone(), &mut self.stats);
        damage
    }
}

impl Segments {
    /// The position up to which the cursor's segment may be read; if the segment was removed, moves
    /// the cursor on.
    fn readable_to(&self, cursor: &mut LogCursor, durable: Position) -> Option<ByteCount> {
        let number = cursor.at.segment;
        if let Some(sealed) = self.sealed.get(&number) {
            return Some(sealed.summary.size);
        }
        let active = self.active.as_ref().map(|active| active.number);
        let next = self.sealed.range(number..).next().map(|(next, _)| *next).or(active)?;
        if next < number {
            return None;
        }
        if next > number {
            cursor.at = Position { segment: next, offset: ByteCount::ZERO };
            return self.readable_to(cursor, durable);
        }
        Some(if durable.segment == number { durable.offset } else { ByteCount::ZERO })
    }

    /// The file of the cursor's segment.
    fn file(&self, cursor: &mut LogCursor) -> Result<Arc<dyn DiskFile>, LogError> {
        if let Some((number, file)) = &cursor.file
            && *number == cursor.at.segment
        {
            return Ok(file.clone());
        }
        let path = self.path(cursor.at.segment);
        let file =
            self.disk.open(&path).map_err(|error| LogError::io("open the file", &path, error))?;
        cursor.file = Some((cursor.at.segment, file.clone()));
        Ok(file)
    }
}

fn record(header: &Header, payload: Vec<u8>) -> LogRecord {
    LogRecord { flow: header.flow, seq: header.seq, written: header.written, payload }
}
