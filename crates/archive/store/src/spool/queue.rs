//! The records of all flows in the order of writing, and how much of each is in custody.

use super::destinations::{DestinationId, GivesWay};
use super::{Depth, FlowExtent, Flows, OpenFlow, SpoolError};
use crate::log::{DamagedRange, FlowSpan, Log, LogCursor, LogEntry, LogRecord, SegmentNo};
use crate::{FlowId, Seq, mark};
use skyhaul_units::{BlockMark, ByteCount, Utc};

/// The numbers that the flows of a spool have and get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowNumbers {
    /// The lowest one of which something waits, or else the coming one.
    pub lowest: FlowId,
    /// The next one that is opened. This spool, and those that it was copied from, have opened
    /// none from here on.
    pub coming: FlowId,
}

/// What a spool holds: its log, and the state of its flows.
#[derive(Debug)]
pub struct SpoolQueue {
    pub(super) log: Log,
    pub(super) flows: Flows,
    /// Records that could not be read back.
    pub(super) missing: u64,
    /// So often did records go that a destination lacked: readers look for them then.
    pub(super) gave_way: u64,
    /// So often did a flow get a further destination: readers begin again at custody then.
    pub(super) routed: u64,
}

impl SpoolQueue {
    /// The open flows, ascending, to resume their contacts after a restart.
    pub fn open_flows(&self) -> Vec<OpenFlow> {
        self.flows.table.open_flows().collect()
    }

    /// The numbers that flows have and get.
    pub fn flow_numbers(&self) -> FlowNumbers {
        let coming = self.flows.table.coming();
        FlowNumbers { lowest: self.flows.table.live().min().unwrap_or(coming), coming }
    }

    /// The live flows that go to a destination, ascending.
    pub fn flows_to(&self, to: DestinationId) -> Vec<FlowId> {
        self.flows.table.going_to(to).collect()
    }

    /// All flows that are open or wait for custody, ascending.
    pub fn live_flows(&self) -> Vec<FlowId> {
        self.flows.table.live().collect()
    }

    /// The newest record of an open flow; `None` where it has none, or it cannot be read back. It
    /// stays in the spool while the flow is open, in custody or not.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where the disk refuses.
    pub fn last_record(&mut self, flow: FlowId) -> Result<Option<LogRecord>, SpoolError> {
        let Some(at) = self.flows.table.last_at(flow).filter(|at| *at < self.log.durable()) else {
            return Ok(None);
        };
        Ok(match self.log.read(&mut LogCursor::at(at))? {
            Some(LogEntry::Block(record)) => Some(record),
            Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) | None => None,
        })
    }

    /// What waits for any destination that counts.
    pub fn depth(&self, now: Utc) -> Depth {
        Depth::of(&self.log, &self.flows, now)
    }

    /// What the segments fill on the disk.
    pub fn size(&self) -> ByteCount {
        self.log.segments().size()
    }

    /// The newest damages that were met, at most 16.
    pub fn damages(&self) -> impl Iterator<Item = &DamagedRange> {
        self.log.damages()
    }

    /// Whether a record of a flow is still here, durable or not.
    pub fn is_here(&self, flow: FlowId, seq: Seq) -> bool {
        let mut spans = self.log.segments().iter().filter_map(|(_, summary)| summary.span(flow));
        spans.any(|span| (span.first..=span.last).contains(&seq))
    }

    /// What of a live flow is not in a destination's custody; `None` where it does not go there.
    pub fn extent(&self, to: DestinationId, flow: FlowId) -> Option<FlowExtent> {
        self.flows.table.extent(to, flow)
    }

    /// Whether it is known where a flow ends that goes to a destination. It is not where the flow
    /// was forgotten, and the destination begins with what was kept of it.
    pub fn is_end_known(&self, to: DestinationId, flow: FlowId) -> bool {
        self.flows.table.gone(to, flow) != Seq::FINISHED
    }

    /// The newest record of a flow that is still here, durable or not.
    pub(super) fn last_here(&self, flow: FlowId) -> Option<Seq> {
        let spans = self.log.segments().iter().filter_map(|(_, summary)| summary.span(flow));
        spans.map(|span| span.last).max()
    }

    /// The sealed segment that gives way next when room is needed: of those that matter least the
    /// oldest.
    pub(super) fn next_to_give_way(&self) -> Option<(SegmentNo, GivesWay)> {
        let mut found: Option<(SegmentNo, GivesWay)> = None;
        for (number, summary) in self.log.segments().sealed() {
            let way = self.flows.table.gives_way(number, summary);
            if way < found.map_or(GivesWay::Never, |(_, way)| way) {
                found = Some((number, way));
            }
            if way == GivesWay::Kept {
                break;
            }
        }
        found
    }

    /// The mark of a durable record; `None` where it is not here, or the disk does not give it
    /// back.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where a file cannot be opened.
    pub fn mark_of(&mut self, flow: FlowId, seq: Seq) -> Result<Option<BlockMark>, SpoolError> {
        let holds = |span: &FlowSpan| span.flow == flow && (span.first..=span.last).contains(&seq);
        let mut segments = self.log.segments().iter();
        let Some((number, _)) = segments.find(|(_, summary)| summary.flows.iter().any(holds))
        else {
            return Ok(None);
        };
        drop(segments);
        let mut cursor = LogCursor::at_segment(number);
        loop {
            match self.log.read_where(&mut cursor, |other, place| other == flow && place == seq)? {
                Some(LogEntry::Block(record)) => return Ok(Some(mark(&record.payload))),
                Some(LogEntry::Damaged(_)) => {}
                Some(LogEntry::SegmentEnd(_)) | None => return Ok(None),
            }
        }
    }
}
