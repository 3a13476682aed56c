//! Reads the spool for one destination, in the order of writing, from the first record that is not
//! in its custody.

use super::destinations::DestinationId;
use super::{FlowExtent, Flows, SpoolError, SpoolQueue};
use crate::log::{FlowSpan, LogCursor, LogEntry, LogRecord, SegmentNo, SegmentSummary};
use crate::{FlowId, Seq};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A place in the spool. Holds one open file, a place for each live flow and at most one record.
#[derive(Debug)]
pub struct SpoolReader {
    to: DestinationId,
    cursor: LogCursor,
    expected: BTreeMap<FlowId, Seq>,
    /// At most one entry a flow of a segment, and a record.
    pending: VecDeque<SpoolItem>,
    /// The spool's counts of what gave way and of new routes, as far as they were looked at.
    looked_at: Option<u64>,
    routed: u64,
}

/// What a reader of the spool meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoolItem {
    /// A record that is not in custody.
    Block(LogRecord),
    /// Records that the disk did not give back, or that gave way before this destination had them:
    /// `first` to `last`, both included, at most 4,096 of them at a time. The far end waits for
    /// these places, so that something has to be sent for them.
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
    /// The destination that it reads for.
    pub const fn to(&self) -> DestinationId {
        self.to
    }

    /// Whether `seq` comes next or later in its flow; what is missing before it is noted.
    fn reach(&mut self, flows: &Flows, flow: FlowId, seq: Seq) -> bool {
        let Some(FlowExtent { custody: waiting, .. }) = flows.table.extent(self.to, flow) else {
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
    /// A reader for a destination, at the first record that is not in its custody.
    pub fn reader_from_custody(&self, to: DestinationId) -> SpoolReader {
        SpoolReader {
            to,
            cursor: self.at_custody(to),
            expected: BTreeMap::new(),
            pending: VecDeque::new(),
            looked_at: None,
            routed: self.routed,
        }
    }

    fn at_custody(&self, to: DestinationId) -> LogCursor {
        let waits = |summary: &SegmentSummary| self.flows.table.waits(to, summary);
        let first = self
            .log
            .segments()
            .iter()
            .find(|(_, summary)| waits(summary))
            .map(|(number, _)| number);
        first.map_or_else(|| self.log.end(), LogCursor::at_segment)
    }

    /// Notes the ends of closed flows that are not here any more, and that no segment before the
    /// reader will show: looked for when it begins, and each time that something gave way.
    fn find_gone(&self, reader: &mut SpoolReader, wanted: impl Fn(FlowId) -> bool) {
        if reader.looked_at == Some(self.gave_way) {
            return;
        }
        reader.looked_at = Some(self.gave_way);
        let here = reader.cursor.position().segment;
        let ahead = self.log.segments().iter().filter(|(number, _)| *number >= here);
        let ahead: BTreeSet<FlowId> =
            ahead.flat_map(|(_, summary)| &summary.flows).map(|span| span.flow).collect();
        for (flow, extent) in self.flows.table.closed_for(reader.to) {
            if !ahead.contains(&flow) && wanted(flow) {
                reader.reach(&self.flows, flow, extent.next);
            }
        }
    }

    /// Where a flow ends as far as this segment shows: behind its last record, or behind the last
    /// that it ever had where the log has none of the later ones.
    fn shown_end(&self, number: SegmentNo, span: &FlowSpan) -> Seq {
        let later = |(other, summary): (SegmentNo, &SegmentSummary)| {
            other > number && summary.span(span.flow).is_some()
        };
        let end = span.last.next();
        if !self.flows.table.is_closed(span.flow) || self.log.segments().iter().any(later) {
            return end;
        }
        self.flows.table.next_of(span.flow).map_or(end, |next| next.max(end))
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
        if reader.routed != self.routed {
            // What was passed over may be for this destination now; what was read is not read
            // again.
            (reader.routed, reader.looked_at) = (self.routed, None);
            reader.cursor = self.at_custody(reader.to);
        }
        loop {
            if reader.pending.is_empty() {
                self.find_gone(reader, &wanted);
            }
            if let Some(item) = reader.pending.pop_front() {
                if let SpoolItem::Missing { flow, first, last } = &item {
                    // What gave way was counted then.
                    let first = (*first).max(self.flows.table.gone(reader.to, *flow));
                    self.missing += last.next().count_from(first);
                }
                return Ok(Some(item));
            }
            let (flows, expected, to) = (&self.flows, &reader.expected, reader.to);
            let is_waiting = |flow, seq| {
                flows.table.extent(to, flow).is_some_and(|extent| seq >= extent.custody)
            };
            let is_new = |flow, seq| expected.get(&flow).is_none_or(|expected| seq >= *expected);
            let wants = |flow, seq| wanted(flow) && is_waiting(flow, seq) && is_new(flow, seq);
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
                        let end = self.shown_end(number, span);
                        reader.reach(&self.flows, span.flow, end);
                    }
                    let to = reader.to;
                    reader.expected.retain(|flow, _| self.flows.table.extent(to, *flow).is_some());
                }
            }
        }
    }
}
