//! Reads the records of a flow that the spool still has, in custody or not.

use super::{SpoolError, SpoolQueue};
use crate::FlowId;
use crate::log::{LogCursor, LogEntry, LogRecord};
use skyhaul_units::Utc;
use std::collections::BTreeSet;

/// A place in what the spool has of one flow. Holds one open file and no record.
#[derive(Debug)]
pub struct RecallReader {
    flow: FlowId,
    cursor: LogCursor,
}

/// The flows of which a record was written at `from` or later, and is here.
pub fn flows_written_since(queue: &SpoolQueue, from: Utc) -> BTreeSet<FlowId> {
    let spans = queue.log.segments().iter().flat_map(|(_, summary)| &summary.flows);
    spans.filter(|span| span.last_written >= from).map(|span| span.flow).collect()
}

impl SpoolQueue {
    /// A reader of a flow's records, beginning in the first segment that has some written at `from`
    /// or later. What is in custody is there for as long as its retention, and until its segment
    /// goes.
    pub fn recall_reader(&self, flow: FlowId, from: Utc) -> RecallReader {
        let mut segments = self.log.segments().iter();
        let first = segments
            .find(|(_, summary)| summary.span(flow).is_some_and(|span| span.last_written >= from));
        let cursor =
            first.map_or_else(|| self.log.end(), |(number, _)| LogCursor::at_segment(number));
        RecallReader { flow, cursor }
    }

    /// The flow's next durable record; `None` where there is none. What the disk does not give back
    /// is passed over.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where a file cannot be opened.
    pub fn recall(&mut self, reader: &mut RecallReader) -> Result<Option<LogRecord>, SpoolError> {
        let flow = reader.flow;
        loop {
            match self.log.read_where(&mut reader.cursor, |other, _| other == flow)? {
                Some(LogEntry::Block(record)) => return Ok(Some(record)),
                Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) => {}
                None => return Ok(None),
            }
        }
    }
}
