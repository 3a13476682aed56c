//! Blocks on their way out: what is still to be sent, what must be sent again, and what goes next.

mod choice;
mod fate;
mod one_way;
mod outgoing;
mod queues;
mod reclass;
mod repeats;
mod steps;
#[cfg(test)]
mod tests;

pub use outgoing::{Now, Outsymbol, relative};

use crate::block::{Block, BlockId, Mode, Outcome, cost};
use crate::classes::{ClassId, ClassTree};
use crate::inflight::Slice;
use crate::path::PathId;
use crate::schedule::{LineEstimate, Policy};
use crate::session::SendError;
use crate::wire::PROTECTION;
use fate::GivenUp;
use outgoing::OutgoingBlock;
use queues::{QueueKey, Queues};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use steps::Steps;

/// Blocks taken from the application whose fate is open, and those given up of which the far end
/// has to know.
#[derive(Debug, Default)]
pub struct Outbox {
    flows: BTreeMap<FlowId, Flow>,
    queues: Queues,
    /// When to look whether a block is late.
    deadlines: BTreeSet<(Instant, BlockId)>,
    dependents: BTreeMap<BlockId, BTreeSet<BlockId>>,
    /// Blocks given up lately, for what depends on them and comes later.
    failed: VecDeque<(BlockId, Outcome)>,
    given_up: BTreeMap<BlockId, GivenUp>,
    /// Slices to send only to be answered with a report, at most one a flow.
    probes: VecDeque<Slice>,
    /// Slices to be sent once more at a time of their own: their blocks' deadlines leave no time to
    /// learn of a loss.
    extra: VecDeque<(Instant, Slice)>,
    /// Slices of redundant blocks that went on another path.
    copies: BTreeMap<PathId, VecDeque<Slice>>,
    /// Flows that go on one path only.
    pins: BTreeMap<FlowId, PathId>,
    settled: VecDeque<(BlockId, Outcome)>,
    /// Cost of the blocks begun in this session.
    begun: u64,
    /// What `begun` may become.
    limit: u64,
    order: u64,
    /// Cost of all blocks held, and what those settled cost until those before them are settled
    /// too.
    pub held: u64,
}

#[derive(Debug, Default)]
struct Flow {
    /// The place of the first block held.
    first: u64,
    blocks: VecDeque<OutgoingBlock>,
    /// Cost of all blocks ever taken.
    taken: u64,
    /// No block before this place waits to be begun.
    unbegun: u64,
    /// Places of blocks that depend on one of another flow.
    foreign: BTreeSet<u64>,
    steps: Steps,
}

/// Who asks for a symbol.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    pub at: Now,
    pub path: PathId,
    /// Largest datagram, header included.
    pub payload: usize,
    /// Bytes that faster paths would deliver before anything sent here now arrives: these are left
    /// to them.
    pub lead: u64,
    /// This path costs: only what would be late without it goes here, given what the others do
    /// meanwhile.
    pub only_late_for: Option<LineEstimate>,
    /// This path: its delay and rate.
    pub line: LineEstimate,
    /// Blocks with less time to spare than this are coded, and cut into datagrams of at most so
    /// many bytes: smaller ones make larger groups.
    pub coded: (Duration, usize),
    /// With less than this to send, a transfer is near its end, and its symbols are coded too.
    pub tail: u64,
    /// Nothing else is to be sent: what will hardly be in time may go.
    pub also_late: bool,
    /// Only what may expire goes, and nothing twice for its sake.
    pub perishable_only: bool,
}

/// Bytes of a block that a probe carries: any symbol does.
const PROBE: u32 = 64;
/// Copies waiting for a path, and slices waiting to be sent once more.
const COPIES_MAX: usize = 8_192;
/// Flows with a state at one time.
const FLOWS_MAX: usize = 1 << 16;

impl Outbox {
    /// The place that the next block of `flow` will have.
    pub fn next_place(&self, flow: FlowId) -> Seq {
        self.flows.get(&flow).map_or(Seq(0), |flow| Seq(flow.first + flow.blocks.len() as u64))
    }

    /// Begins `flow` at `place`; nothing where it has begun.
    pub fn start_flow(&mut self, flow: FlowId, place: Seq) {
        self.flows.entry(flow).or_insert_with(|| Flow {
            first: place.0,
            unbegun: place.0,
            ..Flow::default()
        });
    }

    /// Flows with a state.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether `block` can be taken, where blocks have at most `max` bytes and there is room for
    /// `room`.
    pub fn admits(&self, block: &Block, max: usize, room: ByteCount) -> Result<(), SendError> {
        let (len, flow) = (block.bytes.len(), block.flow);
        if len == 0 || len > max {
            return Err(SendError::Length { len, max });
        }
        if block.mode == Mode::Expendable && block.deadline.is_none() {
            return Err(SendError::NoDeadline { flow });
        }
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&flow) {
            return Err(SendError::Flows { flow });
        }
        // An empty buffer takes any block, so that no block can be too large for ever.
        if self.held > 0 && room.as_u64() < cost(len) {
            return Err(SendError::Full { room });
        }
        Ok(())
    }

    /// Lets a flow go on one path only, or on all again.
    pub fn pin(&mut self, flow: FlowId, path: Option<PathId>) {
        match path {
            Some(path) => self.pins.insert(flow, path),
            None => self.pins.remove(&flow),
        };
    }

    /// Whether a flow goes on one path only.
    pub fn is_pinned(&self, flow: FlowId) -> bool {
        self.pins.contains_key(&flow)
    }

    pub fn push(&mut self, now: Instant, block: Block) -> BlockId {
        self.start_flow(block.flow, Seq(0));
        self.order += 1;
        let (order, depends_on, alone) = (self.order, block.depends_on, block.useful_alone);
        let name = BlockId { flow: block.flow, seq: self.next_place(block.flow) };
        let after = self.after(name, &block);
        let key =
            QueueKey { class: block.class, priority: block.priority, flow: block.flow, after };
        self.held += cost(block.bytes.len());
        if let Some(flow) = self.flows.get_mut(&block.flow) {
            let mut outgoing = OutgoingBlock::new(now, block, flow.taken, order);
            outgoing.after = after;
            flow.taken += outgoing.cost();
            if depends_on.is_some_and(|needed| needed.flow != name.flow) {
                flow.foreign.insert(name.seq.0);
            }
            self.queues.add(key, name.seq.0, outgoing.pending());
            outgoing.look = outgoing.deadline.filter(|_| outgoing.is_expendable());
            self.deadlines.extend(outgoing.look.map(|look| (look, name)));
            flow.blocks.push_back(outgoing);
        }
        if let Some(needed) = depends_on.filter(|_| !alone) {
            let failed = self.failed.iter().find(|(failed, _)| *failed == needed);
            match failed.map(|(_, outcome)| *outcome) {
                Some(outcome) => drop(self.give_up(name, outcome)),
                None if self.block(needed).is_some_and(OutgoingBlock::is_open) => {
                    self.dependents.entry(needed).or_default().insert(name);
                }
                None => {}
            }
        }
        name
    }

    /// Bytes of a class and priority that were never sent, or are to be sent again.
    pub fn waiting(&self, class: ClassId, priority: u8) -> u64 {
        self.queues.bytes_of(class, priority)
    }

    /// The far end takes blocks up to this total cost. It never takes back what it gave.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// What became of a block.
    pub fn poll_settled(&mut self) -> Option<(BlockId, Outcome)> {
        self.settled.pop_front()
    }

    /// The next symbol for the path that asks.
    pub fn next_symbol(
        &mut self,
        offer: &Offer,
        tree: &mut ClassTree,
        policy: &dyn Policy,
    ) -> Option<Outsymbol> {
        if !offer.perishable_only
            && let Some(symbol) = self.next_copy(offer)
        {
            return Some(symbol);
        }
        let (key, name) = self.pick(offer, tree, policy).or_else(|| {
            let late = Offer { also_late: true, ..*offer };
            (offer.lead == 0).then(|| self.pick(&late, tree, policy)).flatten()
        })?;
        let flow = self.flows.get_mut(&name.flow)?;
        let block = flow.blocks.get_mut(usize::try_from(name.seq.0 - flow.first).ok()?)?;
        if !block.begun {
            block.begun = true;
            self.begun += block.cost();
        }
        let before = block.pending();
        let slack =
            block.deadline.map(|deadline| deadline.since(offer.at.now + offer.line.one_way_delay));
        let near_end = slack.is_none() && self.queues.bytes() < offer.tail;
        let (due, payload) = match (slack, block.again.first()) {
            // Cut where it was cut before.
            (_, Some((start, _)))
                if near_end && block.coded_from.is_some_and(|from| start >= from) =>
            {
                (None, offer.payload.saturating_sub(PROTECTION))
            }
            (_, Some(_)) => (None, offer.payload),
            (Some(slack), _) if slack < offer.coded.0 => {
                (Some(offer.at.now + slack), offer.payload.min(offer.coded.1))
            }
            _ if near_end => {
                block.coded_from.get_or_insert(block.sent);
                (None, offer.payload.saturating_sub(PROTECTION))
            }
            _ => (None, offer.payload),
        };
        let is_protected = payload < offer.payload;
        let mut symbol = block.next(name, payload, offer.at)?;
        symbol.protection = is_protected.then_some(due);
        let after = block.pending();
        self.queues.take(key, name.seq.0, before - after, after);
        if after == 0 {
            self.free_dependents(name);
        }
        tree.charge(
            offer.at.now,
            key.class,
            ByteCount::of(symbol.header.len() + symbol.bytes.len()),
        );
        Some(symbol)
    }

    /// What waits for a block that was sent whole may be sent.
    fn free_dependents(&mut self, name: BlockId) {
        for dependent in self.dependents.get(&name).into_iter().flatten() {
            if let Some(block) = block(&self.flows, dependent.flow, dependent.seq) {
                self.queues.changed(key_of(dependent.flow, block));
            }
        }
    }

    fn pick(
        &mut self,
        offer: &Offer,
        tree: &mut ClassTree,
        policy: &dyn Policy,
    ) -> Option<(QueueKey, BlockId)> {
        if self.queues.is_empty() {
            return None;
        }
        let mut found: Vec<(ClassId, (QueueKey, BlockId))> = Vec::new();
        let leaf = tree.pick(offer.at.now, |class| {
            let choice = self.choose(class, offer, policy);
            found.extend(choice.map(|choice| (class, choice)));
            choice.is_some()
        })?;
        found.into_iter().find(|(class, _)| *class == leaf).map(|(_, choice)| choice)
    }

    /// Probes, copies, and what is sent once more before news of it can come.
    fn next_copy(&mut self, offer: &Offer) -> Option<Outsymbol> {
        while let Some(slice) = self.probes.pop_front() {
            if let Some(block) =
                block_mut(&mut self.flows, slice.flow, slice.seq).filter(|block| block.is_open())
            {
                let repeated = slice.start < block.sent;
                return Some(block.cut(slice, offer.payload, repeated, offer.at));
            }
        }
        while self.extra.front().is_some_and(|(due, _)| *due <= offer.at.now) {
            let (due, slice) = self.extra.pop_front()?;
            if let Some(symbol) = self.cut_open(slice, offer, true) {
                self.rest_of_copy(due, Slice { start: symbol.slice.end, ..slice });
                return Some(symbol);
            }
        }
        while let Some(slice) = self.copies.get_mut(&offer.path).and_then(VecDeque::pop_front) {
            if let Some(symbol) = self.cut_open(slice, offer, false) {
                return Some(symbol);
            }
        }
        None
    }

    /// What did not fit into the datagram that took the start of a copy goes by itself: else the
    /// arrival of that start would stand for all of it.
    fn rest_of_copy(&mut self, due: Instant, rest: Slice) {
        if rest.start < rest.end
            && let Some(block) = block_mut(&mut self.flows, rest.flow, rest.seq)
        {
            block.repeats.sent(rest.start, rest.end, 1);
            self.extra.push_front((due, rest));
        }
    }

    fn cut_open(&mut self, slice: Slice, offer: &Offer, repeated: bool) -> Option<Outsymbol> {
        let block = block_mut(&mut self.flows, slice.flow, slice.seq)?;
        let wanted = block.is_open() && !block.arrived.contains(slice.start, slice.end);
        wanted.then(|| {
            let mut symbol = block.cut(slice, offer.payload, repeated, offer.at);
            symbol.redundant = false;
            symbol
        })
    }

    /// `slice` was sent again, and goes so many `times` in all, `gap` apart, should nothing be
    /// heard of it before.
    pub fn sent_again(&mut self, now: Instant, slice: Slice, times: u8, gap: Duration) {
        let mut queued = 1;
        while queued < times && self.extra.len() < COPIES_MAX {
            let due = now + gap * u64::from(queued);
            let at = self.extra.partition_point(|(earlier, _)| *earlier <= due);
            self.extra.insert(at, (due, slice));
            queued += 1;
        }
        if let Some(block) = block_mut(&mut self.flows, slice.flow, slice.seq) {
            block.repeats.sent(slice.start, slice.end, queued);
        }
    }

    /// A slice goes out again: for how long nothing before it in its flow did, whose arrival would
    /// let something be delivered. None where nothing waits for it, or its flow goes on one path
    /// only: copies go on any.
    pub fn pause_before(&mut self, now: Instant, slice: &Slice) -> Option<Duration> {
        let is_free = !self.is_pinned(slice.flow);
        let flow = self.flows.get_mut(&slice.flow).filter(|_| is_free)?;
        flow.block(slice.seq.0).filter(|block| block.is_open() && !block.is_expendable())?;
        let before = flow.steps.before(slice.seq);
        flow.steps.add(slice.seq, now);
        Some(before.map_or(Duration::MAX, |before| now.since(before)))
    }

    /// When a slice is to be sent once more.
    pub fn extra_due(&self) -> Option<Instant> {
        self.extra.front().map(|(due, _)| *due)
    }

    /// A copy of `slice` goes on `path` too.
    pub fn copy(&mut self, path: PathId, slice: Slice) {
        let copies = self.copies.entry(path).or_default();
        if copies.len() < COPIES_MAX {
            copies.push_back(slice);
        }
    }

    /// A path is no longer used.
    pub fn drop_path(&mut self, path: PathId) {
        self.copies.remove(&path);
    }

    /// Whether there may be something to send.
    pub fn has_symbol(&self) -> bool {
        !self.probes.is_empty() || (!self.queues.is_empty() && !self.is_held_back())
    }

    /// Whether something that may expire waits to be sent.
    pub fn has_perishable(&self) -> bool {
        self.queues
            .heads()
            .any(|(_, name)| self.block(name).is_some_and(OutgoingBlock::is_expendable))
    }

    /// Whether a class has blocks with something to send.
    pub fn has_class(&self, class: ClassId) -> bool {
        self.queues.of_class(class).next().is_some()
    }

    /// Whether blocks wait only because the far end takes no more now.
    pub fn is_held_back(&self) -> bool {
        let mut any = false;
        for (_, name) in self.queues.heads() {
            any = true;
            let flow = self.flows.get(&name.flow);
            let fits = flow.and_then(|flow| Some((flow, flow.block(name.seq.0)?)));
            if fits.is_some_and(|(flow, block)| self.may_begin(flow, name.seq.0, block)) {
                return false;
            }
        }
        any
    }

    pub fn arrived(&mut self, now: Instant, slice: Slice) {
        let Some(block) =
            block_mut(&mut self.flows, slice.flow, slice.seq).filter(|block| block.is_open())
        else {
            return;
        };
        if block.arrived.insert(slice.start, slice.end) > 0 {
            block.last_arrival = now;
            block.repeats.arrived(slice.start, slice.end);
            let (before, key) = (block.pending(), key_of(slice.flow, block));
            block.again.remove(slice.start, slice.end);
            let after = block.pending();
            if after < before {
                self.queues.take(key, slice.seq.0, before - after, after);
            }
        }
    }

    /// One transmission of the slice was lost; what of it has to be sent again: `soonest` is when
    /// it could arrive.
    pub fn lacks(&mut self, slice: Slice, soonest: Instant) -> Option<Slice> {
        let block = block_mut(&mut self.flows, slice.flow, slice.seq)?;
        if !block.is_open() || block.arrived.contains(slice.start, slice.end) {
            return None;
        }
        let lacking =
            block.repeats.lost(slice.start, slice.end).filter(|_| !block.is_late(soonest));
        lacking.map(|(start, end)| Slice { start, end, ..slice })
    }

    /// Whether the slice is wanted, was lost before and has been sent again.
    pub fn was_repeated(&self, slice: &Slice) -> bool {
        let block = block(&self.flows, slice.flow, slice.seq).filter(|block| block.is_open());
        block.is_some_and(|block| {
            block.repeats.so_far(slice.start) > 1 && !block.arrived.contains(slice.start, slice.end)
        })
    }

    /// A slice that [`Self::lacks`] or [`Self::was_repeated`] named, for a path of its own: as much
    /// of it as a datagram takes. None where it is wanted no longer.
    pub fn reroute(&mut self, slice: Slice, offer: &Offer) -> Option<Outsymbol> {
        let mut symbol = self.cut_open(slice, offer, true)?;
        symbol.rerouted = true;
        symbol.sends = block_mut(&mut self.flows, slice.flow, slice.seq)
            .map(|block| block.repeats.so_far(slice.start));
        Some(symbol)
    }

    /// One transmission of the slice was lost. Whether some of it has to be sent again, and is:
    /// `soonest` is when it could arrive.
    pub fn repeat(&mut self, slice: Slice, soonest: Instant) -> bool {
        let lacking = self.lacks(slice, soonest);
        lacking.is_some_and(|lacking| self.wait_again(lacking))
    }

    /// The slice waits to be sent again, whatever of it is under way. Whether its block is known.
    fn wait_again(&mut self, slice: Slice) -> bool {
        let Some(block) = block_mut(&mut self.flows, slice.flow, slice.seq) else { return false };
        let (before, key) = (block.pending(), key_of(slice.flow, block));
        block.again.insert(slice.start, slice.end);
        let more = block.pending() - before;
        if more > 0 {
            self.queues.add(key, slice.seq.0, more);
        }
        true
    }

    /// Asks for a report, where for `settle` none has said what must be known:
    ///
    /// - The path claims to have brought a block whole, and no report has confirmed it: its end is
    ///   sent again.
    /// - Blocks are held back: the start of the first one is sent, because the report that gave
    ///   more room may be lost although the path claims that it arrived (compare the zero-window
    ///   probes of RFC 9293 3.8.6.1).
    pub fn probe(&mut self, now: Instant, settle: Duration) {
        if !self.probes.is_empty() {
            return;
        }
        for (flow_id, flow) in &mut self.flows {
            let Some(block) = flow.blocks.front_mut() else { continue };
            if block.is_claimed() && now.since(block.last_arrival.max(block.probed)) >= settle {
                block.probed = now;
                let (start, end) = (block.len.saturating_sub(PROBE), block.len);
                self.probes.push_back(Slice { flow: *flow_id, seq: Seq(flow.first), start, end });
            }
        }
        let held_back = self.is_held_back().then(|| self.queues.heads().next()).flatten();
        if let Some((_, name)) = held_back
            && let Some(block) = block_mut(&mut self.flows, name.flow, name.seq)
            && now.since(block.probed) >= settle
        {
            block.probed = now;
            let end = PROBE.min(block.len);
            self.probes.push_back(Slice { flow: name.flow, seq: name.seq, start: 0, end });
        }
    }

    /// Candidates with something to send, in the order of scheduling, by flow.
    pub fn candidates(
        &mut self,
        now: Instant,
        line: &LineEstimate,
        policy: &dyn Policy,
    ) -> Vec<(FlowId, crate::schedule::Candidate)> {
        let heads: Vec<_> = self.queues.heads().collect();
        let mut found: Vec<_> = heads
            .into_iter()
            .filter_map(|(key, name)| {
                let queue = self.queues.get(key)?;
                let mut candidate = self.candidate(name, self.block(name)?);
                candidate.unsent = ByteCount::new(queue.bytes);
                Some((policy.key(now, &candidate, line), (key.flow, candidate)))
            })
            .collect();
        found.sort_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn block(&self, name: BlockId) -> Option<&OutgoingBlock> {
        block(&self.flows, name.flow, name.seq)
    }
}

fn key_of(flow: FlowId, block: &OutgoingBlock) -> QueueKey {
    QueueKey { class: block.block.class, priority: block.block.priority, flow, after: block.after }
}

impl Flow {
    fn block(&self, seq: u64) -> Option<&OutgoingBlock> {
        self.blocks.get(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// First place held, and the one behind the last.
    fn span(&self) -> (u64, u64) {
        (self.first, self.first + self.blocks.len() as u64)
    }

    /// Forgets the settled blocks before the first open one; how many.
    fn drop_settled(&mut self, untold: impl Fn(u64) -> bool) -> u64 {
        let before = self.first;
        while self.blocks.front().is_some_and(|block| !block.is_open()) && !untold(self.first) {
            self.blocks.pop_front();
            self.first += 1;
            self.foreign.remove(&(self.first - 1));
        }
        self.unbegun = self.unbegun.max(self.first);
        self.first - before
    }
}

fn block(flows: &BTreeMap<FlowId, Flow>, flow: FlowId, seq: Seq) -> Option<&OutgoingBlock> {
    flows.get(&flow)?.block(seq.0)
}

fn block_mut(
    flows: &mut BTreeMap<FlowId, Flow>,
    flow: FlowId,
    seq: Seq,
) -> Option<&mut OutgoingBlock> {
    let flow = flows.get_mut(&flow)?;
    flow.blocks.get_mut(usize::try_from(seq.0.checked_sub(flow.first)?).ok()?)
}
