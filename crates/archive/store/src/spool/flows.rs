//! How the state of flows and destinations changes, and when it is written.

use super::LOG_DIR;
use super::destinations::{
    Cursor, Cursors, DestinationError, DestinationId, DestinationRole, FlowRoute, GaveWay,
    GivesWay, Settle, Since, SpoolDestination, check,
};
use super::state::is_of_before;
use super::table::{
    DestinationTable, End, FLOW_END, Flow, FlowTable, KnownDestination, MAX_LIVE_FLOWS,
};
use crate::disk::Disk;
use crate::log::{FlowSpan, Log, Position, SegmentNo, SegmentSummary};
use crate::publish::{load_state, save_state};
use crate::{FlowId, Seq};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::io;

#[derive(Debug)]
pub(super) struct Flows {
    pub table: FlowTable,
    lags: bool,
    /// One of the state file's two copies was damaged when it was read.
    was_damaged: bool,
}

/// What a receipt brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub blocks: u64,
    pub ahead: u64,
}

impl Flows {
    pub fn path() -> String {
        format!("{LOG_DIR}/{STATE_NAME}")
    }

    /// Reads the state file and adds what the log holds.
    pub fn load(disk: &dyn Disk, log: &Log, now: Utc) -> io::Result<Self> {
        let mut flows = match load_state(disk, &Self::path())? {
            Some(file) => {
                let table = FlowTable::decode(&file.body)?;
                let lags = file.is_damaged || is_of_before(&file.body);
                Self { table, lags, was_damaged: file.is_damaged }
            }
            None => Self::begun(log, now),
        };
        // A flow below this and not in the state was closed and wholly in custody.
        let forgotten_below = FlowId(flows.table.next_flow);
        for (number, summary) in log.segments().iter() {
            for span in &summary.flows {
                flows.found(number, span, forgotten_below);
            }
        }
        Ok(flows)
    }

    /// Without a state file: all that the log holds is live.
    fn begun(log: &Log, now: Utc) -> Self {
        let destinations = DestinationTable::first();
        let mut live: BTreeMap<FlowId, Flow> = BTreeMap::new();
        let mut next_flow = first_flow(now);
        for span in log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
            next_flow = next_flow.max(span.flow.0.saturating_add(1));
            live.entry(span.flow).or_insert_with(|| begun(&destinations, span.first));
        }
        let table = FlowTable { next_flow, destinations, live };
        Self { table, lags: true, was_damaged: false }
    }

    fn found(&mut self, segment: SegmentNo, span: &FlowSpan, forgotten_below: FlowId) {
        let FlowTable { live, destinations, next_flow } = &mut self.table;
        if span.flow < forgotten_below && !live.contains_key(&span.flow) {
            return;
        }
        *next_flow = (*next_flow).max(span.flow.0.saturating_add(1));
        let flow = live.entry(span.flow).or_insert_with(|| begun(destinations, span.first));
        flow.next = flow.next.max(span.last.next());
        flow.last = Some(Position { segment, offset: span.last_at });
    }

    /// Whether one of the state file's two copies was damaged when it was read.
    pub fn was_damaged(&self) -> bool {
        self.was_damaged
    }

    /// Whether the state file is behind.
    pub fn lags(&self) -> bool {
        self.lags
    }

    /// Opens a flow for all destinations.
    pub fn open(&mut self) -> Option<FlowId> {
        let flow = FlowId(self.table.next_flow);
        if flow >= FLOW_END {
            return None;
        }
        self.table.next_flow += 1;
        self.table.live.insert(flow, begun(&self.table.destinations, Seq::FIRST));
        self.lags = true;
        Some(flow)
    }

    /// Undoes `open`; the number stays used.
    pub fn take_back(&mut self, flow: FlowId) {
        self.table.live.remove(&flow);
    }

    pub fn appended(&mut self, flow: FlowId, at: Position) {
        if let Some(flow) = self.table.live.get_mut(&flow) {
            flow.next = flow.next.next();
            flow.last = Some(at);
        }
    }

    pub fn close(&mut self, flow: FlowId) {
        if let Some(flow) = self.table.live.get_mut(&flow).filter(|flow| flow.end == End::Open) {
            flow.end = End::Closing;
            self.lags = true;
        }
    }

    pub fn custody(&mut self, to: DestinationId, flow: FlowId, next: Seq) -> Taken {
        let Some(state) = self.table.live.get_mut(&flow) else {
            return Taken::default();
        };
        let Some(cursor) = state.cursors.of_mut(to) else {
            return Taken::default();
        };
        let finished = next == Seq::FINISHED;
        let next = if finished { state.next } else { next };
        let ahead = next.count_from(state.next);
        let blocks = next.min(state.next).count_from(cursor.custody);
        // A place that a destination has must not be given to another record.
        state.next = state.next.max(next);
        cursor.custody = cursor.custody.max(next);
        let is_done = is_done(state);
        self.lags |= blocks + ahead > 0 || is_done;
        if finished {
            // What is appended to a flow that was processed would be taken for a repetition.
            self.close(flow);
        }
        if is_done {
            self.table.live.remove(&flow);
        }
        Taken { blocks, ahead }
    }

    /// A destination has no more of a live flow than what is below `next`.
    pub fn go_back(&mut self, to: DestinationId, flow: FlowId, next: Seq) {
        let cursor = self.table.live.get_mut(&flow).and_then(|flow| flow.cursors.of_mut(to));
        if let Some(cursor) = cursor.filter(|cursor| next < cursor.custody) {
            cursor.custody = next;
            self.lags = true;
        }
    }

    /// A segment is about to go although destinations lack records of it: that is noted for each,
    /// so that it is told which. Nothing is counted yet.
    pub fn gives_way_now(&mut self, summary: &SegmentSummary) {
        for span in &summary.flows {
            let Some(flow) = self.table.live.get_mut(&span.flow) else { continue };
            for cursor in flow.cursors.iter_mut().filter(|cursor| cursor.custody <= span.last) {
                cursor.gone = cursor.gone.max(span.last.next());
            }
        }
        self.lags = true;
    }

    /// The segment went: what each destination lacked of it counts.
    pub fn gave_way(&mut self, summary: &SegmentSummary) {
        let FlowTable { live, destinations, .. } = &mut self.table;
        for span in &summary.flows {
            let Some(flow) = live.get(&span.flow) else { continue };
            for cursor in flow.cursors.iter() {
                let lacked = span.last.next().count_from(span.first.max(cursor.custody));
                let known = destinations.list.iter_mut().find(|known| known.id == cursor.to);
                if let Some(known) = known.filter(|_| lacked > 0) {
                    let share = span.share(span.first.max(cursor.custody));
                    known.gave_way.blocks += lacked;
                    known.gave_way.bytes += share;
                }
            }
        }
        self.lags = true;
    }

    /// Lets go of the oldest closed flow that is settled as a whole, so that another can be opened.
    /// Returns whether there was one.
    pub fn give_up_oldest(&mut self) -> bool {
        for tier in [GivesWay::Shadows, GivesWay::Settled] {
            let ways = |flow: &Flow| {
                flow.end == End::Closed
                    && flow.cursors.gives_way(Seq(flow.next.0.saturating_sub(1)), flow.next) == tier
            };
            let oldest = self.table.live.iter().find(|(_, flow)| ways(flow)).map(|(id, _)| *id);
            let Some(flow) = oldest.and_then(|oldest| self.table.live.remove(&oldest)) else {
                continue;
            };
            for cursor in flow.cursors.iter() {
                let mut known = self.table.destinations.list.iter_mut();
                if let Some(known) = known.find(|known| known.id == cursor.to) {
                    known.gave_way.blocks += flow.next.count_from(cursor.custody);
                }
            }
            self.lags = true;
            return true;
        }
        false
    }

    /// Writes the state file. Afterwards closed flows are closed for good.
    pub fn save(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.lags = true;
        save_state(disk, LOG_DIR, STATE_NAME, &self.encode())?;
        self.lags = false;
        for flow in self.table.live.values_mut().filter(|flow| flow.end == End::Closing) {
            flow.end = End::Closed;
        }
        self.forget_done();
        Ok(())
    }

    fn forget_done(&mut self) {
        let before = self.table.live.len();
        self.table.live.retain(|_, flow| !is_done(flow));
        self.lags |= self.table.live.len() < before;
    }

    pub fn encode(&self) -> Vec<u8> {
        self.table.encode()
    }
}

/// The destinations, and where each flow goes.
impl Flows {
    /// What [`Self::restore`] goes back to.
    pub fn kept_copy(&self) -> FlowTable {
        self.table.clone()
    }

    pub fn restore(&mut self, table: FlowTable) {
        self.table = table;
    }

    /// Has exactly these destinations from now on. `kept` is what the log still has of each
    /// flow. Returns their numbers, in the order of `wanted`.
    pub fn set_destinations(
        &mut self,
        wanted: &[SpoolDestination],
        kept: &BTreeMap<FlowId, KeptFlow>,
    ) -> Result<Vec<DestinationId>, DestinationError> {
        check(wanted)?;
        let FlowTable { destinations, live, .. } = &mut self.table;
        let unnamed = destinations.list.iter().position(|known| known.name.is_empty());
        if let Some(unnamed) = unnamed
            && let Some(centre) =
                wanted.iter().find(|wanted| wanted.role == DestinationRole::Counted)
        {
            // What was kept for the only one there was is for the first that counts.
            destinations.list[unnamed].name.clone_from(&centre.name);
        }
        let mut list = Vec::new();
        let mut begins = Vec::new();
        for SpoolDestination { name, role, since } in wanted {
            let known = destinations.list.iter().find(|known| known.name == *name).cloned();
            let known = known.unwrap_or_else(|| {
                let id = DestinationId(destinations.next);
                destinations.next = destinations.next.saturating_add(1);
                if *since == Since::Kept {
                    begins.push(Cursor::new(id, *role));
                }
                let (name, gave_way) = (name.clone(), GaveWay::default());
                KnownDestination { id, name, role: *role, gave_way }
            });
            list.push(KnownDestination { role: *role, ..known });
        }
        destinations.list = list;
        for flow in live.values_mut() {
            flow.cursors.retain(|cursor| destinations.of(cursor.to).is_some());
            for cursor in flow.cursors.iter_mut() {
                let known = destinations.of(cursor.to);
                cursor.role = known.map_or(cursor.role, |known| known.role);
            }
        }
        for begun in begins {
            self.begin_with_kept(begun, kept);
        }
        self.lags = true;
        self.forget_done();
        Ok(self.table.destinations.list.iter().map(|known| known.id).collect())
    }

    /// A new destination gets what the log still has, also of flows that the others were done with:
    /// the newest of those, as far as there is room for half of all.
    fn begin_with_kept(&mut self, begun: Cursor, kept: &BTreeMap<FlowId, KeptFlow>) {
        for (id, flow) in kept.iter().rev() {
            if let Some(known) = self.table.live.get_mut(id) {
                let is_end_unknown = known.cursors.is_end_unknown();
                let gone = if is_end_unknown { Seq::FINISHED } else { flow.gone(known.next) };
                known.cursors.add(Cursor { gone, ..begun });
            } else if self.table.live.len() < MAX_LIVE_FLOWS / 2 {
                // Its last records may have gone before the first: more of it may be elsewhere.
                let cursor = Cursor { gone: Seq::FINISHED, ..begun };
                let cursors = Cursors::new(Settle::All, [cursor]);
                let next = flow.last.next();
                let revived = Flow { next, cursors, last: None, end: End::Closed };
                self.table.live.insert(*id, revived);
            }
        }
    }

    /// A live flow goes no more to this destination.
    pub fn leave(&mut self, flow: FlowId, to: DestinationId) {
        if let Some(state) = self.table.live.get_mut(&flow) {
            state.cursors.retain(|cursor| cursor.to != to);
            self.lags = true;
            self.forget_done();
        }
    }

    /// A live flow goes this way from now on. Returns whether a destination is new to it that has
    /// to be given what is there.
    pub fn set_route(&mut self, flow: FlowId, route: &FlowRoute, kept: Option<KeptFlow>) -> bool {
        let FlowTable { destinations, live, .. } = &mut self.table;
        let Some(state) = live.get_mut(&flow) else { return false };
        let known = route.to.iter().filter_map(|to| destinations.of(*to));
        let mut is_behind = false;
        let gone = match kept {
            _ if state.cursors.is_end_unknown() => Seq::FINISHED,
            Some(kept) => kept.gone(state.next),
            None => state.next,
        };
        let list: Vec<Cursor> = known
            .map(|known| {
                let fresh = Cursor::new(known.id, known.role);
                state.cursors.of(known.id).copied().unwrap_or_else(|| {
                    is_behind |= state.next > Seq::FIRST;
                    Cursor { gone, ..fresh }
                })
            })
            .collect();
        state.cursors = Cursors::new(route.settle, list);
        self.lags = true;
        self.forget_done();
        is_behind
    }
}

/// What the log has of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptFlow {
    /// From here on up to the last none is missing.
    pub whole_from: Seq,
    pub last: Seq,
}

impl KeptFlow {
    /// Below this place records are not here any more, of a flow that goes on with `next`. Its last
    /// ones may have gone before earlier ones, which lie beside records of other flows.
    fn gone(&self, next: Seq) -> Seq {
        if self.last.next() < next { next } else { self.whole_from }
    }
}

/// A flow of which nothing was said, open, from its first record on.
fn begun(destinations: &DestinationTable, first: Seq) -> Flow {
    let mut cursors = destinations.all();
    cursors.iter_mut().for_each(|cursor| cursor.custody = first);
    Flow { next: first, cursors, last: None, end: End::Open }
}

/// Whether a flow is closed, and no destination lacks anything of it.
fn is_done(flow: &Flow) -> bool {
    flow.end == End::Closed && flow.cursors.had_by_all(flow.next) >= flow.next
}

/// The time, so that people do not meet the same number in two spools of a station; a clock that is
/// far off leaves a quarter of all numbers.
fn first_flow(now: Utc) -> u32 {
    let seconds = now.as_micros().div_euclid(1_000_000) - SECONDS_TO_2020;
    u32::try_from(seconds.max(1)).unwrap_or(u32::MAX).min(FLOW_END.0 / 2)
}

const STATE_NAME: &str = "flows";
/// 1970-01-01 to 2020-01-01.
const SECONDS_TO_2020: i64 = 1_577_836_800;
