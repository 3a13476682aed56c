//! One session: the blocks of both directions over the paths between two nodes.

mod aftermath;
mod attached;
mod ceiling;
mod config;
mod control;
mod copies;
mod early;
mod events;
mod health;
mod hints;
mod memory;
mod messages;
mod multipath;
mod path_repair;
mod paths;
mod receiver;
mod reports;
mod retransmit_elsewhere;
mod sender;
mod sharing;
mod slacks;
mod state;
mod timer;
mod timers;
mod timetable;
mod turn;
mod waits;

pub use attached::{PathStats, PathStatus};
pub use config::{CloseReason, Event, Opening, SendError, SessionConfig};
pub use control::ControlStream;
pub use hints::Hint;
pub use paths::SessionPaths;
pub use sender::{BlockSender, Supply};
pub use sharing::SessionSharing;
pub(crate) use waits::PathRoom;
pub use waits::{WaitMeter, Waits};

use crate::block::{Block, BlockId, Outcome};
use crate::path::{Estimate, PAYLOAD_MAX, PAYLOAD_MIN, PathEvent, PathId, PathOptions, Token};
use crate::stats::Stats;
use crate::wire::RefusalCause;
use bytes::Bytes;
use messages::Messages;
use multipath::Multipath;
use skyhaul_units::{ByteCount, Instant};
use turn::PathTurn;

/// The blocks of both directions between two nodes. Call [`Session::handle`] with what the paths
/// report, [`Session::handle_timeout`] when [`Session::next_timeout`] is reached, then take events,
/// control bytes and datagrams until there are none; [`crate::drive`] does it for a
/// [`crate::Path`].
///
/// What it holds is bounded whatever the far end does: [`SessionConfig::memory_max`] states the
/// formula, and [`Stats::memory`] what is held now.
#[derive(Debug)]
pub struct Session {
    control: ControlStream,
    multipath: Multipath,
    waits: WaitMeter,
}

impl Session {
    /// A session without a path yet.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            control: ControlStream::default(),
            multipath: Multipath::new(&config),
            waits: WaitMeter::default(),
        }
    }

    /// Introduces this end. Blocks are received from then on.
    pub fn open(&mut self, opening: Opening) {
        let Multipath { paths, sender, receiver, events, .. } = &mut self.multipath;
        sender.flow_base = opening.flow_base;
        let window = receiver.window().as_u64();
        let (resume, greeted) = self.control.open(opening, window, paths.version());
        receiver.open(resume);
        if let Some(event) = greeted {
            events.push(event);
        }
    }

    /// Adds a path, or sets the options of a path that the session has.
    pub fn add_path(&mut self, path: PathId, options: PathOptions) {
        if self.multipath.paths.add(path, options) {
            self.control.path_added(path);
        }
    }

    /// Removes a path. What was in flight there is retransmitted on the others.
    pub fn remove_path(&mut self, path: PathId) {
        let _ = self.multipath.abandon(path, &mut self.control);
    }

    /// Ends the session and tells the far end why, in a sentence for its operator. For
    /// [`RefusalCause::Replaced`] the far end closes the path: it has to learn more than the
    /// sentence, which is all that a path tells that is closed here.
    pub fn refuse(&mut self, cause: RefusalCause, reason: &str) {
        self.control.refuse(cause, reason, &mut self.multipath.events);
    }

    /// Control messages: custody receipts, what the application tells the far end's, and the bytes
    /// for the path that carries them.
    pub const fn control_mut(&mut self) -> &mut ControlStream {
        &mut self.control
    }

    /// The sending half: its queues, class tree and flows.
    pub const fn sender(&self) -> &BlockSender {
        &self.multipath.sender
    }

    /// The sending half, to be told of flows and of the class tree.
    pub const fn sender_mut(&mut self) -> &mut BlockSender {
        &mut self.multipath.sender
    }

    /// The paths, and how they do.
    pub const fn paths(&self) -> &SessionPaths {
        &self.multipath.paths
    }

    /// How long the session waited for what.
    pub const fn waits(&self) -> &WaitMeter {
        &self.waits
    }

    /// Whether both ends have introduced themselves, and the session is not over.
    pub fn is_open(&self) -> bool {
        self.control.is_open()
    }

    /// What [`Session::send`] takes now.
    pub fn room(&self) -> ByteCount {
        if self.is_open() { self.multipath.sender.room() } else { ByteCount::ZERO }
    }

    /// Takes a block for sending, under the next sequence number of its flow. Its outcome comes as
    /// [`Event::Settled`].
    ///
    /// # Errors
    /// See [`SendError`]; the block was not taken.
    pub fn send(&mut self, now: Instant, block: Block) -> Result<BlockId, SendError> {
        if !self.is_open() {
            return Err(SendError::NotOpen);
        }
        let id = self.multipath.sender.send(now, block)?;
        self.multipath.stats.sent.blocks_taken += 1;
        self.multipath.take_settled();
        Ok(id)
    }

    /// Cancels a block, and those that depend on it. Returns whether its outcome was open.
    pub fn cancel(&mut self, id: BlockId) -> bool {
        let was_open = self.multipath.sender.outbox.give_up(id, Outcome::Cancelled);
        self.multipath.take_settled();
        was_open
    }

    /// Returns the memory of a received block to the receive window.
    pub fn release(&mut self, len: usize) {
        self.multipath.receiver.release(len);
    }

    /// Takes the measurements of a path.
    pub fn measured(&mut self, id: PathId, estimate: Estimate) {
        self.multipath.measured(id, estimate, &mut self.control);
    }

    /// The next event for the application: no block before the greeting of the far end that sent
    /// it, and after it whole blocks first.
    pub fn poll(&mut self) -> Option<Event> {
        let Multipath { receiver, events, .. } = &mut self.multipath;
        if events.greeting_waits() {
            return events.pop();
        }
        receiver.pop().map(Event::Block).or_else(|| events.pop())
    }

    /// Whether there may be a symbol to send, FEC repair included, that waits for a path's room
    /// alone.
    pub fn has_symbol(&self) -> bool {
        self.is_open() && self.multipath.has_symbol()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let Multipath { sender, receiver, stats, .. } = &self.multipath;
        let mut stats = *stats;
        stats.sent.buffer = sender.outbox.backlog.flows.held();
        stats.received.blocks_in_flight = receiver.in_flight();
        stats.received.buffer = receiver.held().as_u64();
        stats.received.window = receiver.window().as_u64();
        stats.memory = self.multipath.memory() + self.control.held() as u64;
        stats
    }

    /// Takes an event of a path. A path that the session does not know is added.
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
            PathEvent::Control(bytes) => Messages { control, multipath }.received(path, &bytes),
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
    /// whether it arrived. Call it only when the path has room: the choice is made here, as late as
    /// possible.
    pub fn poll_datagram(&mut self, now: Instant, path: PathId) -> Option<(Token, Bytes)> {
        let Self { control, multipath, .. } = self;
        if let Some(line) = &mut multipath.sender.sharing.line {
            line.begin_turn(path);
        }
        let attached = multipath.paths.attached.get(&path);
        let payload = attached.and_then(|path| path.payload).filter(|_| !control.is_over());
        let next = payload
            .and_then(|payload| PathTurn { now, id: path, payload, multipath }.next(control));
        if let Some((_, datagram)) = &next
            && let Some(path) = multipath.paths.attached.get_mut(&path)
        {
            path.ceiling.spend(now, datagram.len());
        }
        if let Some(line) = &mut multipath.sender.sharing.line {
            match &next {
                Some((_, datagram)) => line.sent(now, path, datagram.len()),
                None => line.end_turn(path),
            }
        }
        next
    }

    /// Takes forecasts of a path; times are of the session's clock. They come into force together:
    /// an outage that is withdrawn and forecast again does not end in between. Returns whether all
    /// were taken: the session has the path, and no more than 64 outages, 64 rates and 64 losses
    /// are forecast of it. Outages that touch become one.
    pub fn hint(&mut self, path: PathId, hints: impl IntoIterator<Item = Hint>) -> bool {
        let Self { control, multipath, .. } = self;
        let Some(path) = multipath.paths.attached.get_mut(&path) else { return false };
        let mut taken = true;
        for hint in hints {
            taken &= path.hints.add(hint);
        }
        multipath.see_hints(multipath.clock, control);
        taken
    }

    /// A path was filled as far as its room, or the blocks, went.
    pub(crate) fn filled(&mut self, now: Instant, path: PathId, room: PathRoom) {
        if let Some(line) = &mut self.multipath.sender.sharing.line
            && room == PathRoom::None
        {
            line.has_no_room(now, path);
        }
        if self.is_open() {
            self.waits.filled(now, room, &self.multipath);
        }
    }
}
