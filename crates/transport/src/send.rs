//! Blocks on their way out: what is still to be sent, what must be sent again, what the far end has.

use crate::block::{Block, cost};
use crate::inflight::Slice;
use crate::ranges::RangeSet;
use crate::stats::Stats;
use crate::wire::{FlowReport, SymbolHeader};
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, VecDeque};

/// Blocks taken from the application and not yet reported whole.
#[derive(Debug, Default)]
pub struct Outbox {
    flows: BTreeMap<FlowId, Flow>,
    /// Blocks of which something was never sent, in the order taken.
    fresh: VecDeque<(FlowId, Seq)>,
    /// Slices to send again, oldest loss first.
    repeats: VecDeque<Slice>,
    /// Slices to send only to be answered with a report, at most one a flow.
    probes: VecDeque<Slice>,
    /// Cost of the blocks begun in this session.
    begun: u64,
    /// What `begun` may become.
    limit: u64,
    /// Cost of all blocks held.
    pub held: u64,
}

#[derive(Debug, Default)]
struct Flow {
    /// The place of the first block held.
    first: u64,
    blocks: VecDeque<Outgoing>,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Bytes,
    /// Bytes sent at least once, from the start.
    sent: u32,
    first_sent: Option<Utc>,
    /// What the path said has arrived.
    arrived: RangeSet,
    /// When the path last claimed something new.
    last_arrival: Instant,
    probed: Instant,
}

/// Bytes of a block that a probe carries: any symbol does.
const PROBE: u32 = 64;

/// A symbol to send.
#[derive(Debug)]
pub struct Outsymbol {
    pub header: SymbolHeader,
    pub bytes: Bytes,
    pub slice: Slice,
}

impl Outbox {
    /// The place that the next block of `flow` must have, where the flow is known.
    pub fn expected(&self, flow: FlowId) -> Option<Seq> {
        self.flows.get(&flow).map(|flow| Seq(flow.first + flow.blocks.len() as u64))
    }

    pub fn push(&mut self, block: Block) {
        let flow =
            self.flows.entry(block.flow).or_insert_with(|| Flow { first: block.seq.0, ..Flow::default() });
        self.held += cost(block.bytes.len());
        self.fresh.push_back((block.flow, block.seq));
        flow.blocks.push_back(Outgoing {
            bytes: block.bytes,
            sent: 0,
            first_sent: None,
            arrived: RangeSet::default(),
            last_arrival: Instant::ZERO,
            probed: Instant::ZERO,
        });
    }

    /// The far end takes blocks up to this total cost. It never takes back what it gave.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// The next symbol of at most `payload` bytes, header included: repetitions first.
    pub fn next_symbol(&mut self, payload: usize, utc: Utc) -> Option<Outsymbol> {
        while let Some(slice) = self.repeats.pop_front() {
            let Some(block) = block_mut(&mut self.flows, slice.flow, slice.seq) else { continue };
            if block.arrived.contains(slice.start, slice.end) {
                continue;
            }
            let symbol = block.cut(slice, payload, true, utc);
            if symbol.slice.end < slice.end {
                self.repeats.push_front(Slice { start: symbol.slice.end, ..slice });
            }
            return Some(symbol);
        }
        while let Some(slice) = self.probes.pop_front() {
            if let Some(block) = block_mut(&mut self.flows, slice.flow, slice.seq) {
                return Some(block.cut(slice, payload, slice.start < block.sent, utc));
            }
        }
        self.next_fresh(payload, utc)
    }

    /// Whether [`Self::next_symbol`] would give one.
    pub fn has_symbol(&self) -> bool {
        !self.repeats.is_empty() || !self.probes.is_empty() || self.fresh_fits().is_some()
    }

    /// Whether blocks wait only because the far end takes no more now.
    pub fn is_held_back(&self) -> bool {
        !self.fresh.is_empty() && self.fresh_fits().is_none()
    }

    pub fn arrived(&mut self, now: Instant, slice: Slice) {
        if let Some(block) = block_mut(&mut self.flows, slice.flow, slice.seq)
            && block.arrived.insert(slice.start, slice.end) > 0
        {
            block.last_arrival = now;
        }
    }

    /// Whether the slice has to be sent again.
    pub fn repeat(&mut self, slice: Slice) -> bool {
        let open = block_mut(&mut self.flows, slice.flow, slice.seq)
            .is_some_and(|block| !block.arrived.contains(slice.start, slice.end));
        if open {
            self.repeats.push_back(slice);
        }
        open
    }

    /// Takes a flow's report: frees what is whole; sends again what the path claimed but the far end denies.
    /// A denial counts only `settle` after the last claim, since the two cross on the way.
    pub fn report(&mut self, now: Instant, report: &FlowReport, settle: Duration, stats: &mut Stats) {
        let Some(flow) = self.flows.get_mut(&report.flow) else { return };
        // The far end had the flow before this session, and counts nothing of it against the limit.
        let finished = report.next == Seq::FINISHED.0;
        while flow.first < report.next
            && let Some(done) = flow.blocks.front()
            && done.sent as usize == done.bytes.len()
        {
            self.held -= cost(done.bytes.len());
            if finished {
                self.begun -= cost(done.bytes.len());
            }
            stats.blocks_reported += 1;
            stats.bytes_reported += done.bytes.len() as u64;
            flow.blocks.pop_front();
            flow.first += 1;
        }
        if flow.first != report.next {
            return;
        }
        let Some(block) = flow.blocks.front_mut() else { return };
        if now.since(block.last_arrival) < settle {
            return;
        }
        for &(start, end) in &report.missing {
            let (start, end) = (start.min(block.sent), end.unwrap_or(block.sent).min(block.sent));
            if start < end && block.arrived.contains(start, end) {
                block.arrived.remove(start, end);
                block.last_arrival = now;
                stats.symbols_denied += 1;
                self.repeats.push_back(Slice { flow: report.flow, seq: Seq(flow.first), start, end });
            }
        }
    }

    /// Asks for a report, where for `settle` none has said what must be known:
    ///
    /// - The path claims to have brought a block whole, and no report has confirmed it: its end is sent again.
    /// - Blocks are held back: the start of the first one is sent, because the report that gave more room may be lost
    ///   although the path claims that it arrived (compare the zero-window probes of RFC 9293 3.8.6.1).
    pub fn probe(&mut self, now: Instant, settle: Duration) {
        if !self.probes.is_empty() {
            return;
        }
        let is_held_back = self.is_held_back();
        for (id, flow) in &mut self.flows {
            let Some(block) = flow.blocks.front_mut() else { continue };
            let len = block.bytes.len() as u32;
            let claimed = block.sent == len && block.arrived.contains(0, len);
            if claimed && now.since(block.last_arrival.max(block.probed)) >= settle {
                block.probed = now;
                let start = len.saturating_sub(PROBE);
                self.probes.push_back(Slice { flow: *id, seq: Seq(flow.first), start, end: len });
            }
        }
        if let Some(&(flow, seq)) = self.fresh.front()
            && is_held_back
            && let Some(block) = block_mut(&mut self.flows, flow, seq)
            && now.since(block.probed) >= settle
        {
            block.probed = now;
            self.probes.push_back(Slice { flow, seq, start: 0, end: PROBE.min(block.bytes.len() as u32) });
        }
    }

    fn fresh_fits(&self) -> Option<(FlowId, Seq)> {
        let &(flow, seq) = self.fresh.front()?;
        let block = block(&self.flows, flow, seq)?;
        let fits = block.sent > 0 || self.begun + cost(block.bytes.len()) <= self.limit;
        fits.then_some((flow, seq))
    }

    fn next_fresh(&mut self, payload: usize, utc: Utc) -> Option<Outsymbol> {
        let (flow, seq) = self.fresh_fits()?;
        let block = block_mut(&mut self.flows, flow, seq)?;
        if block.sent == 0 {
            self.begun += cost(block.bytes.len());
        }
        let rest = Slice { flow, seq, start: block.sent, end: block.bytes.len() as u32 };
        let symbol = block.cut(rest, payload, false, utc);
        block.sent = symbol.slice.end;
        if symbol.header.fin {
            self.fresh.pop_front();
        }
        Some(symbol)
    }
}

impl Outgoing {
    /// As much of `slice`, from its start, as one datagram of `payload` bytes takes.
    fn cut(&mut self, slice: Slice, payload: usize, repeated: bool, utc: Utc) -> Outsymbol {
        let sent = (slice.start == 0).then(|| *self.first_sent.get_or_insert(utc));
        let mut header = SymbolHeader {
            flow: slice.flow,
            seq_low: (slice.seq.0 & 0xff_ffff) as u32,
            offset: slice.start,
            fin: false,
            repeated,
            sent,
        };
        let room = payload.saturating_sub(header.len()).max(1) as u32;
        let end = slice.end.min(slice.start.saturating_add(room));
        header.fin = end as usize == self.bytes.len();
        let bytes = self.bytes.slice(slice.start as usize..end as usize);
        Outsymbol { header, bytes, slice: Slice { end, ..slice } }
    }
}

fn block(flows: &BTreeMap<FlowId, Flow>, flow: FlowId, seq: Seq) -> Option<&Outgoing> {
    let flow = flows.get(&flow)?;
    flow.blocks.get(usize::try_from(seq.0.checked_sub(flow.first)?).ok()?)
}

fn block_mut(flows: &mut BTreeMap<FlowId, Flow>, flow: FlowId, seq: Seq) -> Option<&mut Outgoing> {
    let flow = flows.get_mut(&flow)?;
    flow.blocks.get_mut(usize::try_from(seq.0.checked_sub(flow.first)?).ok()?)
}
