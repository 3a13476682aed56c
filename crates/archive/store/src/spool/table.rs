//! What is known of the flows and destinations of a spool, and what follows from it.

use super::OpenFlow;
use super::destinations::{
    Cursor, Cursors, DestinationId, DestinationRole, GaveWay, GivesWay, Settle,
};
use crate::log::{FlowSpan, Position, SegmentNo, SegmentSummary};
use crate::{FlowId, Seq};
use std::collections::BTreeMap;

/// Flows that are open, or that a destination lacks something of. A hundred contacts a day and
/// channel fill it in a month without a line.
pub const MAX_LIVE_FLOWS: usize = 4_096;

/// No contact has this flow number or a higher one: those are of what else goes through a session
/// with a destination.
pub const FLOW_END: FlowId = FlowId(1 << 31);

/// What is known of the flows and destinations of a spool.
#[derive(Debug, Clone)]
pub(super) struct FlowTable {
    pub next_flow: u32,
    pub destinations: DestinationTable,
    pub live: BTreeMap<FlowId, Flow>,
}

/// The destinations that a spool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DestinationTable {
    /// In the order of their declaration; at most [`MAX_DESTINATIONS`].
    pub list: Vec<KnownDestination>,
    pub next: u32,
}

/// A destination that a spool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownDestination {
    pub id: DestinationId,
    /// Empty as long as none was declared.
    pub name: String,
    pub role: DestinationRole,
    pub gave_way: GaveWay,
}

/// A flow that is open, or that a destination lacks something of.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// The place of the next record.
    pub next: Seq,
    pub cursors: Cursors,
    /// Where the newest record is.
    pub last: Option<Position>,
    pub end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Open,
    /// Closed in memory only: a restart would find it open, so that its newest record has to stay.
    Closing,
    Closed,
}

impl DestinationTable {
    /// The one that a new spool begins with.
    pub fn first() -> Self {
        let only = KnownDestination {
            id: DestinationId::FIRST,
            name: String::new(),
            role: DestinationRole::Counted,
            gave_way: GaveWay::default(),
        };
        Self { list: vec![only], next: DestinationId::FIRST.0 + 1 }
    }

    pub fn of(&self, id: DestinationId) -> Option<&KnownDestination> {
        self.list.iter().find(|known| known.id == id)
    }

    /// A cursor of each, for a flow that nothing was said of.
    pub fn all(&self) -> Cursors {
        let fresh = |known: &KnownDestination| Cursor::new(known.id, known.role);
        Cursors::new(Settle::All, self.list.iter().map(fresh))
    }
}

/// The records of a flow that are not in custody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowExtent {
    /// The first of them.
    pub custody: Seq,
    /// Behind the last.
    pub next: Seq,
}

impl FlowTable {
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// The flow that `open` will give.
    pub fn coming(&self) -> FlowId {
        FlowId(self.next_flow)
    }

    /// The next place of a flow that takes records.
    pub fn next(&self, flow: FlowId) -> Option<Seq> {
        self.live.get(&flow).filter(|flow| flow.end == End::Open).map(|flow| flow.next)
    }

    /// What of a live flow is not in a destination's custody; `None` where it does not go there.
    pub fn extent(&self, to: DestinationId, flow: FlowId) -> Option<FlowExtent> {
        let state = self.live.get(&flow)?;
        let cursor = state.cursors.of(to)?;
        Some(FlowExtent { custody: cursor.custody, next: state.next })
    }

    /// The same of every destination that counts.
    pub fn counted_extent(&self, flow: FlowId) -> Option<FlowExtent> {
        let state = self.live.get(&flow)?;
        Some(FlowExtent { custody: state.cursors.had_by_counted(state.next), next: state.next })
    }

    /// Below this place records of a flow were not here any more for a destination.
    pub fn gone(&self, to: DestinationId, flow: FlowId) -> Seq {
        let cursor = self.live.get(&flow).and_then(|flow| flow.cursors.of(to));
        cursor.map_or(Seq::FIRST, |cursor| cursor.gone)
    }

    /// Whether the segment holds something that is not in a destination's custody.
    pub fn waits(&self, to: DestinationId, summary: &SegmentSummary) -> bool {
        let waits = |span: &FlowSpan| {
            self.extent(to, span.flow).is_some_and(|extent| span.last >= extent.custody)
        };
        summary.flows.iter().any(waits)
    }

    /// What the segment means when room is needed: what that one of its flows means that gives way
    /// last. The newest record of an open flow stays.
    pub fn gives_way(&self, segment: SegmentNo, summary: &SegmentSummary) -> GivesWay {
        let of = |span: &FlowSpan| {
            let Some(flow) = self.live.get(&span.flow) else { return GivesWay::Kept };
            let newest = flow.last.is_some_and(|last| last.segment == segment);
            if newest && flow.end != End::Closed {
                return GivesWay::Never;
            }
            flow.cursors.gives_way(span.last, flow.next)
        };
        summary.flows.iter().map(of).max().unwrap_or(GivesWay::Kept)
    }

    /// Whether the segment may be removed without need.
    pub fn release(&self, segment: SegmentNo, summary: &SegmentSummary) -> bool {
        self.gives_way(segment, summary) == GivesWay::Kept
    }

    pub fn live(&self) -> impl Iterator<Item = FlowId> {
        self.live.keys().copied()
    }

    /// The live flows that go to a destination.
    pub fn going_to(&self, to: DestinationId) -> impl Iterator<Item = FlowId> {
        let goes = move |(_, flow): &(&FlowId, &Flow)| flow.cursors.of(to).is_some();
        self.live.iter().filter(goes).map(|(id, _)| *id)
    }

    /// What each destination has not the whole of; an open flow never is.
    pub fn unfinished(&self) -> Vec<(DestinationId, FlowId)> {
        let mut found = Vec::new();
        for (id, flow) in &self.live {
            let lacks = |cursor: &&Cursor| flow.end == End::Open || cursor.custody < flow.next;
            found.extend(flow.cursors.iter().filter(lacks).map(|cursor| (cursor.to, *id)));
        }
        found
    }

    /// The closed flows of which a destination lacks something.
    pub fn closed_for(&self, to: DestinationId) -> impl Iterator<Item = (FlowId, FlowExtent)> {
        let closed = self.live.iter().filter(|(_, flow)| flow.end == End::Closed);
        closed.filter_map(move |(id, flow)| {
            let custody = flow.cursors.of(to)?.custody;
            let extent = FlowExtent { custody, next: flow.next };
            (custody < flow.next).then_some((*id, extent))
        })
    }

    /// The place of the next record of a live flow, open or closed.
    pub fn next_of(&self, flow: FlowId) -> Option<Seq> {
        self.live.get(&flow).map(|flow| flow.next)
    }

    pub fn is_closed(&self, flow: FlowId) -> bool {
        self.live.get(&flow).is_none_or(|flow| flow.end == End::Closed)
    }

    pub fn open_flows(&self) -> impl Iterator<Item = OpenFlow> {
        let open = self.live.iter().filter(|(_, flow)| flow.end == End::Open);
        open.map(|(id, flow)| {
            let custody = flow.cursors.had_by_counted(flow.next);
            OpenFlow { flow: *id, next: flow.next, custody }
        })
    }

    pub fn last_at(&self, flow: FlowId) -> Option<Position> {
        self.live.get(&flow).filter(|flow| flow.end == End::Open)?.last
    }

    /// Records that a destination that counts lacks.
    pub fn waiting(&self) -> u64 {
        let flows = self.live.values();
        flows.map(|flow| flow.next.count_from(flow.cursors.had_by_counted(flow.next))).sum()
    }

    /// Records that one destination lacks.
    pub fn waiting_for(&self, to: DestinationId) -> u64 {
        let cursor = |flow: &Flow| flow.cursors.of(to).map(|cursor| cursor.custody);
        let flows = self.live.values();
        flows.filter_map(|flow| cursor(flow).map(|custody| flow.next.count_from(custody))).sum()
    }

    pub fn destinations(&self) -> &[KnownDestination] {
        &self.destinations.list
    }
}
