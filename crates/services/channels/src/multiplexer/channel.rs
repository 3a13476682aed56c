//! One channel's two directions: how far each has come, and how far it may go.

use super::wire::ChannelContent;
use super::{ChannelEvent, ChannelKey, ChannelPeerError, WindowRules};
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// A channel.
///
/// ```text
///  opened here:  Asked ── accepted ──► Open ── both directions ended ──► its slot is used again
///                  └── reset at either end ────────────────────────────► the same
///  opened there: Asked ── accept ────► Open ── both directions ended ──► gone when all was taken
///                  └── reset at either end ────────────────────────────► gone
/// ```
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub carries: Carries,
    pub opener: Opener,
    pub accepted: bool,
    /// The open message has come, or this end has sent it. Where a channel has several flows, a
    /// block on another one may be there first.
    pub announced: bool,
    /// Reset at either end: what comes is dropped.
    pub aborted: bool,
    /// Its slot may have another channel already.
    pub gave_slot_back: bool,
    /// What the largest message costs: with less credit, the sender may have to wait.
    largest: u64,
    pub send: Sending,
    pub recv: Receiving,
}

/// What a channel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Data within windows; expendable bytes too.
    Data,
    /// Expendable bytes only, which have no windows.
    Expendable,
}

/// Which end has opened a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Here,
    There,
}

/// In which order messages of a channel arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// As they were sent: the channel has one flow.
    InOrder,
    /// In any order: it has several.
    AnyOrder,
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

/// A channel that uses half of its window within so many round trips may be held back by it: the
/// usual flow needs a few, and a symbol that is lost several times in a row makes the rest wait for
/// as many.
const HELD_BACK: u64 = 8;

impl Receiving {
    const fn new(now: Instant, limit: u64, window: u64) -> Self {
        Self { received: 0, taken: 0, limit, window, ended: false, raised: now }
    }

    /// The application has taken `cost` bytes more. Returns whether the far end needs a new limit:
    /// half of the window is used, or the rest has no room for a message of the `largest` size, for
    /// which the far end would wait for ever.
    fn taken(&mut self, cost: u64, largest: u64) -> bool {
        self.taken = (self.taken + cost).min(self.received);
        !self.ended && (self.left() <= self.window / 2 || self.left() < largest)
    }

    /// What the far end may send beyond what was taken.
    const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    /// Whether the window may hold the channel back, with a round trip of `rtt`: at the speed at
    /// which it was used since the limit was raised, half of it lasts less than [`HELD_BACK`] round
    /// trips.
    pub fn is_held_back(&self, now: Instant, rtt: Duration) -> bool {
        let used = u128::from(self.window.saturating_sub(self.left()));
        let half_lasts = u128::from(now.since(self.raised).as_nanos()) * u128::from(self.window);
        half_lasts < 2 * used * u128::from((rtt * HELD_BACK).as_nanos())
    }

    /// Raises the limit to a window's length beyond what was taken.
    pub const fn raise(&mut self, now: Instant) {
        self.limit = self.taken + self.window;
        self.raised = now;
    }
}

impl Channel {
    /// A channel that this end asks for, with a window of so many bytes for what comes.
    pub fn asked_for(now: Instant, carries: Carries, window: u64, rules: &WindowRules) -> Self {
        let send = Sending { limit: rules.first_credit(carries), ..Sending::default() };
        let recv = Receiving::new(now, window, window);
        Self { announced: true, ..Self::new(Opener::Here, carries, rules, send, recv) }
    }

    /// A channel that the far end asks for, with its first credit for this end.
    pub fn offered(now: Instant, carries: Carries, rules: &WindowRules) -> Self {
        let credit = rules.first_credit(carries);
        let send = Sending { limit: credit, ..Sending::default() };
        Self::new(Opener::There, carries, rules, send, Receiving::new(now, credit, 0))
    }

    const fn new(
        opener: Opener,
        carries: Carries,
        rules: &WindowRules,
        send: Sending,
        recv: Receiving,
    ) -> Self {
        let (accepted, announced, aborted, gave_slot_back) = (false, false, false, false);
        let largest = rules.largest.as_u64();
        Self { carries, opener, accepted, announced, aborted, gave_slot_back, largest, send, recv }
    }

    /// Whether the far end waits for this one to accept.
    pub fn is_asked(&self) -> bool {
        self.opener == Opener::There && !self.accepted && !self.aborted
    }

    /// The application has taken `cost` bytes more. Returns whether the far end needs a new limit.
    /// A channel of the far end's that was never accepted has its first credit and no more.
    pub fn taken(&mut self, cost: u64) -> bool {
        self.recv.taken(cost, self.largest) && (self.opener == Opener::Here || self.accepted)
    }

    /// This end accepts, with a window of so many bytes. Returns the limit for the far end.
    pub fn accept(&mut self, now: Instant, window: u64) -> u64 {
        self.accepted = true;
        self.recv.window = window;
        self.recv.limit = self.recv.limit.max(self.recv.taken + window);
        self.recv.raised = now;
        self.recv.limit
    }

    /// This end sends nothing more, and takes nothing.
    pub fn abort(&mut self) {
        self.aborted = true;
        self.send.ended = true;
        // The end that was asked may forget the channel: what still comes for it is dropped.
        self.recv.ended |= self.opener == Opener::There;
    }

    /// Takes a message of the far end with the cost of its data. What becomes known is added to
    /// `events`.
    pub fn receive(
        &mut self,
        now: Instant,
        arrived: Arrived,
        events: &mut VecDeque<ChannelEvent>,
    ) -> Result<(), ChannelPeerError> {
        let Arrived { key, place, arrival, content, cost } = arrived;
        // Behind its finish message the far end may only reset; expendable bytes may be late.
        if self.recv.ended && !matches!(content, ChannelContent::Reset { .. }) {
            return match content {
                ChannelContent::Expendable(_) => {
                    events.push_back(ChannelEvent::Missed);
                    Ok(())
                }
                _ => Err(ChannelPeerError::OutOfPlace(key)),
            };
        }
        let awaits_answer = self.opener == Opener::Here && !self.accepted;
        let was_aborted = self.aborted;
        let may_carry = !awaits_answer || arrival == Arrival::AnyOrder;
        let event = match content {
            ChannelContent::Open { window, .. }
                if arrival == Arrival::AnyOrder && !self.announced =>
            {
                self.announced = true;
                if !self.raise(window.into()) {
                    return Ok(());
                }
                ChannelEvent::Credit(key)
            }
            ChannelContent::Accept { window } if awaits_answer => {
                self.accepted = true;
                self.recv.raised = now;
                if !was_aborted {
                    events.push_back(ChannelEvent::Accepted(key));
                    events.extend(self.raise(window.into()).then_some(ChannelEvent::Credit(key)));
                }
                return Ok(());
            }
            ChannelContent::Data(bytes) if may_carry => {
                self.recv.received += cost;
                if self.recv.received > self.recv.limit {
                    return Err(ChannelPeerError::OverWindow(key));
                }
                ChannelEvent::Data { key, place, bytes }
            }
            ChannelContent::Expendable(_) if was_aborted => ChannelEvent::Missed,
            ChannelContent::Expendable(bytes) => ChannelEvent::Expendable { key, place, bytes },
            ChannelContent::Finish if may_carry && arrival == Arrival::InOrder => {
                self.recv.ended = true;
                ChannelEvent::Finished(key)
            }
            ChannelContent::Reset { reason } => {
                // The opener uses the slot again when it knows that nothing more comes.
                if self.opener == Opener::There && !self.send.ended {
                    let content = ChannelContent::Reset { reason: Bytes::new() };
                    events.push_back(ChannelEvent::Reply { key, message: key.message(content) });
                }
                self.end();
                let answer = if awaits_answer { Answer::Awaited } else { Answer::Given };
                ChannelEvent::Ended { key, reason, answer }
            }
            _ => return Err(ChannelPeerError::OutOfPlace(key)),
        };
        if !was_aborted || event == ChannelEvent::Missed {
            events.push_back(event);
        }
        Ok(())
    }

    /// Raises how much may be sent in all. Returns whether a message may be sent that could not be.
    pub fn raise(&mut self, limit: u64) -> bool {
        let before = self.credit();
        self.send.limit = self.send.limit.max(limit);
        before < self.largest && self.credit() > before
    }

    /// Both directions end, and what is left of the channel is worth nothing.
    const fn end(&mut self) {
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

/// A message as it arrived.
pub(super) struct Arrived {
    pub key: ChannelKey,
    /// The flow among those of the channel.
    pub place: u32,
    pub arrival: Arrival,
    pub content: ChannelContent,
    /// What its data counts against the window.
    pub cost: u64,
}

/// Whether the far end had accepted a channel that this end opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It had, or the channel is the far end's own.
    Given,
    /// It had not: the channel was refused.
    Awaited,
}
