//! One stream's two directions: how far each has come, and how far it may go.

use super::{Event, INITIAL_CREDIT, PeerError, StreamId};
use crate::carriage::Way;
use crate::wire::Message;
use skyhaul_units::Instant;
use std::collections::VecDeque;

/// A stream.
///
/// ```text
///  opened here:  Asked ── accepted ──► Open ── both directions ended ──► its flow is used again
///                  └── refused, or reset ──────────────────────────────► the same
///  opened there: Asked ── accept ────► Open ── both directions ended ──► gone when all was taken
///                  └── refuse, or reset ───────────────────────────────► gone
/// ```
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub way: Way,
    pub carries: Carries,
    pub opener: Opener,
    pub accepted: bool,
    /// Reset at either end: what comes is dropped.
    pub aborted: bool,
    /// Its flow may have another stream already.
    pub gave_flow_back: bool,
    pub send: Sending,
    pub recv: Receiving,
}

/// What a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// Bytes in order, within windows.
    Bytes,
    /// Datagrams, without windows: one for which there is no room is dropped.
    Datagrams,
}

/// Which end has opened a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Here,
    There,
}

/// What the far end is told in return for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    Nothing,
    Reset,
}

/// Bytes on their way out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sending {
    pub sent: u64,
    pub limit: u64,
    pub ended: bool,
}

/// Bytes on their way in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receiving {
    pub received: u64,
    pub taken: u64,
    pub limit: u64,
    pub window: u64,
    pub ended: bool,
    /// When the limit was last raised.
    pub raised: Instant,
}

impl Receiving {
    const fn new(now: Instant, limit: u64, window: u64) -> Self {
        Self { received: 0, taken: 0, limit, window, ended: false, raised: now }
    }

    /// The application has taken `len` bytes more. Returns whether half of the window is used, so
    /// that the far end needs a new limit.
    pub fn taken(&mut self, len: u64) -> bool {
        self.taken = (self.taken + len).min(self.received);
        !self.ended && self.limit - self.taken <= self.window / 2
    }

    /// Raises the limit to a window's length beyond what was taken.
    pub const fn raise(&mut self, now: Instant) {
        self.limit = self.taken + self.window;
        self.raised = now;
    }
}

impl Stream {
    /// A stream that this end asks for, with a window of so many bytes for what comes.
    pub fn asked_for(now: Instant, way: Way, carries: Carries, window: u64) -> Self {
        let limit = if carries == Carries::Bytes { INITIAL_CREDIT } else { 0 };
        let send = Sending { limit, ..Sending::default() };
        let recv = Receiving::new(now, window, window);
        Self::new(Opener::Here, way, carries, send, recv)
    }

    /// A stream that the far end asks for, with a window of so many bytes there.
    pub fn offered(now: Instant, way: Way, carries: Carries, window: u64) -> Self {
        let limit = if carries == Carries::Bytes { INITIAL_CREDIT } else { 0 };
        let send = Sending { limit: window, ..Sending::default() };
        let recv = Receiving::new(now, limit, 0);
        Self::new(Opener::There, way, carries, send, recv)
    }

    const fn new(
        opener: Opener,
        way: Way,
        carries: Carries,
        send: Sending,
        recv: Receiving,
    ) -> Self {
        let (accepted, aborted, gave_flow_back) = (false, false, false);
        Self { way, carries, opener, accepted, aborted, gave_flow_back, send, recv }
    }

    /// Whether the far end waits to be told if this end has connected.
    pub fn is_asked(&self) -> bool {
        self.opener == Opener::There && !self.accepted
    }

    /// This end has connected, and takes a window of so many bytes. Returns the limit for the far
    /// end.
    pub fn accept(&mut self, now: Instant, window: u64) -> u64 {
        self.accepted = true;
        self.recv.window = window;
        self.recv.limit = self.recv.limit.max(self.recv.taken + window);
        self.recv.raised = now;
        self.recv.limit
    }

    /// Whether a datagram that comes now is handed over.
    pub fn takes_datagrams(&self) -> bool {
        self.carries == Carries::Datagrams && !self.aborted && !self.recv.ended
    }

    /// Takes a message of the far end. What becomes known is added to `events`.
    pub fn receive(
        &mut self,
        now: Instant,
        id: StreamId,
        message: Message,
        events: &mut VecDeque<Event>,
    ) -> Result<Return, PeerError> {
        if self.recv.ended && !matches!(message, Message::Reset) {
            return Err(PeerError::OutOfPlace(id.number));
        }
        let awaits_answer = self.opener == Opener::Here && !self.accepted;
        let was_aborted = self.aborted;
        let mut answer = Return::Nothing;
        let event = match message {
            Message::Accepted { window } if awaits_answer => {
                self.accepted = true;
                self.recv.raised = now;
                if !was_aborted {
                    events.push_back(Event::Accepted(id));
                    events.extend(self.raise(window.into()).then_some(Event::Credit(id)));
                }
                return Ok(answer);
            }
            Message::Refused { reason, sentence } if awaits_answer => {
                self.end();
                Event::Refused { id, reason, sentence }
            }
            Message::Data(bytes) if !awaits_answer => {
                self.recv.received += bytes.len() as u64;
                if self.recv.received > self.recv.limit {
                    return Err(PeerError::OverWindow(id.number));
                }
                Event::Data(id, bytes)
            }
            Message::Finish if !awaits_answer => {
                self.recv.ended = true;
                Event::Finished(id)
            }
            Message::Reset => {
                if !self.send.ended {
                    answer = Return::Reset;
                }
                self.end();
                Event::Reset(id)
            }
            _ => return Err(PeerError::OutOfPlace(id.number)),
        };
        if !was_aborted {
            events.push_back(event);
        }
        Ok(answer)
    }

    /// Raises how much may be sent in all. Returns whether something may be sent, where nothing
    /// could be.
    pub fn raise(&mut self, limit: u64) -> bool {
        let was_stopped = self.credit() == 0;
        self.send.limit = self.send.limit.max(limit);
        was_stopped && self.credit() > 0
    }

    /// Both directions end, and what is left of the stream is worth nothing.
    pub const fn end(&mut self) {
        self.aborted = true;
        self.send.ended = true;
        self.recv.ended = true;
    }

    /// Neither end sends anything more.
    pub const fn is_over(&self) -> bool {
        self.send.ended && self.recv.ended
    }

    /// Nothing of it is left here either.
    pub const fn is_gone(&self) -> bool {
        self.is_over() && (self.aborted || self.recv.taken == self.recv.received)
    }

    pub const fn credit(&self) -> u64 {
        if self.send.ended { 0 } else { self.send.limit.saturating_sub(self.send.sent) }
    }
}
