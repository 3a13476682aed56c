//! The receiver: reassembles blocks and reports gaps. It never sends.

use super::flow::{ArrivedSlice, OneWayFlow, Partial, SkippedStep};
use super::wire::{Announcement, BlockSlice, Content, Message};
use crate::block::{BlockId, Received, cost};
use crate::repair::{DecoderCounters, RepairDecoder};
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Settings of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Most bytes of blocks begun and not yet taken by the application. When it is full, the block
    /// begun longest ago is given up, since the sender cannot be stopped. Two seconds of 250
    /// Mbit/s.
    pub window: ByteCount,
    /// How much later than expected a datagram may arrive: blocks that the sender announced as done
    /// count as missing after that.
    pub reordering: Duration,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self { window: ByteCount::mib(64), reordering: Duration::from_millis(100) }
    }
}

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A block arrived whole.
    Block(Received),
    /// Blocks that will not arrive.
    Gap(BlockGap),
    /// The sender announced its progress: the first time, and at the end.
    Announced(Announcement),
    /// Nothing arrived from the sender for much longer than it ever pauses: open blocks are given
    /// up.
    Silent,
}

/// Blocks of a flow that will not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockGap {
    /// The flow.
    pub flow: FlowId,
    /// The first missing block.
    pub first: Seq,
    /// How many.
    pub count: u64,
    /// Why.
    pub cause: LossCause,
}

/// Why blocks are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// More was lost than FEC repair recovers, or this end started too late.
    Lost,
    /// The sender gave them up: their deadline passed, or the application took them back.
    GivenUp,
    /// They were begun, and their deadline passed here.
    Expired,
    /// This end had no memory for them.
    Crowded,
}

/// Counters of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverCounters {
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Those that were not a message, or contradicted earlier ones.
    pub malformed: u64,
    /// Slices without anything new, or of a block that was already delivered or reported missing.
    pub duplicates: u64,
    /// Slices for which there was no memory.
    pub over_window: u64,
    /// Blocks of which at least one slice arrived.
    pub blocks_seen: u64,
    /// Blocks delivered that needed no repair.
    pub blocks_delivered: u64,
    /// Blocks delivered that did.
    pub blocks_repaired: u64,
    /// Bytes of both.
    pub bytes_delivered: u64,
    /// Blocks begun and then dropped.
    pub blocks_dropped: u64,
    /// Blocks that are missing for any reason except that the sender gave them up.
    pub blocks_lost: u64,
    /// Blocks that the sender gave up.
    pub blocks_given_up: u64,
    /// Announcements that arrived.
    pub announcements: u64,
}

/// The receiver of a path without return, for one session of a sender.
#[derive(Debug)]
pub struct OneWayReceiver {
    config: ReceiverConfig,
    decoder: RepairDecoder,
    flows: BTreeMap<FlowId, OneWayFlow>,
    /// Cost of blocks begun or waiting in `events`.
    held: u64,
    /// Incomplete blocks, the one begun longest ago first.
    open: BTreeSet<(Instant, BlockId)>,
    /// Expendable ones by the time when they expire.
    deadlines: BTreeSet<(Instant, BlockId)>,
    /// Flows with an announced progress, by the time when it takes effect.
    told: BTreeSet<(Instant, FlowId)>,
    events: VecDeque<Event>,
    budget: Duration,
    heard: Option<Instant>,
    introduced: bool,
    ended: bool,
    counters: ReceiverCounters,
}

/// Flows with a state: the sender's own bound.
const FLOWS_MAX: usize = 1 << 16;
/// Runs of blocks done beyond the first open one, of one flow. Beyond, the blocks missing before
/// the first run are given up.
const RUNS_MAX: usize = 4_096;
/// Announcements of one flow that wait to take effect.
const TOLD_MAX: usize = 8;
/// A sender announces itself every second: where three announcements are lost, it or the path is
/// gone.
const SILENCE: Duration = Duration::from_secs(4);
/// Gaps and blocks that wait for the application. Beyond, gaps are only counted.
const EVENTS_MAX: usize = 1 << 16;

impl OneWayReceiver {
    /// A receiver to which nothing has arrived.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            decoder: RepairDecoder::new(),
            flows: BTreeMap::new(),
            held: 0,
            open: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            told: BTreeSet::new(),
            events: VecDeque::new(),
            budget: Duration::ZERO,
            heard: None,
            introduced: false,
            ended: false,
            counters: ReceiverCounters::default(),
        }
    }

    /// Counters so far.
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Counters of FEC repair.
    pub fn repair(&self) -> &DecoderCounters {
        self.decoder.counters()
    }

    /// Bytes kept, for blocks and for repair.
    pub fn memory(&self) -> u64 {
        self.held + self.decoder.memory()
    }

    /// Blocks begun and not delivered.
    pub fn in_flight(&self) -> u64 {
        self.flows.values().map(|flow| flow.blocks.len() as u64).sum()
    }

    /// Whether the sender announced its end, and everything that it sent was delivered or reported
    /// missing.
    pub fn is_over(&self) -> bool {
        self.ended && self.told.is_empty() && self.events.is_empty()
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Block(block) = &event {
            self.held = self.held.saturating_sub(cost(block.bytes.len()));
        }
        Some(event)
    }

    /// A plain datagram arrived.
    pub fn datagram(&mut self, now: Instant, datagram: Bytes) {
        self.expire(now);
        self.heard = Some(now);
        self.counters.datagrams += 1;
        match Message::decode(&datagram) {
            Ok(Message::Source { sid, content }) => {
                self.decoder.source(sid, content.clone());
                self.content(ArrivedSlice { now, recovered: false }, &content);
            }
            Ok(Message::Repair(symbol)) => self.decoder.repair(symbol),
            Ok(Message::Announcement(announcement)) => self.announced(now, announcement),
            Err(_) => self.counters.malformed += 1,
        }
        while let Some((_, content)) = self.decoder.poll() {
            self.content(ArrivedSlice { now, recovered: true }, &content);
        }
    }

    /// Handles time-outs that are due.
    pub fn expire(&mut self, now: Instant) {
        while let Some((due, id)) = self.told.first().copied()
            && due <= now
        {
            self.told.pop_first();
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let done = flow.told.pop_front().map_or(0, |(_, done)| done);
            self.told.extend(flow.told.front().map(|(due, _)| (*due, id)));
            self.pass_to(now, id, done, LossCause::Lost);
        }
        while let Some((due, id)) = self.deadlines.first().copied()
            && due <= now
        {
            self.deadlines.pop_first();
            self.drop_block(now, id, LossCause::Expired);
        }
        if self.heard.is_some_and(|heard| heard + self.silence() <= now) {
            self.heard = None;
            let ends: Vec<(FlowId, u64)> =
                self.flows.iter().map(|(id, flow)| (*id, flow.end())).collect();
            for (id, end) in ends {
                self.pass_to(now, id, end, LossCause::Lost);
            }
            if !self.ended {
                self.events.push_back(Event::Silent);
            }
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let silence = self.heard.map(|heard| heard + self.silence());
        let told = self.told.first().map(|(due, _)| *due);
        [told, self.deadlines.first().map(|(due, _)| *due), silence].into_iter().flatten().min()
    }

    fn silence(&self) -> Duration {
        SILENCE + self.budget + self.config.reordering
    }

    fn announced(&mut self, now: Instant, announcement: Announcement) {
        self.counters.announcements += 1;
        self.budget = announcement.budget.min(BUDGET_MAX);
        let due = now + self.config.reordering;
        for &(id, done) in &announcement.flows {
            let Some(flow) = self.flow(id) else { continue };
            let known = flow.told.back().map_or(flow.next, |(_, done)| *done);
            if done.0 <= known.max(flow.next) {
                continue;
            }
            if flow.told.len() >= TOLD_MAX {
                flow.told.pop_back();
            }
            flow.told.push_back((due, done.0));
            if flow.told.len() == 1 {
                self.told.insert((due, id));
            }
        }
        let ends = announcement.ended && !self.ended;
        self.ended |= ends;
        if ends || !core::mem::replace(&mut self.introduced, true) {
            self.events.push_back(Event::Announced(announcement));
        }
    }

    fn content(&mut self, at: ArrivedSlice, content: &Bytes) {
        match Content::decode(content) {
            Ok(Content::Piece(piece)) => self.piece(at, &piece),
            Ok(Content::GivenUp(names)) => {
                for (id, seq) in names {
                    if self.flow(id).is_some_and(|flow| !flow.is_past(seq.0)) && seq < Seq::FINISHED
                    {
                        self.drop_block(at.now, BlockId { flow: id, seq }, LossCause::GivenUp);
                    }
                }
            }
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn piece(&mut self, at: ArrivedSlice, piece: &BlockSlice) {
        let id = BlockId { flow: piece.header.flow, seq: piece.header.seq };
        let (seq, end) = (id.seq.0, piece.end());
        let Some(flow) = self.flow(id.flow) else {
            self.counters.over_window += 1;
            return;
        };
        if flow.is_past(seq) {
            self.counters.duplicates += 1;
            return;
        }
        let known = flow.blocks.get(&seq);
        if known.is_some_and(|block| block.contradicts(piece)) {
            self.counters.malformed += 1;
            return;
        }
        let grown = known.map_or_else(|| cost(end as usize), |block| block.growth(end));
        if !self.make_room(at.now, grown, id) {
            self.counters.over_window += 1;
            return;
        }
        let Some(flow) = self.flows.get_mut(&id.flow).filter(|flow| !flow.is_past(seq)) else {
            return;
        };
        let before = flow.blocks.get(&seq).map_or(0, Partial::held);
        if before == 0 {
            self.counters.blocks_seen += 1;
            self.open.insert((at.now, id));
        }
        let block = flow.blocks.entry(seq).or_insert_with(|| Partial::new(at.now));
        let had_deadline = block.expires.is_some();
        if !block.put(at, piece) {
            self.counters.duplicates += 1;
        }
        self.held += block.held() - before;
        if let Some(expires) = block.expires.filter(|_| !had_deadline) {
            self.deadlines.insert((expires, id));
        }
        if block.complete.is_some() {
            self.open.remove(&(block.begun, id));
            self.whole(at.now, id);
        }
    }

    /// A block is whole or done: an expendable one is delivered at once, a reliable one in its
    /// turn.
    fn whole(&mut self, now: Instant, id: BlockId) {
        let (flow_id, seq) = (id.flow, id.seq.0);
        let Some(flow) = self.flows.get_mut(&flow_id) else { return };
        if flow.blocks.get(&seq).is_some_and(|block| block.expires.is_some())
            && let Some(block) = flow.blocks.remove(&seq)
        {
            flow.pass(seq);
            self.give_out(now, id, block);
        }
        self.pass_to(now, flow_id, 0, LossCause::Lost);
        let crowded = self
            .flows
            .get(&flow_id)
            .filter(|flow| flow.runs() > RUNS_MAX)
            .and_then(OneWayFlow::first_run);
        if let Some(end) = crowded {
            self.pass_to(now, flow_id, end, LossCause::Crowded);
        }
    }

    fn give_out(&mut self, now: Instant, id: BlockId, block: Partial) {
        self.forget(id, &block);
        let received = block.into_received(id, now);
        let counters = &mut self.counters;
        counters.bytes_delivered += received.bytes.len() as u64;
        *(if received.timing.repaired {
            &mut counters.blocks_repaired
        } else {
            &mut counters.blocks_delivered
        }) += 1;
        self.events.push_back(Event::Block(received));
    }

    /// Advances a flow to `end`: delivers the blocks that are whole, and reports gaps.
    fn pass_to(&mut self, now: Instant, flow: FlowId, end: u64, cause: LossCause) {
        let name = |seq| BlockId { flow, seq: Seq(seq) };
        while let Some(step) = self.flows.get_mut(&flow).and_then(|flow| flow.step(end)) {
            match step {
                SkippedStep::Block(seq, block) => self.give_out(now, name(seq), block),
                SkippedStep::Gap(first, stop, begun) => {
                    for (seq, block) in begun {
                        self.dropped(name(seq), &block);
                    }
                    self.gap(BlockGap { flow, first: Seq(first), count: stop - first, cause });
                }
            }
        }
    }

    /// Gives up one block, wherever in its flow it is.
    fn drop_block(&mut self, now: Instant, id: BlockId, cause: LossCause) {
        let seq = id.seq.0;
        let flow = self.flows.get_mut(&id.flow).filter(|flow| !flow.is_past(seq));
        let Some(flow) = flow else { return };
        let block = flow.blocks.remove(&seq);
        flow.pass(seq);
        if let Some(block) = block {
            self.dropped(id, &block);
        }
        self.gap(BlockGap { flow: id.flow, first: id.seq, count: 1, cause });
        self.whole(now, id);
    }

    fn dropped(&mut self, id: BlockId, block: &Partial) {
        self.held = self.held.saturating_sub(block.held());
        self.counters.blocks_dropped += 1;
        self.forget(id, block);
    }

    fn forget(&mut self, id: BlockId, block: &Partial) {
        self.open.remove(&(block.begun, id));
        if let Some(expires) = block.expires {
            self.deadlines.remove(&(expires, id));
        }
    }

    fn gap(&mut self, gap: BlockGap) {
        let counters = &mut self.counters;
        let counter = if gap.cause == LossCause::GivenUp {
            &mut counters.blocks_given_up
        } else {
            &mut counters.blocks_lost
        };
        *counter = counter.saturating_add(gap.count);
        if let Some(Event::Gap(last)) = self.events.back_mut()
            && (last.flow, last.first.0 + last.count, last.cause)
                == (gap.flow, gap.first.0, gap.cause)
        {
            last.count += gap.count;
        } else if self.events.len() < EVENTS_MAX {
            self.events.push_back(Event::Gap(gap));
        }
    }

    /// Makes room for `grown` bytes of a block by giving up blocks begun longest ago. Returns
    /// whether there is room.
    fn make_room(&mut self, now: Instant, grown: u64, wanted: BlockId) -> bool {
        let window = self.config.window.as_u64();
        while self.held + grown > window {
            let oldest =
                self.open.first().map(|(_, oldest)| *oldest).filter(|oldest| *oldest != wanted);
            // Whole blocks of another flow that wait for one of which nothing arrived.
            let waiting = || {
                let flows = self.flows.iter().filter(|(_, flow)| !flow.blocks.is_empty());
                flows
                    .map(|(id, flow)| BlockId { flow: *id, seq: Seq(flow.end()) })
                    .find(|id| id.flow != wanted.flow)
            };
            let own = || {
                let first = Seq(*self.flows.get(&wanted.flow)?.blocks.keys().next()?);
                (first < wanted.seq).then_some(BlockId { seq: first, ..wanted })
            };
            let Some(id) = oldest.or_else(own).or_else(waiting) else { return false };
            let before = self.held + self.in_flight();
            self.pass_to(now, id.flow, id.seq.0 + 1, LossCause::Crowded);
            // Delivered blocks are held until the application takes them: then nothing was freed.
            if self.held + self.in_flight() >= before {
                return false;
            }
        }
        true
    }

    fn flow(&mut self, id: FlowId) -> Option<&mut OneWayFlow> {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&id) {
            return None;
        }
        Some(self.flows.entry(id).or_default())
    }
}

/// Bound of an announced budget: a longer one would keep the receiver waiting.
const BUDGET_MAX: Duration = Duration::from_secs(600);
