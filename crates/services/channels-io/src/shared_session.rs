//! Channels multiplexed onto sessions that a station or centre owns.

use crate::channel::AppChannel;
use crate::channel_error::AppChannelError;
use crate::hint::HintError;
use crate::shared_channel::SharedChannel;
use crate::state::{ArrivedBlock, ChannelState, FarNode, OpenRequest, Shared, State};
use bytes::Bytes;
use skyhaul_channels::{
    BLOCK_WINDOW, BlockChannels, BlockEvent, CHANNELS_MAX, ChannelKey, FlowRange, SessionEnd,
    Share, wire,
};
use skyhaul_identity::Fingerprint;
use skyhaul_net::{SessionManager, Waker};
use skyhaul_sessions::SessionId;
use skyhaul_transport::{Block, BlockId, Outcome, Received, RefusalCause, Session, cost};
use skyhaul_units::{ByteCount, FlowId, Instant, printable};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Bound;
use std::sync::Arc;

/// The channels of one service over all sessions of a node. Programs have a [`ChannelService`].
#[derive(Debug)]
pub(crate) struct SharedSession {
    shared: Arc<Shared>,
    range: FlowRange,
    /// Of each session's send buffer.
    share: ByteCount,
    taken: IncomingChannels,
    sessions: BTreeMap<SessionId, SharedChannels>,
}

/// Where a program opens channels over sessions that a station or centre owns.
#[derive(Debug, Clone)]
pub struct ChannelService(Arc<Shared>);

/// Who takes channels that far nodes open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncomingChannels {
    /// Nobody: they are ended at once.
    Refused,
    /// The owner of the [`ChannelService`].
    Accepted,
    /// The owner of the [`ChannelService`], where it listens for what they ask for.
    Named,
}

/// The channels over one session.
#[derive(Debug)]
struct SharedChannels {
    node: Option<usize>,
    /// The far end's name, from when the session is open.
    name: Option<String>,
    key: Fingerprint,
    taken: IncomingChannels,
    outlet: Outlet,
    blocks: BlockChannels,
    members: BTreeMap<ChannelKey, SharedChannel>,
    /// The channel that handed over a block last: the next one is that behind it.
    last: Option<ChannelKey>,
    /// A message about the channels that the session had no room for.
    held: Option<Block>,
}

/// The flows of the service in a session, and its share of the send buffer.
#[derive(Debug)]
struct Outlet {
    range: FlowRange,
    share: Share,
}

/// The session under the channels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedSessionOwner {
    /// Which end this is.
    pub end: SessionEnd,
    /// The far node's index among those that this one connects to.
    pub node: Option<usize>,
    /// The far node's key.
    pub key: Fingerprint,
}

/// Channels of far nodes that wait for the program; further ones are ended.
const ACCEPTED_MAX: usize = 64;
/// The longest reason of a far end that is shown.
const REASON_MAX: usize = 256;
/// The longest name of a program that is shown.
const NAME_SHOWN: usize = 64;
/// Why a hint by way of a channel is not taken.
const NODES_PATHS: &str = "the paths are the node's; give it the hint";
/// Why a channel without a request is ended.
const NO_REQUEST: &str = "a channel of blocks names a program";

impl ChannelService {
    /// Opens a channel over the session with the node of this index, as soon as that is open. The
    /// channel's blocks are of `class`, or of the default one if the session has none of that name.
    ///
    /// # Errors
    /// The node has stopped, or the session has as many channels as it may.
    pub async fn connect(&self, node: usize, class: &str) -> Result<AppChannel, AppChannelError> {
        self.open(FarNode::Place(node), class).await
    }

    /// As [`ChannelService::connect`], with the node of this name.
    ///
    /// # Errors
    /// As there.
    pub async fn connect_to(&self, node: &str, class: &str) -> Result<AppChannel, AppChannelError> {
        self.open(FarNode::Named(node.to_owned()), class).await
    }

    /// How many sessions with the node of this name have opened: it grows when what waits for one
    /// can go on.
    pub fn openings(&self, node: &str) -> u64 {
        self.0.state().openings.get(node).copied().unwrap_or(0)
    }

    async fn open(&self, to: FarNode, class: &str) -> Result<AppChannel, AppChannelError> {
        let (classes, request) = (vec![class.to_owned()], Bytes::new());
        let id = self.0.open(OpenRequest { to, classes, request });
        let channel = AppChannel::new(Arc::clone(&self.0), id);
        let waiter = self.0.waiter(Some(id));
        poll_fn(|context| waiter.poll_open(context)).await?;
        Ok(channel)
    }

    /// The next channel that a far node has opened; `None` once the node has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        let waiter = self.0.waiter(None);
        let id = poll_fn(|context| waiter.poll_accept(context)).await?;
        Some(AppChannel::new(Arc::clone(&self.0), id))
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl SharedSession {
    /// No sessions yet; `waker` is of the thread that calls [`SharedSession::work`].
    pub fn new(range: FlowRange, share: ByteCount, taken: IncomingChannels, waker: Waker) -> Self {
        let shared = Arc::new(Shared::new(waker));
        Self { shared, range, share, taken, sessions: BTreeMap::new() }
    }

    /// For programs.
    pub fn service(&self) -> ChannelService {
        ChannelService(Arc::clone(&self.shared))
    }

    /// A session has begun.
    pub fn begun(&mut self, id: SessionId, owner: SharedSessionOwner) {
        let SharedSessionOwner { end, node, key } = owner;
        let channels = SharedChannels {
            node,
            name: None,
            key,
            taken: self.taken,
            outlet: Outlet { range: self.range, share: Share::of(self.share) },
            blocks: BlockChannels::new(end, self.range.first()),
            members: BTreeMap::new(),
            last: None,
            held: None,
        };
        self.sessions.insert(id, channels);
    }

    /// The handshake of a session is complete.
    pub fn opened(&mut self, id: SessionId, name: &str) {
        if let Some(channels) = self.sessions.get_mut(&id) {
            channels.name = Some(name.to_owned());
            *self.shared.state().openings.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// A block of the range came.
    pub fn block(
        &mut self,
        now: Instant,
        session: &mut Session,
        id: SessionId,
        received: &Received,
    ) {
        let Some(channels) = self.sessions.get_mut(&id) else { return };
        // The channels' windows bound what is kept from here on; the session's window is for blocks
        // in transit.
        session.release(received.bytes.len());
        let Some(flow) = self.range.inner(received.id.flow) else { return };
        match channels.blocks.receive(now, flow, &received.bytes) {
            Ok(events) => {
                for event in events {
                    channels.event(now, &self.shared, event, received);
                }
            }
            Err(error) => session.refuse(RefusalCause::Told, &error.to_string()),
        }
    }

    /// The outcome of a block of the range is known.
    pub fn settled(&mut self, id: SessionId, block: BlockId, outcome: Outcome) {
        let Some(channels) = self.sessions.get_mut(&id) else { return };
        channels.outlet.share.settled(block);
        let mut members = channels.members.values_mut();
        let found = members.find_map(|member| Some((member.id, member.settled(block)?)));
        if let Some((channel, ticket)) = found
            && let Some(channel) = self.shared.state().channels.get_mut(&channel)
        {
            channel.settle(ticket, outcome);
        }
    }

    /// A session has ended, and all its channels with it.
    pub fn ended(&mut self, id: SessionId) {
        let Some(channels) = self.sessions.remove(&id) else { return };
        let mut state = self.shared.state();
        for member in channels.members.values() {
            if let Some(channel) = state.channels.get_mut(&member.id) {
                channel.close("the session has ended".to_owned());
            }
        }
    }

    /// Opens channels that are asked for, and moves blocks to the sessions.
    pub fn work(&mut self, now: Instant, manager: &mut SessionManager) {
        self.open_requested(now);
        for (id, channels) in &mut self.sessions {
            if let Some(session) = manager.session(*id).filter(|session| session.is_open()) {
                channels.serve(now, session, &self.shared);
            }
        }
        self.shared.state().channels.retain(|_, channel| !channel.is_over());
    }

    /// Requests wait while there is no session with their node.
    fn open_requested(&mut self, now: Instant) {
        let mut state = self.shared.state();
        for (id, request) in core::mem::take(&mut state.opening) {
            let Some(channel) = state.channels.get_mut(&id) else { continue };
            if channel.dropped || channel.closed.is_some() {
                channel.close("cancelled before it opened".to_owned());
                continue;
            }
            let mut sessions = self.sessions.values_mut();
            let session = sessions.find(|held| held.is(&request.to));
            let Some(session) = session else {
                state.opening.push_back((id, request));
                continue;
            };
            let is_asked = !request.request.is_empty();
            match session.blocks.ask(now, request.request) {
                Some(key) => {
                    if !is_asked {
                        session.mark_open(channel);
                    }
                    let member = SharedChannel::new(id, request.classes);
                    session.members.insert(key, member);
                    channel.wake();
                }
                None => {
                    let most = CHANNELS_MAX;
                    channel.close(format!("the session has {most} channels, its limit"));
                }
            }
        }
    }
}

impl Drop for SharedSession {
    fn drop(&mut self) {
        self.shared.state().stop("the node has stopped");
    }
}

impl SharedChannels {
    /// Whether it is open, and leads to this node.
    fn is(&self, node: &FarNode) -> bool {
        match (node, &self.name) {
            (_, None) => false,
            (FarNode::Place(place), Some(_)) => self.node == Some(*place),
            (FarNode::Named(wanted), Some(name)) => name == wanted,
        }
    }

    fn mark_open(&self, channel: &mut ChannelState) {
        channel.open = true;
        channel.peer_name = self.name.clone().unwrap_or_default();
        channel.peer_key = Some(self.key);
    }

    fn event(&mut self, now: Instant, shared: &Shared, event: BlockEvent, received: &Received) {
        let mut state = shared.state();
        match event {
            BlockEvent::Begun(key) if self.taken == IncomingChannels::Named => {
                // Its blocks came before the question, or it has none.
                self.blocks.refuse(key, NO_REQUEST.into());
            }
            BlockEvent::Asked(key, request) => self.asked(now, &mut state, key, request),
            BlockEvent::Accepted(key) => {
                let channel = self.members.get(&key);
                let channel = channel.and_then(|member| state.channels.get_mut(&member.id));
                if let Some(channel) = channel {
                    self.mark_open(channel);
                    channel.wake();
                }
            }
            BlockEvent::Begun(key)
                if self.taken == IncomingChannels::Refused
                    || state.accepted.len() >= ACCEPTED_MAX =>
            {
                self.blocks.end(key);
            }
            BlockEvent::Begun(key) => {
                let id = state.accept(self.key);
                if let Some(channel) = state.channels.get_mut(&id) {
                    self.mark_open(channel);
                }
                self.members.insert(key, SharedChannel::new(id, Vec::new()));
            }
            BlockEvent::Data(key, flow, bytes) => {
                let Some(member) = self.members.get_mut(&key) else { return };
                let Some(channel) = state.channels.get_mut(&member.id) else { return };
                let received = within(received, flow, bytes);
                member.take(channel, ArrivedBlock { received, is_counted: true });
            }
            BlockEvent::Expendable(key, flow, bytes) => {
                let Some(member) = self.members.get_mut(&key) else { return };
                let Some(channel) = state.channels.get_mut(&member.id) else { return };
                if channel.uncounted() + cost(bytes.len()) > BLOCK_WINDOW.as_u64() {
                    // The program is too slow for expendable blocks: the newest is dropped.
                    member.stats.received.blocks_expired += 1;
                } else {
                    let received = within(received, flow, bytes);
                    member.take(channel, ArrivedBlock { received, is_counted: false });
                }
            }
            BlockEvent::Credit(_) => {}
            BlockEvent::Ended(key) => self.over(&mut state, key, "ended by the far end"),
            BlockEvent::Refused(key, reason) => {
                let reason = printable(&String::from_utf8_lossy(&reason), REASON_MAX);
                self.over(&mut state, key, &format!("the far end says: {reason}"));
            }
        }
    }

    /// The far end asks for a channel.
    fn asked(&mut self, now: Instant, state: &mut State, key: ChannelKey, request: Bytes) {
        let Some(classes) = state.listens.get(&request).cloned() else {
            let name = printable(&String::from_utf8_lossy(&request), NAME_SHOWN);
            let reason = format!("no program listens there as `{name}`");
            return self.blocks.refuse(key, reason.into());
        };
        if state.accepted.len() >= ACCEPTED_MAX {
            return self.blocks.refuse(key, "the program there does not take sessions".into());
        }
        self.blocks.accept(now, key);
        let id = state.accept(self.key);
        if let Some(channel) = state.channels.get_mut(&id) {
            self.mark_open(channel);
            channel.terms.request = request;
            channel.terms.outcomes = Some(Vec::new());
        }
        self.members.insert(key, SharedChannel::new(id, classes));
    }

    /// The far end has ended a channel.
    fn over(&mut self, state: &mut State, key: ChannelKey, reason: &str) {
        let Some(member) = self.members.remove(&key) else { return };
        if let Some(channel) = state.channels.get_mut(&member.id) {
            channel.stats = member.stats;
            channel.close(reason.to_owned());
        }
    }

    /// Hands over a block of each channel in turn, while the session has room.
    fn serve(&mut self, now: Instant, session: &mut Session, shared: &Shared) {
        let mut state = shared.state();
        self.update(now, session, &mut state);
        if !self.send_messages(now, session) {
            return;
        }
        while let Some(key) = self.next_ready(&state) {
            let Some(member) = self.members.get_mut(&key) else { return };
            let Some(channel) = state.channels.get_mut(&member.id) else { return };
            let Some(next) = channel.outgoing.front() else { return };
            let cost = cost(next.block.bytes.len() + wire::HEAD);
            if self.outlet.room(session) < cost {
                // It stays the next one, so that small blocks of others never keep a large one
                // waiting.
                return;
            }
            let Some(next) = channel.outgoing.pop_front() else { return };
            self.last = Some(key);
            let ticket = next.ticket;
            let Some(block) = member.in_time(now, session, next) else {
                channel.settle(ticket, Outcome::Expired);
                continue;
            };
            let block = self.blocks.data(key, block);
            match block.and_then(|block| self.outlet.send(now, session, block)) {
                Some(name) => {
                    member.took(name, ticket, cost);
                    channel.named(ticket, name);
                }
                None => channel.settle(ticket, Outcome::Cancelled),
            }
            channel.wake();
        }
    }

    /// Takes back the window of blocks that programs have taken, shows them their counters, and
    /// ends channels that they have dropped.
    fn update(&mut self, now: Instant, session: &Session, state: &mut State) {
        let rtt = session.paths().rtt();
        for (key, member) in &mut self.members {
            let Some(channel) = state.channels.get_mut(&member.id) else { continue };
            channel.released.drain(..).for_each(|len| self.blocks.taken(now, rtt, *key, len));
            channel.stats = member.stats;
            channel.stats.sent.buffer = self.outlet.share.held();
            if !channel.is_polled() {
                channel.paths.clear();
                channel.paths.extend(session.paths().iter());
            }
            for (number, ..) in channel.terms.hints.take_all() {
                channel.hinted(number, Err(HintError::Refused(NODES_PATHS.to_owned())));
            }
            if channel.is_done_with() && member.has_no_open() {
                self.blocks.end(*key);
                channel.close("closed by this program".to_owned());
            }
        }
        self.members.retain(|_, member| {
            state.channels.get(&member.id).is_some_and(|channel| channel.closed.is_none())
        });
    }

    /// The channel whose turn it is, of those that have a block and the window for it.
    fn next_ready(&self, state: &State) -> Option<ChannelKey> {
        let ready = |(key, member): (&ChannelKey, &SharedChannel)| {
            let next = state.channels.get(&member.id)?.outgoing.front()?;
            let may = member.has_part(&self.outlet.share, self.outlet.range, &next.block)
                && self.blocks.may_send(*key, &next.block);
            may.then_some(*key)
        };
        let behind = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.members.range((behind, Bound::Unbounded));
        behind.find_map(ready).or_else(|| self.members.iter().find_map(ready))
    }

    /// Sends the messages about the channels. Returns false where the session has no room for all.
    fn send_messages(&mut self, now: Instant, session: &mut Session) -> bool {
        while let Some(block) = self.held.take().or_else(|| self.blocks.poll_block()) {
            if self.outlet.room(session) < cost(block.bytes.len()) {
                self.held = Some(block);
                return false;
            }
            let block = Block { class: session.sender().classes().default_leaf(), ..block };
            let _ = self.outlet.send(now, session, block);
        }
        true
    }
}

/// A block of a session as its channel has it.
const fn within(received: &Received, flow: FlowId, bytes: Bytes) -> Received {
    Received { id: BlockId { flow, seq: received.id.seq }, bytes, timing: received.timing }
}

impl Outlet {
    /// The cost of blocks that the session takes of the service now.
    fn room(&self, session: &Session) -> u64 {
        session.room().as_u64().min(self.share.room())
    }

    /// Hands over a block that there is room for; `None` if the session takes no such block.
    fn send(&mut self, now: Instant, session: &mut Session, block: Block) -> Option<BlockId> {
        let (flow, cost) = (self.range.outer(block.flow)?, cost(block.bytes.len()));
        let name = session.send(now, Block { flow, ..block }).ok()?;
        self.share.took(name, cost);
        Some(name)
    }
}
