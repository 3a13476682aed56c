//! Channels of programs' blocks within one session: each behaves like a session of its own, except
//! that they share the line.
//!
//! They are channels of the [`Multiplexer`] with several flows each, so that a program's blocks
//! have an order within their flow only. Reliable blocks have a window: the far end's program has
//! at most [`BLOCK_WINDOW`] that it has not taken, so that a slow program holds back its own
//! channel alone. Expendable blocks have no window: a program that does not take them loses them.

use crate::multiplexer::{
    Carries, ChannelEvent, ChannelKey, ChannelPeerError, ChannelRules, Counted, Multiplexer,
    SessionEnd, WindowRules, wire,
};
use bytes::Bytes;
use skyhaul_transport::{Block, MAX_BLOCK, Mode, cost};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// What became known of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockEvent {
    /// The far end has opened one.
    Begun(ChannelKey),
    /// The far end asks for one: answer with [`BlockChannels::accept`] or
    /// [`BlockChannels::refuse`].
    Asked(ChannelKey, Bytes),
    /// The far end has accepted one that [`BlockChannels::ask`] asked for.
    Accepted(ChannelKey),
    /// A block of the far end's program: tell with [`BlockChannels::taken`] when this one's has
    /// taken it.
    Data(ChannelKey, FlowId, Bytes),
    /// An expendable block: nothing is told of it.
    Expendable(ChannelKey, FlowId, Bytes),
    /// More may be sent.
    Credit(ChannelKey),
    /// The far end has ended it.
    Ended(ChannelKey),
    /// The far end has ended it and says why.
    Refused(ChannelKey, Bytes),
}

/// The far end breaks the protocol of this version: close the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockPeerError {
    /// Of any channels.
    #[error(transparent)]
    Channel(#[from] ChannelPeerError),
    /// A message that channels of blocks do not have.
    #[error("the far end sent a message that channels of blocks do not have")]
    Foreign,
}

/// All channels of one service in one session.
#[derive(Debug)]
pub struct BlockChannels {
    channels: Multiplexer,
    /// Messages about channels by their flow, on their way to the session. A later one makes an
    /// earlier one needless: with a reset nobody waits for what the channel began with, and with
    /// the next channel of a slot nobody waits for the end of the one before.
    out: BTreeMap<FlowId, Block>,
    /// Channels that this end has asked for and that are not accepted yet.
    asked: BTreeSet<ChannelKey>,
}

/// Reliable blocks that one end has sent and the other's program has not taken, at most: 93 Mbit/s
/// at 660 ms, four times over, so that repairs of repairs do not stop the line.
pub const BLOCK_WINDOW: ByteCount = ByteCount::mib(32);
/// Channels at a time that each end opened.
pub const CHANNELS_MAX: u32 = 32;
/// Flows of a channel for the program's blocks; one more is for messages about the channel. 64
/// channels and the control flow fit into the flows of a service.
pub const FLOWS_OF_PROGRAM: u32 = 1_022;

/// The windows of a service's channels in one session. The first four have the widest window at
/// once; beside others the narrowest one takes the largest block, and some more so that the line
/// does not wait for each.
const WINDOWS: WindowRules = WindowRules {
    first_credit: ByteCount::mib(18),
    widest: BLOCK_WINDOW,
    largest: ByteCount::new(cost(MAX_BLOCK)),
    budget: ByteCount::mib(512),
};

impl BlockChannels {
    /// None yet, of a service whose own flows begin with `first`.
    pub const fn new(end: SessionEnd, first: FlowId) -> Self {
        let rules = ChannelRules {
            first,
            flows: FLOWS_OF_PROGRAM + 1,
            per_end: CHANNELS_MAX,
            counted: Counted::Blocks,
            windows: WINDOWS,
        };
        Self {
            channels: Multiplexer::new(end, rules),
            out: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Opens a channel; `None` where [`CHANNELS_MAX`] are open, or the far end has not confirmed
    /// their end yet.
    pub fn begin(&mut self, now: Instant) -> Option<ChannelKey> {
        self.ask(now, Bytes::new())
    }

    /// Opens a channel with a request: nothing may be sent before [`BlockEvent::Accepted`], since
    /// a block could overtake the request. `None` as with [`BlockChannels::begin`].
    pub fn ask(&mut self, now: Instant, request: Bytes) -> Option<ChannelKey> {
        let key = self.channels.open(now, Carries::Data)?;
        if !request.is_empty() {
            self.asked.insert(key);
        }
        let message = self.channels.open_message(key, request);
        self.say(key, message);
        Some(key)
    }

    /// Takes a channel that the far end has asked for.
    pub fn accept(&mut self, now: Instant, key: ChannelKey) {
        if let Some(message) = self.channels.accept(now, key) {
            self.say(key, message);
        }
    }

    /// What of reliable blocks may be sent now.
    pub fn credit(&self, key: ChannelKey) -> u64 {
        self.channels.credit(key)
    }

    /// Whether a block may be sent now: there is credit for it, or it needs none.
    pub fn may_send(&self, key: ChannelKey, block: &Block) -> bool {
        let is_reliable = block.mode == Mode::Reliable;
        let needs = if is_reliable { cost(block.bytes.len() + wire::HEAD) } else { 0 };
        self.channels.may_send(key) && needs <= self.credit(key)
    }

    /// The session's block for one of a program; `None` where its channel has ended, its flow is
    /// none of a channel's, or it is empty.
    pub fn data(&mut self, key: ChannelKey, block: Block) -> Option<Block> {
        let first = self.channels.rules().first;
        let place = block.flow.0.checked_sub(first.0).filter(|place| *place < FLOWS_OF_PROGRAM)?;
        if block.bytes.is_empty() {
            return None;
        }
        let bytes = match block.mode {
            Mode::Reliable => self.channels.data(key, &block.bytes)?,
            _ => self.channels.expendable(key, &block.bytes)?,
        };
        Some(Block { flow: self.channels.rules().flow_at(key, place), bytes, ..block })
    }

    /// This end's program has taken a block of so many bytes, with a round trip of `rtt` to the far
    /// end.
    pub fn taken(&mut self, now: Instant, rtt: Duration, key: ChannelKey, len: usize) {
        self.channels.taken(now, rtt, key, len);
    }

    /// This end's program is done with a channel. What comes of it is dropped from now on.
    pub fn end(&mut self, key: ChannelKey) {
        self.refuse(key, Bytes::new());
    }

    /// The same, and says why: UTF-8 text.
    pub fn refuse(&mut self, key: ChannelKey, reason: Bytes) {
        self.asked.remove(&key);
        if let Some(message) = self.channels.reset(key, reason) {
            self.say(key, message);
        }
    }

    /// The next message about channels. One that the session does not take is put back by the
    /// caller.
    pub fn poll_block(&mut self) -> Option<Block> {
        let control = self.channels.rules().first;
        let windows = self.channels.poll_windows().map(|message| urgent(control, message));
        windows.or_else(|| self.out.pop_first().map(|(_, block)| block))
    }

    /// Takes in a block of the session, on one of the service's own flows. What came for a channel
    /// that is over is for nobody.
    ///
    /// # Errors
    /// The far end breaks the protocol: close the session.
    pub fn receive(
        &mut self,
        now: Instant,
        flow: FlowId,
        block: &Bytes,
    ) -> Result<Vec<BlockEvent>, BlockPeerError> {
        self.channels.receive(now, flow, block)?;
        let first = self.channels.rules().first;
        let own = |place| FlowId(first.0 + place);
        let mut events = Vec::new();
        while let Some(event) = self.channels.poll_event() {
            let event = match event {
                ChannelEvent::Opened { key, carries, request } => {
                    if carries != Carries::Data {
                        return Err(BlockPeerError::Foreign);
                    }
                    if request.is_empty() {
                        self.accept(now, key);
                        BlockEvent::Begun(key)
                    } else {
                        BlockEvent::Asked(key, request)
                    }
                }
                ChannelEvent::Data { key, place, bytes } => {
                    BlockEvent::Data(key, own(place), bytes)
                }
                ChannelEvent::Expendable { key, place, bytes } if !bytes.is_empty() => {
                    BlockEvent::Expendable(key, own(place), bytes)
                }
                ChannelEvent::Credit(key) => BlockEvent::Credit(key),
                ChannelEvent::Ended { key, reason, .. } => {
                    self.asked.remove(&key);
                    match reason.is_empty() {
                        true => BlockEvent::Ended(key),
                        false => BlockEvent::Refused(key, reason),
                    }
                }
                ChannelEvent::Accepted(key) if self.asked.remove(&key) => BlockEvent::Accepted(key),
                ChannelEvent::Reply { key, message } => {
                    self.say(key, message);
                    continue;
                }
                ChannelEvent::Accepted(_) | ChannelEvent::Missed | ChannelEvent::Gone(_) => {
                    continue;
                }
                ChannelEvent::Expendable { .. }
                | ChannelEvent::Early { .. }
                | ChannelEvent::Finished(_)
                | ChannelEvent::Service { .. } => return Err(BlockPeerError::Foreign),
            };
            events.push(event);
        }
        Ok(events)
    }

    fn say(&mut self, key: ChannelKey, message: Bytes) {
        let flow = self.channels.rules().flow(key);
        self.out.insert(flow, urgent(flow, message));
    }
}

/// A message about channels goes first.
fn urgent(flow: FlowId, message: Bytes) -> Block {
    Block { priority: 0, ..Block::reliable(flow, message) }
}

#[cfg(test)]
mod tests;
