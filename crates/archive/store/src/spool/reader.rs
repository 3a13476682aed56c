//! Reads the spool in the order of writing, from the first record without custody.

use super::{FlowExtent, Flows, SpoolError, SpoolQueue};
use crate::log::{LogCursor, LogEntry, LogRecord, SegmentSummary};
use crate::{FlowId, Seq};
use std::collections::{BTreeMap, VecDeque};

/// A place in the spool. Holds one open file, a place for each live flow and at most one record.
#[derive(Debug)]
pub struct SpoolReader {
    cursor: LogCursor,
    expected: BTreeMap<FlowId, Seq>,
    /// At most one entry a flow of a segment, and a record.
    pending: VecDeque<SpoolItem>,
}

/// What a reader of the spool meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoolItem {
    /// A record that is not in custody.
    Block(LogRecord),
    /// Records that the disk did not give back: `first` to `last`, both included, at most 4,096 of
    /// them at a time. The far end waits for these places, so that something has to be sent for
    /// them.
    Missing {
        /// The flow.
        flow: FlowId,
        /// The first place that is missing.
        first: Seq,
        /// The last place that is missing.
        last: Seq,
    },
}

/// Places that are missing, in one item.
const MISSING_MAX: u64 = 4_096;

impl SpoolReader {
    fn new(cursor: LogCursor) -> Self {
        Self { cursor, expected: BTreeMap::new(), pending: VecDeque::new() }
    }

    /// Whether `seq` comes next or later in its flow; what is missing before it is noted.
    fn reach(&mut self, flows: &Flows, flow: FlowId, seq: Seq) -> bool {
        let Some(FlowExtent { custody: waiting, .. }) = flows.extent(flow) else {
            return false;
        };
        let expected = self.expected.entry(flow).or_insert(waiting);
        let first = (*expected).max(waiting);
        if seq < first {
            return false;
        }
        *expected = seq;
        let mut first = first;
        while first < seq {
            let next = Seq(first.0 + MISSING_MAX).min(seq);
            self.pending.push_back(SpoolItem::Missing { flow, first, last: Seq(next.0 - 1) });
            first = next;
        }
        true
    }
}

impl SpoolQueue {
    /// A reader at the first record that is not in custody.
    pub fn reader_from_custody(&self) -> SpoolReader {
        let waits = |summary: &SegmentSummary| self.flows.waits(summary);
        let first = self
            .log
            .segments()
            .iter()
            .find(|(_, summary)| waits(summary))
            .map(|(number, _)| number);
        SpoolReader::new(first.map_or_else(|| self.log.end(), LogCursor::at_segment))
    }

    /// The next durable record that is not in custody; `None` where there is none: read again after
    /// a sync.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where a file cannot be opened.
    pub fn read(&mut self, reader: &mut SpoolReader) -> Result<Option<SpoolItem>, SpoolError> {
        self.read_flows(reader, |_| true)
    }

    /// As [`Self::read`], of the flows that `wanted` says alone: what the others hold is passed
    /// over unread.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_flows(
        &mut self,
        reader: &mut SpoolReader,
        wanted: impl Fn(FlowId) -> bool,
    ) -> Result<Option<SpoolItem>, SpoolError> {
        loop {
            if let Some(item) = reader.pending.pop_front() {
                if let SpoolItem::Missing { first, last, .. } = &item {
                    self.missing += last.next().count_from(*first);
                }
                return Ok(Some(item));
            }
            let flows = &self.flows;
            let is_waiting =
                |flow, seq| flows.extent(flow).is_some_and(|extent| seq >= extent.custody);
            let wants = |flow, seq| wanted(flow) && is_waiting(flow, seq);
            let read = self.log.read_where(&mut reader.cursor, wants)?;
            match read {
                None => return Ok(None),
                // Shows as missing places before the flow's next record, or at the segment's end.
                Some(LogEntry::Damaged(_)) => {}
                Some(LogEntry::Block(record)) => {
                    if reader.reach(&self.flows, record.flow, record.seq) {
                        reader.expected.insert(record.flow, record.seq.next());
                        reader.pending.push_back(SpoolItem::Block(record));
                    }
                }
                Some(LogEntry::SegmentEnd(number)) => {
                    let spans =
                        self.log.segments().get(number).map_or(&[][..], |summary| &summary.flows);
                    for span in spans.iter().filter(|span| wanted(span.flow)) {
                        reader.reach(&self.flows, span.flow, span.last.next());
                    }
                    reader.expected.retain(|flow, _| self.flows.extent(*flow).is_some());
                }
            }
        }
    }
}
