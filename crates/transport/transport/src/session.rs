//! One session: the blocks of both directions over the paths between two nodes.

mod aftermath;
mod attached;
mod config;
mod control;
mod copies;
mod early;
mod events;
mod health;
mod hints;
mod memory;
mod multipath;
mod path_repair;
mod paths;
mod receiver;
mod reports;
mod retransmit_elsewhere;
mod sender;
mod slacks;
mod state;
mod timers;
mod timetable;
mod turn;
mod waits;

pub use attached::{PathStats, PathStatus};
pub use config::{CloseReason, Event, Opening, SendError, SessionConfig};
pub use hints::Hint;
pub use waits::{PathRoom, Waits};

use crate::block::{Block, BlockId, Outcome};
use crate::classes::{ClassId, ClassTree};
use crate::path::{Estimate, PAYLOAD_MAX, PAYLOAD_MIN, PathEvent, PathId, PathOptions, Token};
use crate::schedule::{Candidate, Forecast, PolicyConfig};
use crate::stats::Stats;
use crate::wire::RefusalCause;
use bytes::Bytes;
use control::ControlStream;
use multipath::Multipath;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq};
use waits::Watch;

/// The blocks of both directions between two nodes. Call [`Session::handle`] with what the paths
/// report, [`Session::handle_timeout`] when [`Session::next_timeout`] is reached, then take events,
/// control bytes and datagrams until there are none; [`crate::drive`] does it for a
/// [`crate::Path`].
///
/// What it holds is bounded whatever the far end does: [`SessionConfig::memory_max`] states the
/// formula, and [`Session::memory`] what is held now.
#[derive(Debug)]
pub struct Session {
    control: ControlStream,
    multipath: Multipath,
    watch: Watch,
}

impl Session {
    /// A session without a path yet.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            control: ControlStream::default(),
            multipath: Multipath::new(&config),
            watch: Watch::default(),
        }
    }

    /// Introduces this end. Blocks are received from then on.
    pub fn open(&mut self, opening: Opening) {
        let Multipath { sender, receiver, events, .. } = &mut self.multipath;
        sender.flow_base = opening.flow_base;
        let (resume, greeted) = self.control.open(opening, receiver.window().as_u64());
        receiver.open(resume);
        if let Some(event) = greeted {
            events.push(event);
        }
    }

    /// Gives the session one more path. Whether a path is known already makes no difference.
    pub fn add_path(&mut self, path: PathId, options: PathOptions) {
        if self.multipath.paths.add(path, options) {
            self.control.path_added(path);
        }
    }

    /// Takes a path out of use; what was under way there is sent again on the others.
    pub fn remove_path(&mut self, path: PathId) {
        let _ = self.multipath.abandon(path, &mut self.control);
    }

    /// Ends the session and tells the far end why, in a sentence for its operator.
    pub fn refuse(&mut self, reason: &str) {
        self.control.refuse(RefusalCause::Told, reason, &mut self.multipath.events);
    }

    /// The same, for the far end's node that is not wanted beside another one. It closes the path,
    /// since it has to learn more than the sentence, which is all that a path tells that is closed
    /// here.
    pub fn replace(&mut self, reason: &str) {
        self.control.refuse(RefusalCause::Replaced, reason, &mut self.multipath.events);
    }

    /// Whether both ends have introduced themselves, and the session is not over.
    pub fn is_open(&self) -> bool {
        self.control.is_open()
    }

    /// What [`Session::send`] takes now.
    pub fn room(&self) -> ByteCount {
        if self.is_open() { self.multipath.sender.room() } else { ByteCount::ZERO }
    }

    /// Bytes of a class and priority that wait for a path's room.
    pub fn waiting(&self, class: ClassId, priority: u8) -> ByteCount {
        self.multipath.sender.waiting(class, priority)
    }

    /// Whether the application has more to hand over than it did, as soon as less waits.
    pub const fn more_follows(&mut self, more: bool) {
        self.multipath.sender.more_follows(more);
    }

    /// Begins a flow at a place other than 0: what is below is in the far end's custody.
    pub fn start_flow(&mut self, flow: FlowId, place: Seq) {
        self.multipath.sender.start_flow(flow, place);
    }

    /// The place that the next block of a flow will have.
    pub fn next_place(&self, flow: FlowId) -> Seq {
        self.multipath.sender.next_place(flow)
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
        let id = self.multipath.sender.send(now, block)?;
        self.multipath.stats.blocks_taken += 1;
        self.multipath.take_settled();
        Ok(id)
    }

    /// Takes a block back, and what depends on it. Whether it was still to be sent or under way.
    pub fn cancel(&mut self, id: BlockId) -> bool {
        let was_open = self.multipath.sender.outbox.give_up(id, Outcome::Cancelled);
        self.multipath.take_settled();
        was_open
    }

    /// Lets a flow go on one path only, or on all again.
    pub fn pin(&mut self, flow: FlowId, path: Option<PathId>) {
        self.multipath.sender.pin(flow, path);
    }

    /// Replaces the class tree and the policy.
    pub fn share(&mut self, classes: ClassTree, policy: PolicyConfig) {
        self.multipath.sender.share(classes, policy);
    }

    /// The class tree, for names and counters.
    pub const fn classes(&self) -> &ClassTree {
        self.multipath.sender.classes()
    }

    /// Gives back a received block's memory to flow control.
    pub fn release(&mut self, len: usize) {
        self.multipath.receiver.release(len);
    }

    /// Tells the far end that all blocks of its `flow` below `next` are on disk here.
    pub fn receipt(&mut self, flow: FlowId, next: Seq) {
        self.control.receipt(flow, next);
    }

    /// Sends a message to the far end's application, in order.
    ///
    /// # Errors
    /// [`SendError::NotOpen`], [`SendError::TooLong`], [`SendError::Full`]; it was not taken.
    pub fn tell(&mut self, body: Bytes) -> Result<(), SendError> {
        self.control.tell(body)
    }

    /// What a path measures now.
    pub fn measured(&mut self, id: PathId, estimate: Estimate) {
        self.multipath.measured(id, estimate, &mut self.control);
    }

    /// The next event for the application.
    pub fn poll(&mut self) -> Option<Event> {
        let Multipath { receiver, events, .. } = &mut self.multipath;
        receiver.pop().map(Event::Block).or_else(|| events.pop())
    }

    /// The reason to close the paths with, once all control bytes are out.
    pub fn wants_close(&mut self) -> Option<String> {
        self.control.wants_close()
    }

    /// Whether there may be a symbol to send, FEC repair included, that waits for a path's room
    /// alone.
    pub fn has_symbol(&self) -> bool {
        self.is_open() && self.multipath.has_symbol()
    }

    /// Whether blocks wait for the far end to take more.
    pub fn is_held_back(&self) -> bool {
        self.is_open() && self.multipath.sender.outbox.is_held_back()
    }

    /// The shortest round trip of its paths; zero before the first was measured.
    pub fn rtt(&self) -> Duration {
        self.multipath.paths.rtt()
    }

    /// The paths and how they do.
    pub fn paths(&self) -> impl Iterator<Item = (PathId, PathStatus)> + '_ {
        self.multipath.paths.iter()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let Multipath { sender, receiver, stats, .. } = &self.multipath;
        let blocks_in_flight = receiver.in_flight();
        Stats { blocks_in_flight, send_buffer: sender.outbox.backlog.flows.held(), ..*stats }
    }

    /// What a path reported. A path that the session does not know is added.
    pub fn handle(&mut self, now: Instant, path: PathId, event: PathEvent) {
        if self.control.is_over() {
            return;
        }
        let Self { control, multipath, .. } = self;
        match event {
            PathEvent::Up { payload } => {
                if payload < PAYLOAD_MIN {
                    return;
                }
                if !self.multipath.paths.attached.contains_key(&path) {
                    self.add_path(path, PathOptions::default());
                }
                self.multipath.carries(path, payload.min(PAYLOAD_MAX), &mut self.control);
            }
            PathEvent::Datagram(bytes) => multipath.datagram(now, path, &bytes, control),
            PathEvent::Control(bytes) => control.received(path, &bytes, multipath),
            PathEvent::Acked(token) => multipath.acked(now, path, token, control),
            PathEvent::Lost(token) => multipath.path_lost(now, path, token),
            PathEvent::Down(reason) => {
                let was_known = multipath.abandon(path, control);
                if was_known && multipath.paths.attached.is_empty() {
                    control.end(CloseReason::Path(reason), &mut multipath.events);
                } else if was_known {
                    multipath.events.push(Event::PathDown(path, reason));
                }
            }
        }
        self.multipath.take_settled();
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.control.is_over() {
            self.multipath.see_time_outs(now, &mut self.control);
            self.multipath.take_settled();
        }
    }

    /// When [`Session::handle_timeout`] is due, or a datagram will be.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.control.is_over() {
            return None;
        }
        self.multipath.next_timer().map(|(_, due)| due)
    }

    /// The next datagram to send on `path` at `now`, with the token under which the path reports
    /// its fate. Call it only when the path has room: what to send is decided here, as late as
    /// that.
    pub fn poll_datagram(&mut self, now: Instant, path: PathId) -> Option<(Token, Bytes)> {
        if self.control.is_over() {
            return None;
        }
        self.multipath.poll_datagram(now, path, &self.control)
    }

    /// Control bytes to send on `path`, in order; tell with [`Session::control_taken`] how many it
    /// took.
    pub fn poll_control(&mut self, path: PathId) -> &[u8] {
        self.control.poll(path)
    }

    /// The path took this many of the control bytes.
    pub fn control_taken(&mut self, len: usize) {
        self.control.taken(len);
    }

    /// The paths in the order in which they should be filled.
    pub fn path_order(&self) -> Vec<PathId> {
        self.multipath.paths.fill_order()
    }

    /// Takes in what is known of a path beforehand; times are of the session's clock. Whether the
    /// path is there, and no more than 64 outages and as many rates are foretold of it. Outages
    /// that touch become one.
    pub fn hint(&mut self, path: PathId, hint: Hint) -> bool {
        let Self { control, multipath, .. } = self;
        let path = multipath.paths.attached.get_mut(&path);
        let taken = path.is_some_and(|path| path.hints.add(hint));
        if taken {
            multipath.see_hints(multipath.clock, control);
        }
        taken
    }

    /// For every flow with something to send: on time, or late by how much.
    pub fn forecasts(&mut self, now: Instant) -> Vec<Forecast> {
        self.forecasts_with(now, &[])
    }

    /// The same with what lies `behind` the session, in a spool.
    pub fn forecasts_with(
        &mut self,
        now: Instant,
        behind: &[(FlowId, Candidate)],
    ) -> Vec<Forecast> {
        let Multipath { sender, paths, .. } = &mut self.multipath;
        sender.forecasts(now, paths, behind)
    }

    /// Bytes of blocks, datagrams and book-keeping held now. It is never above
    /// [`SessionConfig::memory_max`].
    pub fn memory(&self) -> ByteCount {
        ByteCount::new(self.multipath.memory() + self.control.held() as u64)
    }

    /// What the far end may have under way and undelivered here, as it said.
    pub const fn peer_window(&self) -> ByteCount {
        self.multipath.sender.peer_window()
    }

    /// What blocks hold of this end's window.
    pub fn held(&self) -> ByteCount {
        self.multipath.receiver.held()
    }

    /// This end's window.
    pub const fn receive_window(&self) -> ByteCount {
        self.multipath.receiver.window()
    }

    /// How long this session waited for what, up to the last time its paths were filled.
    pub const fn waits(&self) -> Waits {
        self.watch.waits()
    }

    /// The same up to `now`.
    pub fn waits_until(&self, now: Instant) -> Waits {
        self.watch.waits_until(now)
    }

    /// A path was filled as far as it went.
    pub fn filled(&mut self, now: Instant, room: PathRoom) {
        if self.is_open() {
            self.watch.filled(now, room, &self.multipath);
        }
    }
}
