//! The sender: chooses the next datagram for a path without return.

use super::design::Design;
use super::interleave::Interleaver;
use super::wire::{Announcement, Content, FLOWS_TOLD, GIVEN_UP_MAX, Message, PieceHeader};
use crate::block::{Block, BlockId, MAX_BLOCK, Outcome};
use crate::classes::ClassTree;
use crate::path::PathId;
use crate::schedule::{LineEstimate, Policy, PolicyConfig};
use crate::send::{Now, Offer, Outbox, Outsymbol};
use crate::session::SendError;
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Settings of a sender.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    /// Its name, as the receiver shows it.
    pub name: String,
    /// Most bytes of blocks taken from the application and not yet sent.
    pub send_buffer: ByteCount,
    /// Calendar time at the clock's zero, for timestamps sent to the far end.
    pub utc_at_zero: Utc,
    /// One-way delay of the line, for deadlines: it cannot be measured here.
    pub one_way_delay: Duration,
    /// How the line is shared.
    pub classes: ClassTree,
    /// Which block goes next within a class.
    pub policy: PolicyConfig,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            send_buffer: ByteCount::mib(64),
            utc_at_zero: Utc::default(),
            one_way_delay: Duration::ZERO,
            classes: ClassTree::default(),
            policy: PolicyConfig::default(),
        }
    }
}

/// Counters of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SenderCounters {
    /// Blocks taken from the application.
    pub blocks_taken: u64,
    /// Blocks sent whole, with all their repair.
    pub blocks_sent: u64,
    /// Blocks given up before they were sent whole.
    pub blocks_given_up: u64,
    /// Source datagrams sent, and their bytes.
    pub sources: u64,
    /// Bytes of those.
    pub source_bytes: u64,
    /// Repair datagrams sent, and their bytes.
    pub repairs: u64,
    /// Bytes of those.
    pub repair_bytes: u64,
    /// Announcements sent.
    pub announcements: u64,
    /// Bytes of those.
    pub announcement_bytes: u64,
    /// Groups closed.
    pub groups: u64,
    /// Expected losses of blocks under the assumed loss, summed over the groups sent: an upper
    /// bound, since a block whose groups fail together counts for each.
    pub expected_lost: f64,
}

impl SenderCounters {
    /// Bytes of repair and announcements ÷ bytes of source datagrams.
    pub fn overhead(&self) -> f64 {
        (self.repair_bytes + self.announcement_bytes) as f64 / self.source_bytes.max(1) as f64
    }

    /// Upper bound of the share of blocks lost under the assumed loss.
    pub fn residual(&self) -> f64 {
        self.expected_lost / (self.blocks_sent.max(1)) as f64
    }
}

/// The sender of a path without return. Call [`Self::poll`] whenever the line has room.
#[derive(Debug)]
pub struct OneWaySender {
    config: SenderConfig,
    design: Design,
    policy: Box<dyn Policy>,
    outbox: Outbox,
    coder: Interleaver,
    line: LineEstimate,
    settled: VecDeque<(BlockId, Outcome)>,
    /// Blocks sent whole whose last group is not repaired yet.
    unrepaired: Vec<BlockId>,
    /// Flows with symbols in the open set.
    touched: BTreeSet<FlowId>,
    /// Progress of the flows of the closed set, to be announced once its repair is sent.
    closing: Vec<(FlowId, u64)>,
    told: Telling,
    finish: Option<Finish>,
    counters: SenderCounters,
}

/// What was announced, and when.
#[derive(Debug, Default)]
struct Telling {
    /// Every flow, and the sequence number below which it is done.
    flows: BTreeMap<FlowId, u64>,
    /// The flow with which the next announcement begins: flows take turns.
    turn: FlowId,
    last: Option<Instant>,
    /// There was progress since.
    news: bool,
}

/// The end of a transfer, once everything is sent.
#[derive(Debug, Clone, Copy)]
struct Finish {
    told: u32,
}

/// Longest time between two announcements.
const ANNOUNCE: Duration = Duration::from_secs(1);
/// Shortest time between two: 50 ms, or the time of a hundred datagrams, so that they take at most
/// 1 % of the line.
const ANNOUNCE_LEAST: Duration = Duration::from_millis(50);
const ANNOUNCE_DATAGRAMS: u64 = 100;
/// Announcements of the end: over 2 s, longer than a burst of losses.
const ENDS: u32 = 8;
/// Between two announcements of the end.
const END_GAP: Duration = Duration::from_millis(250);
/// The one path.
const PATH: PathId = PathId(0);

impl OneWaySender {
    /// With nothing to send.
    pub fn new(design: Design, config: SenderConfig) -> Self {
        let mut outbox = Outbox::default();
        // No report tells how much the far end takes.
        outbox.window.raise_limit(u64::MAX);
        let line = LineEstimate { rate: design.block_rate(), one_way_delay: config.one_way_delay };
        Self {
            policy: config.policy.build(),
            config,
            design,
            outbox,
            coder: Interleaver::new(),
            line,
            settled: VecDeque::new(),
            unrepaired: Vec::new(),
            touched: BTreeSet::new(),
            closing: Vec::new(),
            told: Telling::default(),
            finish: None,
            counters: SenderCounters::default(),
        }
    }

    /// Its FEC repair.
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// Counters so far.
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Takes a block. [`Self::poll_settled`] returns its outcome.
    ///
    /// # Errors
    /// The block cannot be sent, or not now; or [`Self::finish`] was called.
    pub fn send(&mut self, now: Instant, block: Block) -> Result<BlockId, SendError> {
        let flow = block.flow;
        if self.finish.is_some() {
            return Err(SendError::NotOpen);
        }
        self.outbox.backlog.flows.admits(&block, MAX_BLOCK, self.room())?;
        self.counters.blocks_taken += 1;
        let id = self.outbox.push(now, block);
        self.told.flows.entry(flow).or_insert(0);
        self.take_settled();
        Ok(id)
    }

    /// Takes a block back, and what depends on it. Returns whether it was still to be sent.
    pub fn cancel(&mut self, id: BlockId) -> bool {
        let was_open = self.outbox.give_up(id, Outcome::Cancelled);
        self.take_settled();
        was_open
    }

    /// Room in the send buffer, counted as [`crate::cost`].
    pub const fn room(&self) -> ByteCount {
        self.config.send_buffer.saturating_sub(ByteCount::new(self.outbox.backlog.flows.held()))
    }

    /// The outcome of a block: [`Outcome::Sent`] once all its repair is sent, which says nothing
    /// about its arrival.
    pub fn poll_settled(&mut self) -> Option<(BlockId, Outcome)> {
        self.settled.pop_front()
    }

    /// No block follows: open groups are closed as soon as everything is sent, and the end is
    /// announced.
    pub fn finish(&mut self) {
        self.finish.get_or_insert(Finish { told: 0 });
    }

    /// Whether everything is sent, and the end announced often enough.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some_and(|finish| finish.told >= ENDS)
    }

    /// The next plain datagram, of at most [`super::Assumptions::payload`] bytes. Call it only when
    /// the line has room.
    pub fn poll(&mut self, now: Instant) -> Option<Bytes> {
        if self.is_finished() {
            return None;
        }
        self.outbox.expire(now, &self.line, Duration::ZERO);
        self.take_settled();
        if self.announcement_due().is_some_and(|due| due <= now) {
            return Some(self.announce(now));
        }
        if self.coder.close_at(&self.design).is_some_and(|at| at <= now)
            && !self.coder.is_repairing()
        {
            self.close();
        }
        if let Some(repair) = self.repair() {
            return Some(repair);
        }
        if let Some(source) = self.source(now) {
            return Some(source);
        }
        if self.finish.is_some() && self.coder.is_open() && !self.outbox.has_symbol() {
            self.close();
            return self.repair();
        }
        None
    }

    /// When to call [`Self::poll`] again after it returned nothing, unless a block is sent before.
    pub fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.is_finished() {
            return None;
        }
        let dues = [
            self.config.classes.next_timeout(now, |class| self.outbox.backlog.has_class(class)),
            self.announcement_due(),
            self.coder.close_at(&self.design),
            self.outbox.expiry_due(&self.line),
        ];
        dues.into_iter().flatten().min().map(|due| due.max(now))
    }

    /// A source datagram: lists of blocks given up first, so that the receiver does not wait for
    /// them.
    fn source(&mut self, now: Instant) -> Option<Bytes> {
        let given_up = self.outbox.take_given_up(GIVEN_UP_MAX);
        if !given_up.is_empty() {
            self.touched.extend(given_up.iter().map(|name| name.flow));
            let names = given_up.into_iter().map(|name| (name.flow, name.seq));
            return Some(self.protect(now, Content::given_up(names), None, None));
        }
        let utc = self.config.utc_at_zero + now.since(Instant::ZERO);
        let at = Now { now, utc, flight: self.config.one_way_delay, flow_base: FlowId(0) };
        let payload = self.design.content() - PLACE;
        let offer = Offer {
            at,
            path: PATH,
            payload,
            lead: 0,
            only_late_for: None,
            line: self.line,
            coded: (Duration::ZERO, payload),
            tail: 0,
            also_late: false,
            perishable_only: false,
        };
        let symbol =
            self.outbox.next_symbol(&offer, &mut self.config.classes, self.policy.as_ref())?;
        Some(self.piece(now, &symbol))
    }

    fn piece(&mut self, now: Instant, symbol: &Outsymbol) -> Bytes {
        let name = BlockId { flow: symbol.slice.flow, seq: symbol.slice.seq };
        let header = PieceHeader {
            flow: name.flow,
            seq: name.seq,
            offset: symbol.slice.start,
            fin: symbol.header.fin,
            head: symbol.header.head,
        };
        self.touched.insert(name.flow);
        if header.fin {
            self.outbox.sent_whole(name);
            self.unrepaired.push(name);
        }
        let due = symbol.deadline.map(|deadline| deadline - self.config.one_way_delay);
        self.protect(now, header.encode(&symbol.bytes), Some(name), due)
    }

    fn protect(
        &mut self,
        now: Instant,
        content: Bytes,
        block: Option<BlockId>,
        due: Option<Instant>,
    ) -> Bytes {
        let sid = self.coder.add(now, &content, block, due);
        let datagram = Message::Source { sid, content }.encode();
        self.counters.sources += 1;
        self.counters.source_bytes += datagram.len() as u64;
        datagram
    }

    fn repair(&mut self) -> Option<Bytes> {
        let datagram = Message::Repair(self.coder.next_repair()?).encode();
        self.counters.repairs += 1;
        self.counters.repair_bytes += datagram.len() as u64;
        if !self.coder.is_repairing() {
            self.repaired();
        }
        Some(datagram)
    }

    /// Closes the open groups. Blocks sent whole by now are in them or in earlier ones.
    fn close(&mut self) {
        let Some(account) = self.coder.close(&self.design) else { return };
        self.counters.groups += account.groups;
        self.counters.expected_lost += account.expected_lost;
        let touched = core::mem::take(&mut self.touched);
        self.closing.extend(
            touched.into_iter().map(|flow| (flow, self.outbox.backlog.flows.first_held(flow))),
        );
        if !self.coder.is_repairing() {
            self.repaired();
        }
    }

    /// All repair of the closed groups is sent.
    fn repaired(&mut self) {
        for (flow, done) in self.closing.drain(..) {
            self.told.flows.insert(flow, done);
            self.told.news = true;
        }
        self.counters.blocks_sent += self.unrepaired.len() as u64;
        self.settled.extend(self.unrepaired.drain(..).map(|name| (name, Outcome::Sent)));
    }

    fn take_settled(&mut self) {
        while let Some(settled) = self.outbox.poll_settled() {
            self.counters.blocks_given_up += 1;
            self.settled.push_back(settled);
        }
    }

    /// Whether nothing is left to send but the announcements of the end.
    fn is_drained(&self) -> bool {
        let is_sent = !self.outbox.has_symbol() && self.outbox.abandoned.is_empty();
        self.finish.is_some() && is_sent && !self.coder.is_open() && !self.coder.is_repairing()
    }

    fn announcement_due(&self) -> Option<Instant> {
        let Some(last) = self.told.last else { return Some(Instant::ZERO) };
        if self.is_drained() {
            let first = self.finish.is_some_and(|finish| finish.told == 0);
            return Some(if first { last } else { last + END_GAP });
        }
        let least = ANNOUNCE_LEAST.max(self.design.repair_time(1, 1) * ANNOUNCE_DATAGRAMS);
        Some(last + if self.told.news { least.min(ANNOUNCE) } else { ANNOUNCE })
    }

    fn announce(&mut self, now: Instant) -> Bytes {
        let ended = self.is_drained();
        let known = &self.told.flows;
        // As many flows as fit: each takes at most 16 bytes.
        let fit = (self.design.content().saturating_sub(self.config.name.len() + 32) / 16)
            .clamp(1, FLOWS_TOLD);
        let turn = self.told.turn;
        let order = known.range(turn..).chain(known.range(..turn));
        let flows: Vec<_> = order.take(fit).map(|(flow, done)| (*flow, Seq(*done))).collect();
        let after = flows.last().map_or(FlowId(0), |(flow, _)| FlowId(flow.0.wrapping_add(1)));
        let all_told = flows.len() == known.len();
        self.told.turn = if all_told { FlowId(0) } else { after };
        self.told.last = Some(now);
        self.told.news = false;
        if let Some(finish) = self.finish.as_mut().filter(|_| ended) {
            finish.told += 1;
        }
        let utc = self.config.utc_at_zero + now.since(Instant::ZERO);
        let (name, budget) = (self.config.name.clone(), self.design.budget());
        let datagram =
            Message::Announcement(Announcement { name, utc, budget, ended, flows }).encode();
        self.counters.announcements += 1;
        self.counters.announcement_bytes += datagram.len() as u64;
        datagram
    }
}

/// A full sequence number takes up to 8 bytes, where the scheduler counts 3.
const PLACE: usize = 5;
