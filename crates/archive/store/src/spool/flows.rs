//! The state of each flow of the spool: next sequence number, custody, closed or open.

use super::{LOG_DIR, OpenFlow};
use crate::disk::Disk;
use crate::log::{FlowSpan, Log, Position, SegmentNo, SegmentSummary};
use crate::publish::{load_state, save_state};
use crate::{FlowId, Seq};
use skyhaul_units::Utc;
use skyhaul_units::wire::ByteReader;
use std::collections::BTreeMap;
use std::io;

/// Flows that are open or not wholly in custody. A hundred contacts a day and channel fill it in a
/// month without a line.
pub const MAX_LIVE_FLOWS: usize = 4_096;

/// No contact has this flow number or a higher one: those are of what else goes through a session
/// with the centre.
pub const FLOW_END: FlowId = FlowId(1 << 31);

#[derive(Debug)]
pub(super) struct Flows {
    live: BTreeMap<FlowId, Flow>,
    next_flow: u32,
    lags: bool,
    /// One of the state file's two copies was damaged when it was read.
    was_damaged: bool,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    /// The place of the next record.
    next: Seq,
    /// The first place not in custody.
    custody: Seq,
    /// Where the newest record is.
    last: Option<Position>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// Closed in memory only: a restart would find it open, so that its newest record has to stay.
    Closing,
    Closed,
}

/// The records of a flow that are not in custody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowExtent {
    /// The first of them.
    pub custody: Seq,
    /// Behind the last.
    pub next: Seq,
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
        let mut is_damaged = false;
        let mut flows = match load_state(disk, &Self::path())? {
            Some(state) => {
                let flows = Self::decode(&state.body).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, "not a spool's state")
                })?;
                is_damaged = state.is_damaged;
                flows
            }
            None => Self {
                live: BTreeMap::new(),
                next_flow: first_flow(now),
                lags: true,
                was_damaged: false,
            },
        };
        // A flow below this and not in the state was closed and wholly in custody.
        let forgotten_below = if flows.lags { 0 } else { flows.next_flow };
        (flows.lags, flows.was_damaged) = (flows.lags || is_damaged, is_damaged);
        for (number, summary) in log.segments().iter() {
            for span in &summary.flows {
                flows.found(number, span, FlowId(forgotten_below));
            }
        }
        Ok(flows)
    }

    fn found(&mut self, segment: SegmentNo, span: &FlowSpan, forgotten_below: FlowId) {
        if span.flow < forgotten_below && !self.live.contains_key(&span.flow) {
            return;
        }
        self.next_flow = self.next_flow.max(span.flow.0.saturating_add(1));
        let begun = Flow { next: span.first, custody: span.first, last: None, end: End::Open };
        let flow = self.live.entry(span.flow).or_insert(begun);
        flow.next = flow.next.max(span.last.next());
        flow.last = Some(Position { segment, offset: span.last_at });
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether one of the state file's two copies was damaged when it was read.
    pub fn was_damaged(&self) -> bool {
        self.was_damaged
    }

    /// Whether the state file is behind.
    pub fn lags(&self) -> bool {
        self.lags
    }

    pub fn open(&mut self) -> Option<FlowId> {
        let flow = FlowId(self.next_flow);
        if flow >= FLOW_END {
            return None;
        }
        self.next_flow += 1;
        let fresh = Flow { next: Seq::FIRST, custody: Seq::FIRST, last: None, end: End::Open };
        self.live.insert(flow, fresh);
        self.lags = true;
        Some(flow)
    }

    /// The flow that `open` will give.
    pub fn coming(&self) -> FlowId {
        FlowId(self.next_flow)
    }

    /// Undoes `open`; the number stays used.
    pub fn take_back(&mut self, flow: FlowId) {
        self.live.remove(&flow);
    }

    /// The next place of a flow that takes records.
    pub fn next(&self, flow: FlowId) -> Option<Seq> {
        self.live.get(&flow).filter(|flow| flow.end == End::Open).map(|flow| flow.next)
    }

    pub fn appended(&mut self, flow: FlowId, at: Position) {
        if let Some(flow) = self.live.get_mut(&flow) {
            flow.next = flow.next.next();
            flow.last = Some(at);
        }
    }

    pub fn close(&mut self, flow: FlowId) {
        if let Some(flow) = self.live.get_mut(&flow).filter(|flow| flow.end == End::Open) {
            flow.end = End::Closing;
            self.lags = true;
        }
    }

    pub fn custody(&mut self, flow: FlowId, next: Seq) -> Taken {
        let Some(state) = self.live.get_mut(&flow) else {
            return Taken::default();
        };
        let finished = next == Seq::FINISHED;
        let next = if finished { state.next } else { next };
        let ahead = next.count_from(state.next);
        let blocks = next.min(state.next).count_from(state.custody);
        // A place that the centre has must not be given to another record.
        state.next = state.next.max(next);
        state.custody = state.custody.max(next);
        self.lags |= blocks + ahead > 0;
        if finished {
            // What is appended to a flow that the centre has processed would be taken for a
            // repetition.
            self.close(flow);
        }
        self.forget_done();
        Taken { blocks, ahead }
    }

    /// The centre has no more of a live flow than what is below `next`.
    pub fn go_back(&mut self, flow: FlowId, next: Seq) {
        if let Some(flow) = self.live.get_mut(&flow).filter(|flow| next < flow.custody) {
            flow.custody = next;
            self.lags = true;
        }
    }

    /// What of a live flow is not in custody.
    pub fn extent(&self, flow: FlowId) -> Option<FlowExtent> {
        self.live.get(&flow).map(|flow| FlowExtent { custody: flow.custody, next: flow.next })
    }

    /// Whether the segment holds something that is not in custody.
    pub fn waits(&self, summary: &SegmentSummary) -> bool {
        let waits = |span: &FlowSpan| {
            self.live.get(&span.flow).is_some_and(|flow| span.last >= flow.custody)
        };
        summary.flows.iter().any(waits)
    }

    /// Whether the segment may be removed: all is in custody, and no open flow has its newest
    /// record there.
    pub fn release(&self, segment: SegmentNo, summary: &SegmentSummary) -> bool {
        let held = |span: &FlowSpan| {
            self.live.get(&span.flow).is_some_and(|flow| {
                let newest = flow.last.is_some_and(|last| last.segment == segment);
                span.last >= flow.custody || (newest && flow.end != End::Closed)
            })
        };
        !summary.flows.iter().any(held)
    }

    pub fn live(&self) -> impl Iterator<Item = FlowId> {
        self.live.keys().copied()
    }

    pub fn open_flows(&self) -> impl Iterator<Item = OpenFlow> {
        let open = self.live.iter().filter(|(_, flow)| flow.end == End::Open);
        open.map(|(id, flow)| OpenFlow { flow: *id, next: flow.next, custody: flow.custody })
    }

    pub fn last_at(&self, flow: FlowId) -> Option<Position> {
        self.live.get(&flow).filter(|flow| flow.end == End::Open)?.last
    }

    /// Records that are not in custody.
    pub fn waiting(&self) -> u64 {
        self.live.values().map(|flow| flow.next.count_from(flow.custody)).sum()
    }

    /// Writes the state file. Afterwards closed flows are closed for good.
    pub fn save(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.lags = true;
        save_state(disk, LOG_DIR, STATE_NAME, &self.encode())?;
        self.lags = false;
        for flow in self.live.values_mut().filter(|flow| flow.end == End::Closing) {
            flow.end = End::Closed;
        }
        self.forget_done();
        Ok(())
    }

    fn forget_done(&mut self) {
        let before = self.live.len();
        self.live.retain(|_, flow| flow.end != End::Closed || flow.custody < flow.next);
        self.lags |= self.live.len() < before;
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.next_flow.to_be_bytes().to_vec();
        for (id, flow) in &self.live {
            let closed = flow.end != End::Open;
            // Records of an open flow may not be durable yet: the log tells what comes next.
            let next = if closed { flow.next } else { flow.custody };
            body.extend_from_slice(&id.0.to_be_bytes());
            body.extend_from_slice(&next.0.to_be_bytes());
            body.extend_from_slice(&flow.custody.0.to_be_bytes());
            body.push(u8::from(closed));
        }
        body
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut body = ByteReader::new(body);
        let next_flow = body.u32()?;
        let mut live = BTreeMap::new();
        while !body.is_empty() {
            let (id, next, custody) = (FlowId(body.u32()?), Seq(body.u64()?), Seq(body.u64()?));
            let end = match body.u8()? {
                0 => End::Open,
                1 => End::Closed,
                _ => return None,
            };
            live.insert(id, Flow { next, custody, last: None, end });
        }
        (live.len() <= MAX_LIVE_FLOWS).then_some(Self {
            live,
            next_flow,
            lags: false,
            was_damaged: false,
        })
    }
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
