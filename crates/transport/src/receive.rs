//! Blocks on their way in: symbols put together, blocks given out in the order of their flow.

use crate::block::{Block, BlockTiming, MAX_BLOCK, Received, cost};
use crate::ranges::RangeSet;
use crate::stats::Stats;
use crate::wire::{FlowReport, Report, Resume, Symbol};
use bytes::Bytes;
use skyhaul_units::{FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Blocks begun and not yet given out, in memory of at most `window` (counted by [`cost`]).
#[derive(Debug)]
pub struct Inbox {
    flows: BTreeMap<FlowId, Flow>,
    resume: Resume,
    window: u64,
    /// Cost of the blocks begun and not given back by the application.
    held: u64,
    /// Cost of the blocks that the application has given back.
    released: u64,
    /// Flows whose state is news to the far end.
    news: BTreeSet<FlowId>,
    ready: VecDeque<Received>,
}

#[derive(Debug)]
struct Flow {
    /// The first place not yet whole.
    next: u64,
    blocks: BTreeMap<u64, Partial>,
}

#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    got: RangeSet,
    len: Option<u32>,
    sent: Utc,
    last_original: Instant,
    repaired: bool,
    complete: Option<Instant>,
}

/// Flows with a state at one time: a session carries one per contact, file or stream.
const FLOWS_MAX: usize = 1 << 16;
/// How far ahead of the first open block of a flow a symbol may be.
const AHEAD_MAX: u64 = 1 << 22;
/// What one symbol's block may grow by beyond the window, so that an honest sender is never refused over a rounding.
const SLACK: u64 = 1 << 16;

impl Inbox {
    pub fn new(window: u64, resume: Resume) -> Self {
        let (flows, news, ready) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        Self { flows, resume, window, held: 0, released: 0, news, ready }
    }

    /// The next block in order.
    pub fn pop(&mut self) -> Option<Received> {
        self.ready.pop_front()
    }

    /// The application is done with a block of this length.
    pub fn release(&mut self, len: usize) {
        self.held = self.held.saturating_sub(cost(len));
        self.released += cost(len);
    }

    /// The total cost that the far end may begin.
    pub const fn limit(&self) -> u64 {
        self.released + self.window
    }

    /// Whether blocks are begun and not whole.
    pub fn is_waiting(&self) -> bool {
        self.flows.values().any(|flow| !flow.blocks.is_empty())
    }

    pub fn symbol(&mut self, now: Instant, symbol: Symbol, stats: &mut Stats) {
        stats.symbols_received += 1;
        let id = symbol.header.flow;
        let Some(flow) = self.flow(id) else {
            // A flow wholly in custody: the far end missed our saying so.
            stats.symbols_duplicate += 1;
            self.news.insert(id);
            return;
        };
        let seq = expand(symbol.header.seq_low, flow.next);
        if seq < flow.next {
            stats.symbols_duplicate += 1;
            self.news.insert(id);
            return;
        }
        if seq - flow.next > AHEAD_MAX {
            stats.over_limit += 1;
            return;
        }
        self.place(now, (id, seq), symbol, stats);
        self.advance(now, id, stats);
    }

    /// The report, with as many flows as `budget` bytes hold; their news is then told.
    pub fn report(&mut self, number: u32, budget: usize) -> (Report, Vec<FlowId>) {
        let mut report = Report { number, limit: self.limit(), flows: Vec::new() };
        let mut room = budget.saturating_sub(24);
        let mut told = Vec::new();
        let waiting = self.flows.iter().filter(|(_, flow)| !flow.blocks.is_empty()).map(|(id, _)| *id);
        let candidates: BTreeSet<FlowId> = self.news.iter().copied().chain(waiting).collect();
        for id in candidates {
            let entry = self.flow_report(id);
            let size = 17 + 8 * entry.missing.len();
            if size > room || told.len() == 256 {
                break;
            }
            room -= size;
            self.news.remove(&id);
            told.push(id);
            report.flows.push(entry);
        }
        (report, told)
    }

    /// A report was lost: its flows are news again.
    pub fn tell_again(&mut self, flows: &[FlowId]) {
        self.news.extend(flows);
    }

    fn flow_report(&self, id: FlowId) -> FlowReport {
        let Some(flow) = self.flows.get(&id) else {
            let next = self.resume.next(id).unwrap_or(Seq::FINISHED).0;
            return FlowReport { flow: id, next, missing: Vec::new() };
        };
        let missing = flow.blocks.get(&flow.next).map_or_else(|| vec![(0, None)], Partial::missing);
        FlowReport { flow: id, next: flow.next, missing }
    }

    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        if !self.flows.contains_key(&id) {
            let next = self.resume.next(id)?.0;
            if self.flows.len() >= FLOWS_MAX {
                let idle = self
                    .flows
                    .iter()
                    .find(|(_, flow)| flow.blocks.is_empty())
                    .map(|(id, flow)| (*id, flow.next));
                let (old, next) = idle?;
                self.flows.remove(&old);
                self.remember(old, Seq(next));
            }
            self.flows.insert(id, Flow { next, blocks: BTreeMap::new() });
        }
        self.flows.get_mut(&id)
    }

    fn remember(&mut self, id: FlowId, next: Seq) {
        match self.resume.open.binary_search_by_key(&id, |(flow, _)| *flow) {
            Ok(at) => self.resume.open[at].1 = next,
            Err(at) => self.resume.open.insert(at, (id, next)),
        }
    }

    fn place(&mut self, now: Instant, (id, seq): (FlowId, u64), symbol: Symbol, stats: &mut Stats) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let header = symbol.header;
        let end = header.offset + symbol.bytes.len() as u32;
        let known = flow.blocks.get(&seq);
        let grown =
            known.map_or_else(|| cost(end as usize), |block| u64::from(end.saturating_sub(block.end())));
        if self.held + grown > self.window + SLACK {
            stats.over_limit += 1;
            return;
        }
        if known.is_some_and(|block| block.contradicts(end, header.fin)) {
            stats.malformed += 1;
            return;
        }
        if known.is_none() {
            stats.blocks_seen += 1;
        }
        let block = flow.blocks.entry(seq).or_insert_with(|| Partial::new(now));
        self.held += grown;
        if block.got.insert(header.offset, end) == 0 {
            stats.symbols_duplicate += 1;
            return;
        }
        block.put(header.offset as usize, &symbol.bytes);
        block.sent = header.sent.unwrap_or(block.sent);
        if header.fin {
            block.len = Some(end);
        }
        if header.repeated {
            block.repaired = true;
        } else {
            block.last_original = now;
        }
        if block.len.is_some_and(|len| block.got.contains(0, len)) {
            block.complete = Some(now);
        }
    }

    fn advance(&mut self, now: Instant, id: FlowId, stats: &mut Stats) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        while let Some(entry) = flow.blocks.first_entry()
            && *entry.key() == flow.next
            && let Some(complete) = entry.get().complete
        {
            let block = entry.remove();
            let timing = BlockTiming {
                sent: block.sent,
                last_original: block.last_original,
                complete,
                delivered: now,
                repaired: block.repaired,
            };
            stats.bytes_delivered += block.bytes.len() as u64;
            *(if block.repaired { &mut stats.blocks_repaired } else { &mut stats.blocks_delivered }) += 1;
            let block = Block { flow: id, seq: Seq(flow.next), bytes: Bytes::from(block.bytes) };
            self.ready.push_back(Received { block, timing });
            flow.next += 1;
            self.news.insert(id);
        }
    }

    /// Blocks begun and not given out.
    pub fn in_flight(&self) -> u64 {
        self.flows.values().map(|flow| flow.blocks.len() as u64).sum()
    }

    /// Whether there is something the far end does not know.
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

impl Partial {
    fn new(now: Instant) -> Self {
        Self {
            bytes: Vec::new(),
            got: RangeSet::default(),
            len: None,
            sent: Utc::default(),
            last_original: now,
            repaired: false,
            complete: None,
        }
    }

    fn end(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Whether a symbol that ends at `end` cannot be of the same block as what is here.
    fn contradicts(&self, end: u32, fin: bool) -> bool {
        match self.len {
            Some(len) => end > len || (fin && end != len),
            None => fin && end < self.got.end(),
        }
    }

    fn put(&mut self, offset: usize, slice: &[u8]) {
        let end = offset + slice.len();
        debug_assert!(end <= MAX_BLOCK, "the parser bounds a slice's end");
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(slice);
    }

    fn missing(&self) -> Vec<(u32, Option<u32>)> {
        let known = self.len.unwrap_or_else(|| self.got.end());
        let inner = self.got.missing(known).map(|(start, end)| (start, Some(end)));
        let tail = self.len.is_none().then(|| (self.got.end(), None));
        inner.take(crate::wire::MISSING_MAX - 1).chain(tail).collect()
    }
}

/// The place with these low 24 bits that is nearest to `next`.
fn expand(low: u32, next: u64) -> u64 {
    const SPAN: u64 = 1 << 24;
    let base = next & !(SPAN - 1) | u64::from(low);
    if base + SPAN / 2 < next {
        base + SPAN
    } else if base >= next + SPAN / 2 && base >= SPAN {
        base - SPAN
    } else {
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_expand_to_the_nearest(next in 0u64..1 << 40, ahead in -(1i64 << 20)..1 << 22) {
            let seq = next.saturating_add_signed(ahead);
            prop_assert_eq!(expand((seq & 0xff_ffff) as u32, next), seq);
        }
    }
}
