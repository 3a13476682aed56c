//! What one end has received, and what the other has given up.

use super::{Reader, WireError, put_varint};
use crate::repair::Sid;
use skyhaul_units::FlowId;

/// What one end has received, and how much more it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts up; a report older than the newest seen is ignored.
    pub number: u32,
    /// Total cost of blocks (see [`crate::cost`]) that the far end may have begun in this session.
    pub limit: u64,
    /// Flows with news.
    pub flows: Vec<FlowReport>,
    /// Protected datagrams that repair stood for, so that they need not be sent again.
    pub recovered: Vec<Recovered>,
}

/// A flow's state at the receiving end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Every block below this place is whole, or known to be given up.
    pub next: u64,
    /// Places above `next` of which the same is true, not always all of them: ascending, disjoint,
    /// half-open, at most
    /// [`DONE_MAX`].
    pub done: Vec<(u64, u64)>,
    /// What lacks in block `next`, from the start, at most [`MISSING_MAX`]; the last may be
    /// open-ended (`None`).
    pub missing: Vec<(u32, Option<u32>)>,
}

/// Protected datagrams that repair stood for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// The path on which they had been sent.
    pub path: u8,
    /// The first one's number.
    pub first: Sid,
    /// How many in a row.
    pub count: u8,
}

/// What the sender of this notice no longer sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbandonedNotice {
    /// Flow, place, and the cost that the block had been counted with against the limit (0: it was
    /// not begun).
    pub given_up: Vec<(FlowId, u64, u64)>,
}

/// Missing ranges that a report lists for one block: enough to restart it, and a report stays
/// small.
pub const MISSING_MAX: usize = 8;
/// Ranges of whole blocks beyond the first gap that a report lists for one flow: those that are
/// new, in a flow of which much expires; at two bytes each a quarter of a datagram.
pub const DONE_MAX: usize = 128;
/// Runs of recovered datagrams in one report.
pub const RECOVERED_MAX: usize = 48;
/// Blocks in one notice.
pub const NOTICE_MAX: usize = 64;
/// Flows in one report: what fits into one datagram of 1,400 bytes at the widest encoding.
const REPORT_FLOWS_MAX: u64 = 256;

impl FlowReport {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        let mut out = Vec::new();
        self.put(&mut out);
        out.len()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.flow.0));
        put_varint(out, self.next);
        put_varint(out, self.done.len() as u64);
        let mut below = self.next;
        for (start, end) in &self.done {
            put_varint(out, start.saturating_sub(below));
            put_varint(out, end.saturating_sub(*start));
            below = *end;
        }
        put_varint(out, self.missing.len() as u64);
        for (start, end) in &self.missing {
            put_varint(out, u64::from(*start));
            put_varint(out, end.map_or(0, |end| u64::from(end.saturating_sub(*start))));
        }
    }
}

impl Report {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes());
        put_varint(out, self.limit);
        put_varint(out, self.flows.len() as u64);
        for flow in &self.flows {
            flow.put(out);
        }
        out.push(self.recovered.len() as u8);
        for run in &self.recovered {
            out.push(run.path);
            out.extend_from_slice(&run.first.to_wire().to_be_bytes()[1..]);
            out.push(run.count);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let number = reader.uint(4, "report number")? as u32;
        let limit = reader.varint("limit")?;
        let count = reader.varint("flow count")?;
        if count > REPORT_FLOWS_MAX {
            return Err(WireError::Invalid("flow count"));
        }
        let flows = (0..count).map(|_| flow_report(reader)).collect::<Result<_, _>>()?;
        let runs = reader.uint(1, "recovered count")? as usize;
        if runs > RECOVERED_MAX {
            return Err(WireError::Invalid("recovered count"));
        }
        let recovered = (0..runs).map(|_| recovered(reader)).collect::<Result<_, _>>()?;
        if !reader.0.is_empty() {
            return Err(WireError::Invalid("report length"));
        }
        Ok(Self { number, limit, flows, recovered })
    }
}

impl AbandonedNotice {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.given_up.len() as u8);
        for (flow, seq, cost) in &self.given_up {
            put_varint(out, u64::from(flow.0));
            put_varint(out, *seq);
            put_varint(out, *cost);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let count = reader.uint(1, "notice count")? as usize;
        if count > NOTICE_MAX {
            return Err(WireError::Invalid("notice count"));
        }
        let mut given_up = Vec::with_capacity(count);
        for _ in 0..count {
            let flow = FlowId(reader.varint32("flow")?);
            let seq = reader.varint("place")?;
            given_up.push((flow, seq, reader.varint("cost")?));
        }
        if !reader.0.is_empty() {
            return Err(WireError::Invalid("notice length"));
        }
        Ok(Self { given_up })
    }
}

fn flow_report(reader: &mut Reader<'_>) -> Result<FlowReport, WireError> {
    let flow = FlowId(reader.varint32("flow")?);
    let next = reader.varint("next")?;
    let runs = reader.varint("done count")?;
    if runs > DONE_MAX as u64 {
        return Err(WireError::Invalid("done count"));
    }
    let mut done = Vec::with_capacity(runs as usize);
    let mut below = next;
    for _ in 0..runs {
        let start =
            below.checked_add(reader.varint("done gap")?).ok_or(WireError::Invalid("done gap"))?;
        let end =
            start.checked_add(reader.varint("done run")?).ok_or(WireError::Invalid("done run"))?;
        done.push((start, end));
        below = end;
    }
    let count = reader.varint("missing count")?;
    if count > MISSING_MAX as u64 {
        return Err(WireError::Invalid("missing count"));
    }
    let mut missing = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let start = reader.varint32("missing start")?;
        let len = reader.varint32("missing length")?;
        let end = start.checked_add(len).ok_or(WireError::Invalid("missing length"))?;
        missing.push((start, (len > 0).then_some(end)));
    }
    Ok(FlowReport { flow, next, done, missing })
}

fn recovered(reader: &mut Reader<'_>) -> Result<Recovered, WireError> {
    let path = reader.uint(1, "path")? as u8;
    let first = Sid::from_wire(reader.uint(3, "first recovered")? as u32);
    Ok(Recovered { path, first, count: reader.uint(1, "recovered run")? as u8 })
}
