//! The multiplexer: many channels of one service in one session.
//!
//! A channel has a slot and in it a generation number, which its opener gives: the calling end has
//! the even slots, the called end the odd ones. A slot is used again when both directions of its
//! channel have ended; each message names its generation too, so that a late message of one channel
//! is never taken for the next. A slot has one flow of the session, or several. Each direction of a
//! channel has a flow-control window, so that a slow reader holds back its own channel alone. A
//! window begins as a part of the service's budget, and grows where the reader keeps up and the
//! window holds the channel back.
//!
//! What the channels carry is the service's: what it says when it opens or resets one, which block
//! of the session has which class and deadline, and messages that are about no channel.

mod budget;
mod channel;
mod slots;
pub mod wire;

pub use channel::{Answer, Carries};

use budget::Budget;
use bytes::Bytes;
use channel::{Arrival, Arrived, Channel, Opener};
use skyhaul_transport::cost;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use slots::{Age, Slots};
use std::collections::{BTreeMap, VecDeque};
use wire::{BadChannelMessage, ChannelContent, ChannelLimit, ChannelMessage, HEAD, WINDOWS_MAX};

/// Which end of the session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// It has connected to the other.
    Calling,
    /// The other has connected to it.
    Called,
}

/// A channel among those of one service in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelKey {
    slot: u32,
    generation: u32,
}

/// What a service's channels are like, the same at both ends.
#[derive(Debug, Clone, Copy)]
pub struct ChannelRules {
    /// The first of the service's own flows: the control flow. The slots' flows are behind it.
    pub first: FlowId,
    /// Flows of each slot. Where there are several, the last one is for messages about the channel,
    /// and its blocks on the others may arrive before them.
    pub flows: u32,
    /// Channels that each end may have opened at a time.
    pub per_end: u32,
    /// What counts against the windows.
    pub counted: Counted,
    /// The windows.
    pub windows: WindowRules,
}

/// Sizes of windows.
#[derive(Debug, Clone, Copy)]
pub struct WindowRules {
    /// What each end may send before it knows the other's window, and the narrowest window; no
    /// less than `largest`.
    pub first_credit: ByteCount,
    /// The widest window.
    pub widest: ByteCount,
    /// What the largest message costs: a reader that has taken everything leaves room for it.
    pub largest: ByteCount,
    /// Bytes that all channels together may have received and not taken, beside the narrowest
    /// window of each.
    pub budget: ByteCount,
}

/// What counts against a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Bytes in order: a reader takes any number of them.
    Bytes,
    /// Whole blocks, with the session's cost of each: a reader takes block by block.
    Blocks,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelEvent {
    /// The far end opens a channel: answer with [`Multiplexer::accept`] or [`Multiplexer::reset`].
    Opened {
        /// The channel.
        key: ChannelKey,
        /// What it carries.
        carries: Carries,
        /// What the service says there; empty if a block came before it.
        request: Bytes,
    },
    /// The far end has accepted.
    Accepted(ChannelKey),
    /// Data: call [`Multiplexer::taken`] when the application has it.
    Data {
        /// The channel.
        key: ChannelKey,
        /// The flow among those of the channel.
        place: u32,
        /// What it carries.
        bytes: Bytes,
    },
    /// Expendable bytes, which need no [`Multiplexer::taken`].
    Expendable {
        /// The channel.
        key: ChannelKey,
        /// The flow among those of the channel.
        place: u32,
        /// What it carries.
        bytes: Bytes,
    },
    /// Expendable bytes of a channel that the far end has not opened yet; only where a channel has
    /// one flow.
    Early {
        /// The channel.
        key: ChannelKey,
        /// What it carries.
        bytes: Bytes,
    },
    /// Expendable bytes of a channel that has ended.
    Missed,
    /// No more comes from the far end.
    Finished(ChannelKey),
    /// The far end has ended the channel at once.
    Ended {
        /// The channel.
        key: ChannelKey,
        /// What the service says there.
        reason: Bytes,
        /// Whether it had accepted before.
        answer: Answer,
    },
    /// Nothing is left of the channel, because of what the far end said.
    Gone(ChannelKey),
    /// More may be sent, where not every message could be.
    Credit(ChannelKey),
    /// Send this in return, on [`ChannelRules::flow`].
    Reply {
        /// The channel, which may have ended.
        key: ChannelKey,
        /// The message.
        message: Bytes,
    },
    /// A message of the service that is about no channel.
    Service {
        /// Its kind.
        kind: u8,
        /// Its number.
        number: u32,
        /// The rest.
        body: Bytes,
    },
}

/// The far end breaks the protocol of this version: close the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelPeerError {
    /// A block is not a message.
    #[error(transparent)]
    Malformed(#[from] BadChannelMessage),
    /// More bytes than its window allows.
    #[error("channel {0} exceeds its flow-control window")]
    OverWindow(ChannelKey),
    /// A message that the channel's state does not allow.
    #[error("the far end sent a message that channel {0} does not allow in its state")]
    OutOfPlace(ChannelKey),
    /// A message of a channel that was never opened.
    #[error("a message for a channel that was never opened")]
    Unknown,
}

/// All channels of one service in one session.
///
/// What it holds is bounded: [`ChannelRules::per_end`] channels opened by each end whose ends have
/// not met, those whose last bytes the application has not taken, and a limit to tell for each.
/// What comes in is in the caller's hands at once, through [`Multiplexer::poll_event`].
#[derive(Debug)]
pub struct Multiplexer {
    rules: ChannelRules,
    slots: Slots,
    channels: BTreeMap<ChannelKey, Channel>,
    budget: Budget,
    /// Limits that the far end does not know yet.
    raised: BTreeMap<ChannelKey, u64>,
    events: VecDeque<ChannelEvent>,
}

/// Where a flow is among those of a service.
enum Place {
    Control,
    Slot { slot: u32, place: u32 },
}

impl Multiplexer {
    /// No channels yet.
    pub const fn new(end: SessionEnd, rules: ChannelRules) -> Self {
        Self {
            slots: Slots::new(end, rules.per_end),
            channels: BTreeMap::new(),
            budget: Budget::new(&rules.windows),
            raised: BTreeMap::new(),
            events: VecDeque::new(),
            rules,
        }
    }

    /// Opens a channel; `None` where [`ChannelRules::per_end`] are open. Send
    /// [`Multiplexer::open_message`] first.
    pub fn open(&mut self, now: Instant, carries: Carries) -> Option<ChannelKey> {
        let key = self.slots.open()?;
        let window = self.budget.begin(carries);
        let channel = Channel::asked_for(now, carries, window, &self.rules.windows);
        self.channels.insert(key, channel);
        Some(key)
    }

    /// The message that opens a channel, with what the service says there.
    pub fn open_message(&self, key: ChannelKey, request: Bytes) -> Bytes {
        let window = self.channels.get(&key).map_or(0, |channel| channel.recv.limit);
        key.message(ChannelContent::Open { window: narrow(window), request })
    }

    /// This end takes a channel that the far end has opened. Returns the message to send; `None`
    /// where nobody waits for it.
    pub fn accept(&mut self, now: Instant, key: ChannelKey) -> Option<Bytes> {
        let channel = self.channels.get(&key).filter(|channel| channel.is_asked())?;
        let window = self.budget.begin(channel.carries);
        let limit = self.channels.get_mut(&key)?.accept(now, window);
        Some(key.message(ChannelContent::Accept { window: narrow(limit) }))
    }

    /// Whether the far end waits for this one to accept the channel.
    pub fn is_asked(&self, key: ChannelKey) -> bool {
        self.channels.get(&key).is_some_and(Channel::is_asked)
    }

    /// What of data may be sent now, as the service counts it.
    pub fn credit(&self, key: ChannelKey) -> u64 {
        self.channels.get(&key).map_or(0, Channel::credit)
    }

    /// Whether this end may still send on a channel.
    pub fn may_send(&self, key: ChannelKey) -> bool {
        self.channels.get(&key).is_some_and(|channel| !channel.send.ended)
    }

    /// The message with data of no more than [`Multiplexer::credit`]. `None` where this end has
    /// ended the channel, or where there are no bytes.
    pub fn data(&mut self, key: ChannelKey, bytes: &[u8]) -> Option<Bytes> {
        let cost = self.rules.counted.cost(bytes.len());
        let channel = self.channels.get_mut(&key);
        let channel = channel.filter(|channel| !channel.send.ended && !bytes.is_empty())?;
        debug_assert!(cost <= channel.credit(), "no more is sent than the window has room for");
        channel.send.sent += cost;
        Some(wire::data(key.generation, bytes))
    }

    /// The message with expendable bytes; `None` where this end has ended the channel.
    pub fn expendable(&self, key: ChannelKey, bytes: &[u8]) -> Option<Bytes> {
        self.may_send(key).then(|| wire::expendable(key.generation, bytes))
    }

    /// This end sends nothing more. Returns the message to send behind all data; `None` where it
    /// has ended the channel already.
    pub fn finish(&mut self, key: ChannelKey) -> Option<Bytes> {
        let channel = self.channels.get_mut(&key).filter(|channel| !channel.send.ended)?;
        channel.send.ended = true;
        self.settle(key);
        Some(key.message(ChannelContent::Finish))
    }

    /// Ends a channel at once, at both ends. Returns the message to send, with what the service
    /// says there; `None` where it was reset already.
    pub fn reset(&mut self, key: ChannelKey, reason: Bytes) -> Option<Bytes> {
        let channel = self.channels.get_mut(&key).filter(|channel| !channel.aborted)?;
        channel.abort();
        self.settle(key);
        Some(key.message(ChannelContent::Reset { reason }))
    }

    /// The application has taken `len` received bytes, or a block of this length, with a round trip
    /// of `rtt` to the far end.
    pub fn taken(&mut self, now: Instant, rtt: Duration, key: ChannelKey, len: usize) {
        let Some(channel) = self.channels.get_mut(&key) else { return };
        if channel.taken(self.rules.counted.cost(len)) {
            let recv = &mut channel.recv;
            if recv.is_held_back(now, rtt) {
                recv.window += self.budget.grow(recv.window);
            }
            recv.raise(now);
            self.raised.insert(key, recv.limit);
        }
        self.settle(key);
    }

    /// Takes a block of the session on one of the service's own flows.
    ///
    /// # Errors
    /// The far end breaks the protocol: close the session.
    pub fn receive(
        &mut self,
        now: Instant,
        flow: FlowId,
        block: &Bytes,
    ) -> Result<(), ChannelPeerError> {
        let ChannelMessage { generation, content } = ChannelMessage::decode(block)?;
        match self.rules.place(flow).ok_or(ChannelPeerError::Unknown)? {
            Place::Control => self.control(generation, content),
            Place::Slot { slot, place } => {
                let cost = match &content {
                    ChannelContent::Data(bytes) => self.rules.counted.cost(bytes.len()),
                    _ => 0,
                };
                let (key, arrival) = (ChannelKey { slot, generation }, self.rules.arrival());
                self.in_channel(now, Arrived { key, place, arrival, content, cost })
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    /// The next message of windows, for the control flow. It goes before all data, so
    /// that no channel waits for the blocks of another.
    pub fn poll_windows(&mut self) -> Option<Bytes> {
        let mut limits = Vec::new();
        while limits.len() < WINDOWS_MAX
            && let Some((key, limit)) = self.raised.pop_first()
        {
            limits.push(ChannelLimit { key, limit });
        }
        let content = ChannelContent::Windows(limits);
        let is_empty = content == ChannelContent::Windows(Vec::new());
        (!is_empty).then(|| ChannelMessage { generation: 0, content }.encode())
    }

    /// Whether the far end knows all windows.
    pub fn has_no_windows(&self) -> bool {
        self.raised.is_empty()
    }

    /// What its channels are like.
    pub const fn rules(&self) -> &ChannelRules {
        &self.rules
    }

    /// Whether something is left of a channel.
    pub fn contains(&self, key: ChannelKey) -> bool {
        self.channels.contains_key(&key)
    }

    /// Channels of which something is left.
    pub fn count(&self) -> usize {
        self.channels.len()
    }

    /// All bytes that the far end may send on all channels.
    pub const fn granted(&self) -> ByteCount {
        ByteCount::new(self.budget.granted())
    }

    fn control(&mut self, number: u32, content: ChannelContent) -> Result<(), ChannelPeerError> {
        match content {
            ChannelContent::Windows(limits) => {
                for ChannelLimit { key, limit } in limits {
                    // A channel that is gone needs no window any more.
                    let channel = self.channels.get_mut(&key);
                    if channel.is_some_and(|channel| channel.raise(limit)) {
                        self.events.push_back(ChannelEvent::Credit(key));
                    }
                }
                Ok(())
            }
            ChannelContent::Service { kind, body } => {
                self.events.push_back(ChannelEvent::Service { kind, number, body });
                Ok(())
            }
            _ => Err(ChannelPeerError::Unknown),
        }
    }

    fn in_channel(&mut self, now: Instant, arrived: Arrived) -> Result<(), ChannelPeerError> {
        let key = arrived.key;
        if !self.rules.belongs(&arrived) {
            return Err(ChannelPeerError::OutOfPlace(key));
        }
        if !self.channels.contains_key(&key) {
            let is_expendable = matches!(arrived.content, ChannelContent::Expendable(_));
            match self.slots.age(key) {
                Age::Past => {
                    self.events.extend(is_expendable.then_some(ChannelEvent::Missed));
                    return Ok(());
                }
                Age::Never => return Err(ChannelPeerError::Unknown),
                Age::Next => match (arrived.arrival, arrived.content) {
                    (_, ChannelContent::Open { window, request }) => {
                        return self.opened(now, key, Some(window), request);
                    }
                    (Arrival::InOrder, ChannelContent::Expendable(bytes)) => {
                        self.events.push_back(ChannelEvent::Early { key, bytes });
                        return Ok(());
                    }
                    (Arrival::InOrder, _) => return Err(ChannelPeerError::Unknown),
                    (Arrival::AnyOrder, content) => {
                        self.opened(now, key, None, Bytes::new())?;
                        return self.in_open(now, Arrived { content, ..arrived });
                    }
                },
            }
        }
        self.in_open(now, arrived)
    }

    fn in_open(&mut self, now: Instant, arrived: Arrived) -> Result<(), ChannelPeerError> {
        let key = arrived.key;
        let Some(channel) = self.channels.get_mut(&key) else { return Ok(()) };
        channel.receive(now, arrived, &mut self.events)?;
        self.settle(key);
        self.events.extend((!self.contains(key)).then_some(ChannelEvent::Gone(key)));
        Ok(())
    }

    /// The far end opens a channel. Its window is not known where a block came before that.
    fn opened(
        &mut self,
        now: Instant,
        key: ChannelKey,
        window: Option<u32>,
        request: Bytes,
    ) -> Result<(), ChannelPeerError> {
        let all = ChannelKey { generation: 0, ..key }..=ChannelKey { generation: u32::MAX, ..key };
        if self.channels.range(all).any(|(_, channel)| !channel.is_over()) {
            return Err(ChannelPeerError::OutOfPlace(key));
        }
        self.slots.opened_there(key);
        let carries = if window == Some(0) { Carries::Expendable } else { Carries::Data };
        let mut channel = Channel::offered(now, carries, &self.rules.windows);
        channel.announced = window.is_some();
        channel.raise(window.unwrap_or(0).into());
        self.channels.insert(key, channel);
        self.events.push_back(ChannelEvent::Opened { key, carries, request });
        Ok(())
    }

    /// Gives back what a channel does not need any more.
    fn settle(&mut self, key: ChannelKey) {
        let Some(channel) = self.channels.get_mut(&key) else { return };
        if channel.opener == Opener::Here && channel.is_over() && !channel.gave_slot_back {
            channel.gave_slot_back = true;
            self.slots.give_back(key.slot);
        }
        if channel.is_gone() {
            self.budget.end(channel.recv.window);
            self.channels.remove(&key);
            self.raised.remove(&key);
        }
    }
}

impl ChannelKey {
    fn message(self, content: ChannelContent) -> Bytes {
        ChannelMessage { generation: self.generation, content }.encode()
    }
}

impl core::fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

impl Counted {
    fn cost(self, len: usize) -> u64 {
        match self {
            Self::Bytes => len as u64,
            Self::Blocks => cost(len + HEAD),
        }
    }
}

impl ChannelRules {
    /// The flow of messages about a channel.
    pub const fn flow(&self, key: ChannelKey) -> FlowId {
        self.flow_at(key, self.flows - 1)
    }

    /// One of the flows for a channel's data, the first of which is 0.
    pub const fn flow_at(&self, key: ChannelKey, place: u32) -> FlowId {
        FlowId(self.first.0 + 1 + key.slot * self.flows + place)
    }

    /// Where a flow is; `None` where it is none of the service's.
    fn place(&self, flow: FlowId) -> Option<Place> {
        let Some(behind) = flow.0.checked_sub(self.first.0)?.checked_sub(1) else {
            return Some(Place::Control);
        };
        let (slot, place) = (behind / self.flows, behind % self.flows);
        (slot < 2 * self.per_end).then_some(Place::Slot { slot, place })
    }

    const fn arrival(&self) -> Arrival {
        if self.flows == 1 { Arrival::InOrder } else { Arrival::AnyOrder }
    }

    /// Whether a message is on the flow for its kind.
    const fn belongs(&self, arrived: &Arrived) -> bool {
        let is_last = arrived.place + 1 == self.flows;
        match arrived.content {
            ChannelContent::Data(_) | ChannelContent::Expendable(_) => !is_last || self.flows == 1,
            ChannelContent::Windows(_) | ChannelContent::Service { .. } => false,
            ChannelContent::Open { .. }
            | ChannelContent::Accept { .. }
            | ChannelContent::Finish
            | ChannelContent::Reset { .. } => is_last,
        }
    }
}

impl WindowRules {
    const fn first_credit(&self, carries: Carries) -> u64 {
        match carries {
            Carries::Data => self.first_credit.as_u64(),
            Carries::Expendable => 0,
        }
    }
}

/// A window as a message has it. The widest one fits.
fn narrow(window: u64) -> u32 {
    u32::try_from(window).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
