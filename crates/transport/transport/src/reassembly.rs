//! Reassembly: puts symbols together to blocks, delivers them in their flows' order, and drops
//! those that the far end gave up.

mod runs;

use crate::block::{BlockId, BlockTiming, MAX_BLOCK, Received, cost};
use crate::ranges::RangeSet;
use crate::stats::ReceivedStats;
use crate::wire::{AbandonedNotice, DONE_MAX, FlowReport, Report, Resume, Symbol};
use bytes::Bytes;
use runs::Runs;
use skyhaul_units::{FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Blocks begun and not yet delivered, in memory of at most `window` (counted by [`cost`]).
#[derive(Debug)]
pub struct Inbox {
    flows: BTreeMap<FlowId, Flow>,
    /// Flows with blocks that are begun: few among possibly thousands.
    begun: BTreeSet<FlowId>,
    resume: Resume,
    window: u64,
    /// Cost of the blocks begun and not released by the application.
    held: u64,
    /// Cost of the blocks that the application has released, or the far end has given up.
    released: u64,
    /// Flows whose state the far end does not know, and how many more reports will carry it.
    news: BTreeMap<FlowId, u8>,
    /// Expendable blocks begun, by the time when they expire.
    deadlines: BTreeSet<(Instant, BlockId)>,
    ready: VecDeque<Received>,
    /// Runs of blocks done beyond the first open one, over all flows.
    runs: usize,
    /// The flow with which the next report begins: flows take turns.
    turn: FlowId,
}

#[derive(Debug)]
struct Flow {
    /// The first block that is neither whole nor given up.
    next: u64,
    blocks: BTreeMap<u64, Partial>,
    /// Blocks beyond `next` that are whole or given up.
    done: Runs,
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
    expires: Option<Instant>,
    /// It expired here: its symbols are dropped until the far end reports that it gave it up.
    dead: bool,
}

/// How a symbol arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// As it was sent.
    Sent,
    /// Recovered by FEC repair.
    Recovered,
}

/// When and how a symbol arrived.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    now: Instant,
    came: Came,
}

/// Flows with a state at one time: a session carries one per contact, file or stream.
pub const FLOWS_MAX: usize = 1 << 16;
/// How far ahead of the first open block of a flow a symbol may be.
const AHEAD_MAX: u64 = 1 << 22;
/// Bytes beyond the window that are accepted, so that no honest sender is refused over a rounding.
pub const SLACK: u64 = 1 << 16;
/// Runs of blocks done beyond the first open one, over all flows: as many as empty blocks fit into
/// a window of 64 MiB. An honest far end stays below, since each run ends at a block that it holds.
pub const RUNS_MAX: usize = 1 << 18;
/// Flows in one report: the parser's bound.
const FLOWS_TOLD: usize = 256;
/// Reports that carry each change, so that the loss of one costs nothing.
const TELL: u8 = 2;

impl Inbox {
    pub fn new(window: u64, resume: Resume) -> Self {
        Self {
            flows: BTreeMap::new(),
            begun: BTreeSet::new(),
            resume,
            window,
            held: 0,
            released: 0,
            news: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            runs: 0,
            turn: FlowId(0),
        }
    }

    /// Where the far end's flows resume. Called before the first symbol.
    pub fn resume_at(&mut self, resume: Resume) {
        self.resume = resume;
    }

    /// The next delivered block.
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
        !self.begun.is_empty()
    }

    /// A symbol arrived.
    pub fn symbol(&mut self, now: Instant, symbol: Symbol, came: Came, stats: &mut ReceivedStats) {
        stats.symbols_received += u64::from(came == Came::Sent);
        let id = symbol.header.flow;
        let crowded = self.runs >= RUNS_MAX;
        let Some(flow) = self.flow(id) else {
            self.tell_finished(id, stats);
            return;
        };
        let seq = expand(symbol.header.seq_low, flow.next);
        if seq < flow.next || flow.done.contains(seq) {
            stats.symbols_duplicate += 1;
            self.news.entry(id).or_insert(1);
            return;
        }
        if seq - flow.next > AHEAD_MAX || (seq > flow.next && crowded) {
            stats.over_limit += 1;
            return;
        }
        self.put(Arrival { now, came }, BlockId { flow: id, seq: Seq(seq) }, &symbol, stats);
        self.advance(now, id, stats);
    }

    /// The far end has given up blocks.
    pub fn notice(&mut self, now: Instant, notice: &AbandonedNotice, stats: &mut ReceivedStats) {
        for &(id, seq, cost) in &notice.given_up {
            let crowded = self.runs >= RUNS_MAX;
            let Some(flow) = self.flow(id) else {
                self.tell_finished(id, stats);
                continue;
            };
            if seq < flow.next || (flow.done.contains(seq) && !flow.blocks.contains_key(&seq)) {
                self.news.insert(id, TELL);
                continue;
            }
            if seq - flow.next > AHEAD_MAX || (seq > flow.next && crowded) {
                stats.over_limit += 1;
                continue;
            }
            let block = flow.blocks.remove(&seq);
            if flow.blocks.is_empty() {
                self.begun.remove(&id);
            }
            self.mark_done(id, seq);
            if let Some(block) = block {
                stats.blocks_expired += u64::from(!block.dead);
                self.held = self.held.saturating_sub(block.held());
                if let Some(at) = block.expires {
                    self.deadlines.remove(&(at, BlockId { flow: id, seq: Seq(seq) }));
                }
            }
            self.released += cost.min(self.window);
            self.news.insert(id, TELL);
            self.advance(now, id, stats);
        }
    }

    /// Drops blocks whose deadline has passed.
    pub fn expire(&mut self, now: Instant, stats: &mut ReceivedStats) {
        while let Some((at, name)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.pop_first();
            let block =
                self.flows.get_mut(&name.flow).and_then(|flow| flow.blocks.get_mut(&name.seq.0));
            let Some(block) = block.filter(|block| !block.dead && block.expires == Some(at)) else {
                continue;
            };
            let held = block.held();
            block.die();
            self.held = self.held.saturating_sub(held - block.held());
            stats.blocks_expired += 1;
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn expiry_due(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next report, with as many flows as `budget` bytes hold.
    pub fn report(&mut self, number: u32, budget: usize) -> (Report, Vec<FlowId>) {
        let mut report = Report { number, limit: self.limit(), ..Report::default() };
        let mut room = budget.saturating_sub(24);
        let mut told = Vec::new();
        let candidates: BTreeSet<FlowId> = self.news.keys().chain(&self.begun).copied().collect();
        let turn = core::mem::take(&mut self.turn);
        for id in candidates.range(turn..).chain(candidates.range(..turn)).copied() {
            let mut entry = self.flow_report(id);
            while told.is_empty() && entry.size() > room && entry.done.pop().is_some() {}
            let size = entry.size();
            if size > room || told.len() == FLOWS_TOLD {
                self.turn = id;
                break;
            }
            room -= size;
            let more = self.flows.get_mut(&id).is_some_and(|flow| {
                flow.done.told(&entry.done);
                flow.done.has_news()
            });
            match self.news.get_mut(&id) {
                Some(left) if more => *left = (*left).max(1),
                Some(left) if *left > 1 => *left -= 1,
                _ => drop(self.news.remove(&id)),
            }
            told.push(id);
            report.flows.push(entry);
        }
        (report, told)
    }

    /// A report was lost: its flows are reported again.
    pub fn tell_again(&mut self, flows: &[FlowId]) {
        for flow in flows {
            if self.news.len() < FLOWS_MAX {
                // Which runs it listed is not known: enough reports for all of them.
                let reports = self.flows.get(flow).map_or(1, |flow| flow.done.rounds());
                let left = self.news.entry(*flow).or_insert(1);
                *left = (*left).max(reports);
            }
        }
    }

    fn flow_report(&self, id: FlowId) -> FlowReport {
        let Some(flow) = self.flows.get(&id) else {
            let next = self.resume.next(id).unwrap_or(Seq::FINISHED).0;
            return FlowReport { flow: id, next, ..FlowReport::default() };
        };
        let missing = flow.blocks.get(&flow.next).map_or_else(|| vec![(0, None)], Partial::missing);
        FlowReport { flow: id, next: flow.next, done: flow.done.list(DONE_MAX), missing }
    }

    /// A flow's state; `None` where it is wholly in custody, or beyond [`FLOWS_MAX`].
    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        if !self.flows.contains_key(&id) {
            let next = self.resume.next(id).filter(|_| self.flows.len() < FLOWS_MAX)?.0;
            self.flows.insert(id, Flow { next, blocks: BTreeMap::new(), done: Runs::default() });
        }
        self.flows.get_mut(&id)
    }

    /// Something arrived for a flow without a state.
    fn tell_finished(&mut self, id: FlowId, stats: &mut ReceivedStats) {
        if self.resume.next(id).is_some() || self.news.len() >= FLOWS_MAX {
            stats.over_limit += 1;
            return;
        }
        // Wholly in custody: the report that said so was lost.
        stats.symbols_duplicate += 1;
        self.news.insert(id, TELL);
    }

    fn mark_done(&mut self, id: FlowId, seq: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let before = flow.done.len();
        flow.done.insert(seq, TELL);
        self.runs = self.runs + flow.done.len() - before;
    }

    /// Takes a symbol into its block.
    fn put(&mut self, arrival: Arrival, id: BlockId, symbol: &Symbol, stats: &mut ReceivedStats) {
        let Some(flow) = self.flows.get_mut(&id.flow) else { return };
        let (now, seq, header) = (arrival.now, id.seq.0, symbol.header);
        let end = header.offset + symbol.bytes.len() as u32;
        let known = flow.blocks.get(&seq);
        if known.is_some_and(|block| block.dead) {
            stats.symbols_late += 1;
            return;
        }
        let grown = known
            .map_or_else(|| cost(end as usize), |block| u64::from(end.saturating_sub(block.end())));
        if self.held + grown > self.window + SLACK {
            stats.over_limit += 1;
            return;
        }
        if known.is_some_and(|block| block.contradicts(symbol)) {
            stats.malformed += 1;
            return;
        }
        if known.is_none() {
            stats.blocks_seen += 1;
        }
        let block = flow.blocks.entry(seq).or_insert_with(|| Partial::new(now));
        self.begun.insert(id.flow);
        self.held += grown;
        if block.got.insert(header.offset, end) == 0 {
            stats.symbols_duplicate += 1;
            return;
        }
        block.put(header.offset as usize, &symbol.bytes);
        if let Some(head) = header.head {
            block.sent = head.sent;
            if let Some(life) = head.life {
                let expires = now + life;
                if let Some(before) = block.expires.replace(expires) {
                    self.deadlines.remove(&(before, id));
                }
                self.deadlines.insert((expires, id));
            }
        }
        if header.fin {
            block.len = Some(end);
        }
        if header.repeated || arrival.came == Came::Recovered {
            block.repaired = true;
        } else {
            block.last_original = now;
        }
        if block.len.is_some_and(|len| block.got.contains(0, len)) {
            block.complete = Some(now);
            let gone = block.expires.is_some();
            // Whole blocks out of order are reported too: the far end frees them, and needs no
            // time-out for them.
            self.news.insert(id.flow, TELL);
            self.mark_done(id.flow, seq);
            if gone {
                self.give_out(now, id, stats);
            }
        }
    }

    /// Delivers a whole block to the application.
    fn give_out(&mut self, now: Instant, id: BlockId, stats: &mut ReceivedStats) {
        let Some(flow) = self.flows.get_mut(&id.flow) else { return };
        let Some(block) = flow.blocks.remove(&id.seq.0) else { return };
        if flow.blocks.is_empty() {
            self.begun.remove(&id.flow);
        }
        let timing = BlockTiming {
            sent: block.sent,
            last_original: block.last_original,
            complete: block.complete.unwrap_or(now),
            delivered: now,
            repaired: block.repaired,
        };
        stats.bytes_delivered += block.bytes.len() as u64;
        *(if block.repaired { &mut stats.blocks_repaired } else { &mut stats.blocks_delivered }) +=
            1;
        if let Some(at) = block.expires {
            self.deadlines.remove(&(at, id));
        }
        self.ready.push_back(Received { id, bytes: Bytes::from(block.bytes), timing });
        self.news.insert(id.flow, TELL);
    }

    /// Delivers the blocks that are in order now, and moves beyond those that are done.
    fn advance(&mut self, now: Instant, id: FlowId, stats: &mut ReceivedStats) {
        while let Some(flow) = self.flows.get_mut(&id) {
            let before = flow.done.len();
            flow.go_beyond_done();
            let (next, passed) = (flow.next, before - flow.done.len());
            let is_whole = flow.done.contains(next);
            self.runs -= passed;
            if !is_whole {
                return;
            }
            self.give_out(now, BlockId { flow: id, seq: Seq(next) }, stats);
        }
    }

    /// Blocks begun and not delivered, without those that expired here.
    pub fn in_flight(&self) -> u64 {
        let open = |flow: &Flow| flow.blocks.values().filter(|block| !block.dead).count() as u64;
        self.begun.iter().filter_map(|id| self.flows.get(id)).map(open).sum()
    }

    /// Bytes held against the window, flows, and runs of blocks done.
    pub fn counts(&self) -> (u64, usize, usize) {
        (self.held, self.flows.len() + self.news.len(), self.runs)
    }

    /// Whether there is a change to report.
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

impl Flow {
    /// Moves beyond the blocks that are done, up to a whole block that is to be delivered.
    fn go_beyond_done(&mut self) {
        let Some(end) = self.done.end_of(self.next) else { return };
        let held = self.blocks.range(self.next..).next().map_or(end, |(seq, _)| *seq);
        self.next = end.min(held);
        self.done.pass(self.next);
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
            expires: None,
            dead: false,
        }
    }

    fn end(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Its cost against the window.
    fn held(&self) -> u64 {
        cost(self.bytes.len())
    }

    /// It expired: only its entry is kept, and counted.
    fn die(&mut self) {
        self.dead = true;
        self.bytes = Vec::new();
        self.got = RangeSet::default();
    }

    /// Whether a symbol cannot be of the same block as what is here.
    fn contradicts(&self, symbol: &Symbol) -> bool {
        let (end, fin) = (symbol.header.offset + symbol.bytes.len() as u32, symbol.header.fin);
        match self.len {
            Some(len) => end > len || (fin && end != len),
            None => fin && end < self.got.end(),
        }
    }

    fn put(&mut self, offset: usize, slice: &[u8]) {
        let end = offset + slice.len();
        debug_assert!(end <= MAX_BLOCK, "the parser bounds a slice's end");
        // Nearly all symbols arrive in order: their bytes are then written once.
        if offset == self.bytes.len() {
            return self.bytes.extend_from_slice(slice);
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(slice);
    }

    fn missing(&self) -> Vec<(u32, Option<u32>)> {
        if self.dead {
            return Vec::new();
        }
        let known = self.len.unwrap_or_else(|| self.got.end());
        let inner = self.got.missing(known).map(|(start, end)| (start, Some(end)));
        let tail = self.len.is_none().then(|| (self.got.end(), None));
        inner.take(crate::wire::MISSING_MAX - 1).chain(tail).collect()
    }
}

/// The sequence number with these low 24 bits that is nearest to `next`.
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
    use skyhaul_units::Duration;

    proptest! {
        #[test]
        fn sequence_numbers_expand_to_the_nearest(
            next in 0u64..1 << 40,
            ahead in -(1i64 << 20)..1 << 22,
        ) {
            let seq = next.saturating_add_signed(ahead);
            prop_assert_eq!(expand((seq & 0xff_ffff) as u32, next), seq);
        }

        #[test]
        fn blocks_in_any_order_are_delivered_in_theirs_and_reported_meanwhile(
            order in Just((0u64..60).collect::<Vec<_>>()).prop_shuffle(),
                given_up in proptest::collection::btree_set(0u64..60, 0..20)
        ) {
            let mut inbox = Inbox::new(100_000, Resume::default());
            let mut stats = ReceivedStats::default();
            let (mut settled, mut out) = (BTreeSet::new(), Vec::new());
            for seq in order {
                if given_up.contains(&seq) {
                    notice(&mut inbox, 0, seq, 0, &mut stats);
                } else {
                    inbox.symbol(Instant::ZERO, symbol(0, seq, b"whole.", None), Came::Sent,
                        &mut stats);
                }
                settled.insert(seq);
                out.extend(core::iter::from_fn(|| inbox.pop()).map(|received| received.id.seq.0));
                let next = (0..).find(|seq| !settled.contains(seq)).unwrap();
                let (report, _) = inbox.report(1, 1_000);
                prop_assert_eq!(report.flows[0].next, next);
                let told: BTreeSet<u64> =
                    report.flows[0].done.iter().flat_map(|(start, end)| *start..*end).collect();
                prop_assert!(told.contains(&seq) || seq < next, "a change is reported at once");
                prop_assert!(told.iter().all(|seq| settled.contains(seq) && *seq >= next));
                prop_assert_eq!(&out, &(0..next).filter(|seq|
                    !given_up.contains(seq)).collect::<Vec<_>>());
            }
            prop_assert_eq!((inbox.counts().2, inbox.in_flight()), (0, 0));
        }
    }

    fn symbol(flow: u32, seq: u64, bytes: &'static [u8], life: Option<Duration>) -> Symbol {
        let head = Some(crate::wire::Head { sent: Utc::default(), life });
        let (offset, fin, repeated) = (0, bytes.ends_with(b"."), false);
        let header = crate::wire::SymbolHeader {
            flow: FlowId(flow),
            seq_low: seq as u32,
            offset,
            fin,
            repeated,
            head,
        };
        Symbol { header, bytes: Bytes::from_static(bytes) }
    }

    fn notice(inbox: &mut Inbox, flow: u32, seq: u64, cost: u64, stats: &mut ReceivedStats) {
        let notice = AbandonedNotice { given_up: vec![(FlowId(flow), seq, cost)] };
        inbox.notice(Instant::ZERO, &notice, stats);
    }

    #[test]
    fn a_block_given_up_frees_those_behind_it_and_returns_its_room_once() {
        let (mut inbox, mut stats) =
            (Inbox::new(10_000, Resume::default()), ReceivedStats::default());
        inbox.symbol(Instant::ZERO, symbol(0, 1, b"whole.", None), Came::Sent, &mut stats);
        assert_eq!(inbox.pop(), None, "it waits for the one before it");
        for _ in 0..2 {
            notice(&mut inbox, 0, 0, 400, &mut stats);
            assert_eq!(inbox.limit(), 10_400);
        }
        assert_eq!(inbox.pop().map(|received| received.id.seq), Some(Seq(1)));
        let (report, _) = inbox.report(1, 1_000);
        assert_eq!((report.flows[0].next, report.limit), (2, 10_400));
    }

    #[test]
    fn an_expired_block_keeps_its_entry_until_the_far_end_gives_it_up() {
        let (mut inbox, mut stats) =
            (Inbox::new(10_000, Resume::default()), ReceivedStats::default());
        let life = Some(Duration::from_millis(10));
        inbox.symbol(Instant::ZERO, symbol(0, 0, b"a part", life), Came::Sent, &mut stats);
        assert_eq!(inbox.counts().0, cost(6));
        let late = inbox.expiry_due().unwrap();
        inbox.expire(late, &mut stats);
        assert_eq!((inbox.counts().0, inbox.expiry_due()), (cost(0), None));
        inbox.symbol(late, symbol(0, 0, b"all of it.", life), Came::Sent, &mut stats);
        assert_eq!((inbox.pop(), stats.symbols_late, stats.blocks_expired), (None, 1, 1));
        notice(&mut inbox, 0, 0, cost(10), &mut stats);
        assert_eq!((inbox.counts().0, stats.blocks_expired), (0, 1));
        assert_eq!(inbox.limit(), 10_000 + cost(10));
        assert!(!inbox.is_waiting());
    }

    #[test]
    fn a_flow_in_custody_is_reported_as_finished_whatever_arrives_for_it() {
        let resume = Resume { finished_below: FlowId(4), open: Vec::new() };
        let (mut inbox, mut stats) = (Inbox::new(10_000, resume), ReceivedStats::default());
        notice(&mut inbox, 2, 0, 400, &mut stats);
        inbox.symbol(Instant::ZERO, symbol(3, 0, b"again.", None), Came::Sent, &mut stats);
        let (report, told) = inbox.report(1, 1_000);
        assert_eq!(told, [FlowId(2), FlowId(3)]);
        assert!(report.flows.iter().all(|flow| flow.next == Seq::FINISHED.0));
        assert_eq!(inbox.limit(), 10_000);
    }

    #[test]
    fn flows_take_turns_in_the_reports() {
        let (mut inbox, mut stats) =
            (Inbox::new(1_000_000, Resume::default()), ReceivedStats::default());
        for flow in 0..100 {
            inbox.symbol(Instant::ZERO, symbol(flow, 0, b"a part", None), Came::Sent, &mut stats);
        }
        let told: BTreeSet<FlowId> =
            (0..10).flat_map(|number| inbox.report(number, 400).1).collect();
        assert_eq!(told.len(), 100);
    }

    #[test]
    fn a_far_end_that_never_sends_the_first_block_is_bounded() {
        let (mut inbox, mut stats) =
            (Inbox::new(10_000, Resume::default()), ReceivedStats::default());
        for seq in 0..2 * RUNS_MAX as u64 {
            notice(&mut inbox, 0, 1 + seq * 2, 0, &mut stats);
        }
        assert_eq!((inbox.counts().2, stats.over_limit), (RUNS_MAX, RUNS_MAX as u64));
        notice(&mut inbox, 0, 0, 0, &mut stats);
        assert_eq!(
            inbox.counts().2,
            RUNS_MAX - 1,
            "the first is taken, and the run behind it passed"
        );
    }
}
