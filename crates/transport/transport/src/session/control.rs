//! The control stream of a session, and the state that its messages decide: hello, custody
//! receipts, application messages, refusal.
//!
//! All control messages go over one path, in order. When that path fails, another one takes over:
//! the hello and the receipts are said again there, since they may not have arrived.

use super::attached::Attached;
use super::config::{CloseReason, Event, Opening, SendError};
use super::events::Events;
use super::paths::SessionPaths;
use super::state::{Ended, OwnSpool, SessionState};
use crate::path::PathId;
use crate::wire::{APPLICATION_MAX, Control, RefusalCause, Resume};
use bytes::Bytes;
use skyhaul_units::{ByteCount, FlowId, Seq};
use std::collections::{BTreeMap, VecDeque};

/// Control messages on their way out, and the state of the session.
#[derive(Debug, Default)]
pub struct ControlStream {
    state: SessionState,
    control_path: ControlPath,
    /// This end's hello: the first message on each path that the stream moves to.
    hello: Vec<u8>,
    bytes: VecDeque<u8>,
    /// Receipts to send.
    receipts: BTreeMap<FlowId, Seq>,
    /// Receipts sent: should the path fail, the last of them may not have arrived.
    receipts_sent: BTreeMap<FlowId, Seq>,
}

/// The path that carries the control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ControlPath {
    #[default]
    None,
    /// The path is not up yet.
    Waiting(PathId),
    Up(PathId),
}

/// Control bytes waiting for the path, beyond which receipts wait too.
pub const CONTROL_MAX: usize = 256 << 10;
/// Length and type of a control message.
const CONTROL_HEAD: usize = 5;

impl ControlStream {
    /// Whether both ends have introduced themselves, and the session is not over.
    pub(super) const fn is_open(&self) -> bool {
        self.state.is_open()
    }

    pub(super) const fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Tells the far end that all blocks of its `flow` below `next` are on disk here.
    pub fn receipt(&mut self, flow: FlowId, next: Seq) {
        self.receipts.insert(flow, next);
    }

    /// Sends a message to the far end's application, in order; there it comes as
    /// [`Event::Application`]. What was sent on a path that fails is not sent again: whoever needs
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
        let room = CONTROL_MAX.saturating_sub(self.bytes.len());
        if room < body.len() + CONTROL_HEAD {
            return Err(SendError::Full { room: ByteCount::of(room) });
        }
        self.say(&Control::Application { body });
        Ok(())
    }

    /// Control bytes to send on `path`, in order; tell with [`Self::taken`] how many it took.
    pub fn poll(&mut self, path: PathId) -> &[u8] {
        if self.control_path != ControlPath::Up(path) {
            return &[];
        }
        while self.bytes.len() < CONTROL_MAX
            && let Some((flow, next)) = self.receipts.pop_first()
        {
            self.receipts_sent.insert(flow, next);
            self.bytes.extend(Control::Receipt { flow, next }.encode());
        }
        self.bytes.make_contiguous()
    }

    /// The path took this many of the control bytes.
    pub fn taken(&mut self, len: usize) {
        self.bytes.drain(..len);
    }

    /// The reason to close the paths with, once all control bytes are out.
    pub fn wants_close(&mut self) -> Option<String> {
        if self.bytes.is_empty() { self.state.take_close_reason() } else { None }
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() + self.hello.len()
    }

    /// Introduces this end. Returns from where the far end's flows go on, and the event that the
    /// far end's hello becomes where it came before.
    pub(super) fn open(
        &mut self,
        opening: Opening,
        window: u64,
        version: u16,
    ) -> (Resume, Option<Event>) {
        let Opening { name, spool, custody, flow_base } = opening;
        let own = OwnSpool { spool, custody: custody.clone() };
        let hello = Control::Hello { name, window, flow_base, spool, custody };
        self.hello = hello.encode_in(version);
        self.bytes.extend(&self.hello);
        self.state.open(own)
    }

    /// Ends the session and tells the far end why. The far end closes the path.
    pub(super) fn refuse(&mut self, cause: RefusalCause, reason: &str, events: &mut Events) {
        self.say(&Control::Refuse { cause, reason: reason.to_owned() });
        let ended = match cause {
            // A path that is closed here tells the far end no more than the sentence.
            RefusalCause::Told => self.state.end_and_close(reason.to_owned()),
            // The far end has to learn the cause too, so it closes the path.
            RefusalCause::Replaced => self.state.end(),
        };
        closed(ended, CloseReason::Here(reason.to_owned()), events);
    }

    /// Ends the session: its last path is gone.
    pub(super) fn end(&mut self, reason: CloseReason, events: &mut Events) {
        closed(self.state.end(), reason, events);
    }

    /// The state that the far end's messages change.
    pub(super) const fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }

    fn say(&mut self, message: &Control) {
        self.bytes.extend(message.encode());
    }

    /// The session has a path: it carries the stream where none does.
    pub(super) fn path_added(&mut self, path: PathId) {
        if self.control_path == ControlPath::None {
            self.control_path = ControlPath::Waiting(path);
        }
    }

    /// A path is up.
    pub(super) fn path_up(&mut self, path: PathId) {
        if self.control_path == ControlPath::Waiting(path) {
            self.control_path = ControlPath::Up(path);
        }
    }

    /// The path that carries the stream.
    pub(super) const fn control_path(&self) -> Option<PathId> {
        match self.control_path {
            ControlPath::None => None,
            ControlPath::Waiting(path) | ControlPath::Up(path) => Some(path),
        }
    }

    /// Moves the stream to the first usable path. What went over the one before may not have
    /// arrived, the hello included.
    pub(super) fn fail_over(&mut self, paths: &SessionPaths) {
        let next = paths.control_path();
        self.control_path = match next {
            None => ControlPath::None,
            Some(id) if paths.attached.get(&id).is_some_and(|path| path.payload.is_some()) => {
                ControlPath::Up(id)
            }
            Some(id) => ControlPath::Waiting(id),
        };
        if next.is_some() && !self.is_over() {
            self.bytes.clear();
            self.bytes.extend(&self.hello);
            for (flow, next) in core::mem::take(&mut self.receipts_sent) {
                self.receipts.entry(flow).or_insert(next);
            }
        }
    }

    /// Moves the stream where it waits on a path that brings nothing over, and there is another.
    pub(super) fn leave_dead_path(&mut self, paths: &SessionPaths) {
        let is_dead = |id: PathId| paths.attached.get(&id).is_none_or(Attached::is_stalled);
        if self.control_path().is_some_and(is_dead) && paths.any_usable() {
            self.fail_over(paths);
        }
    }
}

/// Tells the application that the session is over, once.
pub(super) fn closed(ended: Ended, reason: CloseReason, events: &mut Events) {
    if ended == Ended::Now {
        events.push(Event::Closed(reason));
    }
}
