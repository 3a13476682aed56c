//! One session: the blocks of both directions over the paths between two nodes.

mod aftermath;
mod attached;
mod config;
mod copies;
mod early;
mod health;
mod hints;
mod incoming;
mod memory;
mod outgoing;
mod retransmit_elsewhere;
mod slacks;
mod spools;
mod timers;
mod waits;

pub use attached::{PathStats, PathStatus};
pub use config::{CloseReason, Event, Opening, SendError, SessionConfig};
pub use hints::Hint;
pub use waits::Waits;

use crate::block::{Block, BlockId, MAX_BLOCK, Outcome, cost};
use crate::classes::{ClassId, ClassTree};
use crate::path::{DownReason, Estimate, PathId, PathOptions};
use crate::reassembly::Inbox;
use crate::schedule::{LineEstimate, Policy, PolicyConfig};
use crate::send::Outbox;
use crate::stats::Stats;
use crate::wire::{APPLICATION_MAX, Control, Recovered, RefusalCause};
use attached::Attached;
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate, Seq};
use std::collections::{BTreeMap, VecDeque};

/// The blocks of both directions between two nodes. Call [`Session::handle`] with what the paths
/// report,
/// [`Session::handle_timeout`] when [`Session::next_timeout`] is reached, then take events, control
/// bytes and datagrams until there are none; [`crate::drive`] does it for a [`crate::Path`].
///
/// What it holds is bounded whatever the far end does: [`SessionConfig::memory_max`] states the
/// formula, and
/// [`Session::memory`] what is held now.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    outbox: Outbox,
    inbox: Option<Inbox>,
    paths: BTreeMap<PathId, Attached>,
    tree: ClassTree,
    policy: Box<dyn Policy>,
    greeted: bool,
    closed: bool,
    control: ControlOut,
    events: VecDeque<Event>,
    /// Bytes that the far end's application said and ours has not taken yet, each message with
    /// [`HEARD`].
    heard: usize,
    wanted_close: Option<String>,
    more_follows: bool,
    reports: Reports,
    /// Protected datagrams that repair stood for here, and how many reports more are to say so.
    recovered: VecDeque<(Recovered, u8)>,
    early: early::Early,
    rerouted: retransmit_elsewhere::Rerouted,
    aftermath: aftermath::Aftermath,
    allowance: copies::Allowance,
    peer_window: u64,
    spools: spools::Spools,
    /// From where the far end's symbols, and ours, count flows.
    flow_bases: (FlowId, FlowId),
    next_probe: Instant,
    /// When time-outs were last seen to.
    clock: Instant,
    stats: Stats,
    watch: waits::Watch,
}

/// Control messages on their way out: all over one path, in order.
#[derive(Debug, Default)]
struct ControlOut {
    path: Option<PathId>,
    /// This end's greeting: the first thing said on each path that control messages change to.
    greeting: Vec<u8>,
    bytes: VecDeque<u8>,
    /// Receipts to send.
    receipts: BTreeMap<FlowId, Seq>,
    /// Receipts sent: should the path fail, the last of them may not have arrived.
    given: BTreeMap<FlowId, Seq>,
}

#[derive(Debug, Default)]
struct Reports {
    sent: u32,
    last_sent: Option<Instant>,
    told_limit: u64,
    newest_seen: Option<u32>,
    /// The last one, for the path that returns second best: should the best one be dead, nobody
    /// here knows yet.
    copy: Option<(PathId, Bytes)>,
}

/// Reports with news go out this often: 8 % of a 160 ms round trip, and 50 small datagrams a
/// second.
const REPORT_NEWS: Duration = Duration::from_millis(20);
/// Reports while blocks wait for symbols, without other news.
const REPORT_WAITING: Duration = Duration::from_millis(200);
/// How often blocks are looked at that the path claims and no report confirms.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// What the far end's application says and ours does not take is kept up to this; what comes beyond
/// is dropped, as if a path had failed.
const HEARD_MAX: usize = 1 << 20;
/// Length and type of a control message.
const CONTROL_HEAD: usize = 5;
/// What keeping one of them costs beside its bytes.
const HEARD: usize = 128;
/// Paths of one session: addresses of two nodes, and lanes on them.
const PATHS_MAX: usize = 64;

impl Session {
    /// A session without a path yet.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            outbox: Outbox::default(),
            inbox: None,
            paths: BTreeMap::new(),
            tree: config.classes.clone(),
            policy: config.policy.build(),
            greeted: false,
            closed: false,
            control: ControlOut::default(),
            events: VecDeque::new(),
            heard: 0,
            wanted_close: None,
            more_follows: false,
            reports: Reports::default(),
            recovered: VecDeque::new(),
            early: early::Early::default(),
            rerouted: retransmit_elsewhere::Rerouted::default(),
            aftermath: aftermath::Aftermath::default(),
            allowance: copies::Allowance::default(),
            peer_window: 0,
            spools: spools::Spools::default(),
            flow_bases: (FlowId(0), FlowId(0)),
            next_probe: Instant::ZERO,
            clock: Instant::ZERO,
            stats: Stats::default(),
            watch: waits::Watch::default(),
            config,
        }
    }

    /// Introduces this end. Blocks are received from then on.
    pub fn open(&mut self, opening: Opening) {
        let window = self.config.receive_window.as_u64();
        let Opening { name, spool, custody, flow_base } = opening;
        let resume = self.spools.opened(spool, &custody);
        let hello = Control::Hello { name, window, flow_base, spool, custody };
        self.control.greeting = hello.encode();
        self.control.bytes.extend(&self.control.greeting);
        self.inbox = Some(Inbox::new(window, resume));
        self.reports.told_limit = window;
        self.flow_bases.1 = flow_base;
        self.events.extend(self.spools.told_early());
    }

    /// Gives the session one more path. Whether a path is known already makes no difference.
    pub fn add_path(&mut self, path: PathId, options: PathOptions) {
        if self.paths.len() < PATHS_MAX {
            let goal = self.config.repair.unwrap_or_default();
            self.paths.entry(path).or_insert_with(|| Attached::new(options, goal)).options =
                options;
            self.control.path.get_or_insert(path);
        }
    }

    /// Takes a path out of use; what was under way there is sent again on the others.
    pub fn remove_path(&mut self, path: PathId) {
        let _ = self.abandon(path);
    }

    /// Ends the session and tells the far end why, in a sentence for its operator.
    pub fn refuse(&mut self, reason: &str) {
        self.end_for(RefusalCause::Told, reason);
        self.wanted_close = Some(reason.to_owned());
    }

    /// The same, for the far end's node that is not wanted beside another one. It closes the path,
    /// since it has to learn more than the sentence, which is all that a path tells that is closed
    /// here.
    pub fn replace(&mut self, reason: &str) {
        self.end_for(RefusalCause::Replaced, reason);
    }

    fn end_for(&mut self, cause: RefusalCause, reason: &str) {
        self.control.bytes.extend(Control::Refuse { cause, reason: reason.to_owned() }.encode());
        self.finish(CloseReason::Here(reason.to_owned()));
    }

    /// Whether both ends have introduced themselves and a path stands.
    pub fn is_open(&self) -> bool {
        self.greeted && self.inbox.is_some() && !self.closed
    }

    /// What [`Session::send`] takes now.
    pub fn room(&self) -> ByteCount {
        if self.is_open() {
            self.config.send_buffer - ByteCount::new(self.outbox.backlog.flows.held())
        } else {
            ByteCount::ZERO
        }
    }

    /// Bytes of a class and priority that wait for a path's room. Who hands over no more than keeps
    /// the paths busy decides late what goes next, and lets urgent blocks find a short queue.
    pub fn waiting(&self, class: ClassId, priority: u8) -> ByteCount {
        ByteCount::new(self.outbox.backlog.waiting(class, priority))
    }

    /// Whether the application has more to hand over than it did, as soon as less waits. While it
    /// has, the little that waits is not the end of a transfer, which would be coded.
    pub const fn more_follows(&mut self, more: bool) {
        self.more_follows = more;
    }

    /// Begins a flow at a place other than 0: what is below is in the far end's custody.
    pub fn start_flow(&mut self, flow: FlowId, place: Seq) {
        self.outbox.backlog.flows.start(flow, place);
    }

    /// The place that the next block of a flow will have.
    pub fn next_place(&self, flow: FlowId) -> Seq {
        self.outbox.backlog.flows.next_seq(flow)
    }

    /// Takes a block for sending, at the next place of its flow. Its fate comes as
    /// [`Event::Settled`].
    ///
    /// # Errors
    /// See [`SendError`]; the block was not taken.
    pub fn send(&mut self, now: Instant, block: Block) -> Result<BlockId, SendError> {
        if !self.is_open() {
            return Err(SendError::NotOpen);
        }
        let window_max = usize::try_from(self.peer_window)
            .unwrap_or(usize::MAX)
            .saturating_sub(cost(0) as usize);
        let max = MAX_BLOCK.min(window_max);
        self.outbox.backlog.flows.admits(&block, max, self.room())?;
        self.stats.blocks_taken += 1;
        let id = self.outbox.push(now, block);
        self.take_settled();
        Ok(id)
    }

    /// Takes a block back, and what depends on it. Whether it was still to be sent or under way.
    pub fn cancel(&mut self, id: BlockId) -> bool {
        let was_open = self.outbox.give_up(id, Outcome::Cancelled);
        self.take_settled();
        was_open
    }

    /// Lets a flow go on one path only, or on all again. A path that is gone or does not answer
    /// holds the flow back.
    pub fn pin(&mut self, flow: FlowId, path: Option<PathId>) {
        self.outbox.backlog.flows.pin(flow, path);
    }

    /// Shares the line otherwise from now on. Blocks that wait go on in the class of the same name,
    /// or in the default one.
    pub fn share(&mut self, classes: ClassTree, policy: PolicyConfig) {
        let default = classes.default_leaf();
        let now = self.tree.leaves().map(|(_, name)| classes.find(name).unwrap_or(default));
        let now: Vec<ClassId> = now.collect();
        self.outbox
            .backlog
            .reclass(|class| now.get(usize::from(class.0)).copied().unwrap_or(default));
        self.tree = classes;
        self.policy = policy.build();
    }

    /// The class tree, for names and counters.
    pub const fn classes(&self) -> &ClassTree {
        &self.tree
    }

    /// Gives back a received block's memory to flow control.
    pub fn release(&mut self, len: usize) {
        if let Some(inbox) = &mut self.inbox {
            inbox.release(len);
        }
    }

    /// Tells the far end that all blocks of its `flow` below `next` are on disk here.
    pub fn receipt(&mut self, flow: FlowId, next: Seq) {
        self.control.receipts.insert(flow, next);
    }

    /// Says something to the far end's application, in order; there it comes as
    /// [`Event::Application`]. What was said on a path that fails is not said again: whoever needs
    /// an answer repeats the question.
    ///
    /// # Errors
    /// [`SendError::NotOpen`], [`SendError::TooLong`]; [`SendError::Full`] where control bytes wait
    /// for the line. It was not taken.
    pub fn tell(&mut self, body: Bytes) -> Result<(), SendError> {
        if !self.is_open() {
            return Err(SendError::NotOpen);
        }
        if body.len() > APPLICATION_MAX {
            return Err(SendError::TooLong { len: body.len() });
        }
        let room = outgoing::CONTROL_MAX.saturating_sub(self.control.bytes.len());
        if room < body.len() + CONTROL_HEAD {
            return Err(SendError::Full { room: ByteCount::of(room) });
        }
        self.control.bytes.extend(Control::Application { body }.encode());
        Ok(())
    }

    /// What a path measures now.
    pub fn measured(&mut self, id: PathId, estimate: Estimate) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        path.estimate = estimate;
        path.inflight.hear(estimate.rtt);
        if path.health.is_silent_since().is_some_and(|since| estimate.answered > since) {
            self.back(id);
        }
    }

    /// The next event for the application.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(block) = self.inbox.as_mut().and_then(Inbox::pop) {
            return Some(Event::Block(block));
        }
        let event = self.events.pop_front();
        if let Some(Event::Application { body }) = &event {
            self.heard -= body.len() + HEARD;
        }
        event
    }

    /// The reason to close the paths with, once all control bytes are out.
    pub fn wants_close(&mut self) -> Option<String> {
        if self.control.bytes.is_empty() { self.wanted_close.take() } else { None }
    }

    /// Whether there may be a symbol to send, repair included, that waits for a path's room alone.
    pub fn has_symbol(&self) -> bool {
        let is_silent = |path: &Attached| path.health.is_silent_since().is_some();
        let usable = || self.paths.values().any(Attached::is_usable);
        let perishable =
            || self.paths.values().any(is_silent) && self.outbox.backlog.has_perishable();
        let any = || self.outbox.has_symbol() || self.rerouted.has_any() || self.has_repair();
        self.is_open() && any() && (usable() || perishable())
    }

    /// Whether blocks wait for the far end to take more.
    pub fn is_held_back(&self) -> bool {
        self.is_open() && self.outbox.is_held_back()
    }

    /// The shortest round trip of its paths as symbols and their acknowledgements see it; zero
    /// before the first.
    pub fn rtt(&self) -> Duration {
        let measured =
            self.paths.values().map(|path| path.inflight.rtt()).filter(|rtt| *rtt > Duration::ZERO);
        measured.min().unwrap_or(Duration::ZERO)
    }

    /// The paths and how they do.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, PathStatus)> + '_ {
        self.paths.iter().map(|(id, path)| (*id, path.status()))
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let blocks_in_flight = self.inbox.as_ref().map_or(0, Inbox::in_flight);
        Stats { blocks_in_flight, send_buffer: self.outbox.backlog.flows.held(), ..self.stats }
    }

    /// All usable paths as one: their rates together, the shortest delay.
    fn line(&self) -> LineEstimate {
        let usable = || self.paths.values().filter(|path| path.is_usable()).map(Attached::line);
        let rate = Rate::from_bps(usable().map(|line| line.rate.as_bps()).sum());
        let one_way_delay = usable().map(|line| line.one_way_delay).min().unwrap_or(Duration::ZERO);
        LineEstimate { rate, one_way_delay }
    }

    /// How long after a path's claim a report must agree with it: the claim and the report cross on
    /// the way.
    fn settle(&self) -> Duration {
        let slowest = self.paths.values().map(|path| path.inflight.rtt().max(path.rtt())).max();
        let slowest = slowest.unwrap_or(Duration::ZERO);
        slowest * 2 + REPORT_WAITING
    }

    /// Takes a path out; whether there was one.
    fn abandon(&mut self, id: PathId) -> bool {
        let Some(mut path) = self.paths.remove(&id) else { return false };
        for sent in path.inflight.judge_all() {
            self.lost(sent);
        }
        self.outbox.duplicates.drop_path(id);
        if self.control.path == Some(id) {
            self.control.path = None;
            self.choose_control_path();
        }
        true
    }

    /// Control messages go over the first usable path; what went over the one before may not have
    /// arrived, the greeting included.
    fn choose_control_path(&mut self) {
        let usable = self
            .paths
            .iter()
            .filter(|(_, path)| path.is_usable())
            .min_by_key(|(_, path)| path.rtt());
        let next = usable.map(|(id, _)| *id).or_else(|| self.paths.keys().next().copied());
        if next.is_some() && !self.closed {
            self.control.bytes.clear();
            self.control.bytes.extend(&self.control.greeting);
            let given = core::mem::take(&mut self.control.given);
            for (flow, next) in given {
                self.control.receipts.entry(flow).or_insert(next);
            }
        }
        self.control.path = next;
    }

    fn take_settled(&mut self) {
        while let Some((id, outcome)) = self.outbox.poll_settled() {
            match outcome {
                Outcome::Delivered => {}
                Outcome::Expired => self.stats.blocks_given_up += 1,
                Outcome::Cancelled => self.stats.blocks_cancelled += 1,
                // Only said where there is no return path.
                Outcome::Sent => {}
            }
            self.events.push_back(Event::Settled { id, outcome });
        }
    }

    fn path_down(&mut self, id: PathId, reason: DownReason) {
        if !self.abandon(id) {
            return;
        }
        if self.paths.is_empty() {
            self.finish(CloseReason::Path(reason));
        } else {
            self.events.push_back(Event::PathDown(id, reason));
        }
    }

    fn finish(&mut self, reason: CloseReason) {
        if !self.closed {
            self.closed = true;
            self.events.push_back(Event::Closed(reason));
        }
    }
}
