//! State that the program and the transport's thread share.

use crate::channel_error::AppChannelError;
use crate::hint::{ChannelHints, HintError};
use crate::path_choice::PathChoice;
use bytes::Bytes;
use skyhaul_net::Waker;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{
    Block, BlockId, ClassTree, Outcome, PathId, PathStatus, Received, Stats, cost,
};
use skyhaul_units::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A channel of one client or service.
pub(crate) type ChannelId = u64;
/// A block that was handed over; the session gives it another name later.
pub(crate) type Ticket = u64;

/// A future of the program that waits.
pub(crate) type WaiterId = u64;
/// The waiter of an owner who polls: no future has it.
pub(crate) const POLLING: WaiterId = 0;

/// A request for a session with a node, over at least one path.
#[derive(Debug, Clone)]
pub(crate) struct ConnectRequest {
    pub paths: Vec<PathChoice>,
    pub peer: Fingerprint,
}

/// A request for a channel over the shared session with a node.
#[derive(Debug, Clone)]
pub(crate) struct OpenRequest {
    /// The node at the far end.
    pub to: FarNode,
    /// The classes that its blocks' class is a place in; one that the session does not have is
    /// the default one.
    pub classes: Vec<String>,
    /// What is asked of the far end, which has to accept it; nothing where it is empty.
    pub request: Bytes,
}

/// The node at the far end of a shared session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FarNode {
    /// By its index among those that the owner of the sessions knows.
    Place(usize),
    /// By its name.
    Named(String),
}

/// A block on its way to the session.
#[derive(Debug)]
pub(crate) struct OutgoingBlock {
    pub ticket: Ticket,
    pub block: Block,
    /// When its deadline passes, where it is known: the block has waited since it was given.
    pub until: Option<Instant>,
    /// A block of the same channel that it depends on.
    pub after: Option<Ticket>,
}

/// State that both sides share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    waker: Waker,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub connecting: VecDeque<(ChannelId, ConnectRequest)>,
    pub opening: VecDeque<(ChannelId, OpenRequest)>,
    pub channels: BTreeMap<ChannelId, ChannelState>,
    pub accepted: VecDeque<ChannelId>,
    /// Requests of far ends that are accepted, with the classes of the blocks that go back.
    pub listens: BTreeMap<Bytes, Vec<String>>,
    pub accepting: BTreeMap<WaiterId, std::task::Waker>,
    /// How many sessions have opened with each node: nodes that this one knows.
    pub openings: BTreeMap<String, u64>,
    next: u64,
    pub stopped: bool,
}

/// A block that has arrived, for the program to take.
#[derive(Debug)]
pub(crate) struct ArrivedBlock {
    pub received: Received,
    /// It counts against a window until the program is done with it.
    pub is_counted: bool,
}

/// One channel.
#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    pub open: bool,
    /// The far end's name; empty before the handshake.
    pub peer_name: String,
    pub peer_key: Option<Fingerprint>,
    pub closed: Option<String>,
    /// The program has let go of it.
    pub dropped: bool,
    /// Blocks on their way to the session: at most [`OUTGOING_MAX`].
    pub outgoing: VecDeque<OutgoingBlock>,
    /// Blocks that have arrived, bounded by the receive window.
    incoming: VecDeque<ArrivedBlock>,
    /// The cost of those that count against no window.
    uncounted: u64,
    /// Lengths of blocks that the program is done with.
    pub released: Vec<usize>,
    /// Blocks whose outcome the program may ask for.
    pub sent: BTreeMap<Ticket, SentState>,
    pub stats: Stats,
    pub paths: Vec<(PathId, PathStatus)>,
    /// Paths that could not be made, and why; no more than were asked for.
    pub refused: Vec<String>,
    pub terms: ChannelTerms,
    /// Futures that wait for any change of the channel, each once.
    pub waiting: BTreeMap<WaiterId, std::task::Waker>,
}

/// What a channel has beside: of a block service, or of a session of its own.
#[derive(Debug, Default)]
pub(crate) struct ChannelTerms {
    /// What the far end asked for when it opened the channel.
    pub request: Bytes,
    /// The classes of blocks, where the carrier has them from elsewhere.
    pub classes: Option<ClassTree>,
    /// What the program knows of the session's paths, until the session has taken it.
    pub hints: ChannelHints,
    /// Outcomes for an owner who polls; none for one who has a future for each block.
    pub outcomes: Option<Vec<(Ticket, Outcome)>>,
}

/// A future that waits for a channel to change, or for one that a far node opens. Dropping it
/// leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    shared: &'a Shared,
    id: WaiterId,
    channel: Option<ChannelId>,
}

/// A block that was handed over, among those of all channels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentKey {
    pub channel: ChannelId,
    pub ticket: Ticket,
}

/// The state of a block that was handed over.
#[derive(Debug, Default)]
pub(crate) struct SentState {
    /// The session's name for the block, from when it took it.
    pub name: Option<BlockId>,
    pub outcome: Option<Outcome>,
    /// Futures that wait for either, each once.
    waiting: BTreeMap<WaiterId, std::task::Waker>,
}

impl SentState {
    fn wake(&mut self) {
        core::mem::take(&mut self.waiting).into_values().for_each(std::task::Waker::wake);
    }
}

/// A future that waits for news of a sent block. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct SentWaiter<'a> {
    shared: &'a Shared,
    id: WaiterId,
    key: SentKey,
}

impl ArrivedBlock {
    fn uncounted(&self) -> u64 {
        if self.is_counted { 0 } else { cost(self.received.bytes.len()) }
    }
}

/// Blocks between program and session: enough that the session never waits for the program.
pub(crate) const OUTGOING_MAX: usize = 64;

impl ChannelState {
    /// Wakes the futures that wait for a change.
    pub fn wake(&mut self) {
        core::mem::take(&mut self.waiting).into_values().for_each(std::task::Waker::wake);
    }

    /// A block has arrived.
    pub fn arrived(&mut self, block: ArrivedBlock) {
        self.uncounted += block.uncounted();
        self.incoming.push_back(block);
        self.wake();
    }

    /// The cost of blocks that the program has not taken and that count against no window.
    pub const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    pub fn take(&mut self) -> Option<ArrivedBlock> {
        let block = self.incoming.pop_front()?;
        self.uncounted -= block.uncounted();
        Some(block)
    }

    /// The answer to a hint of the program.
    pub fn hinted(&mut self, number: u64, answer: Result<(), HintError>) {
        self.terms.hints.answer(number, answer);
        self.wake();
    }

    /// The session took the block.
    pub fn named(&mut self, ticket: Ticket, name: BlockId) {
        self.tell(ticket, |sent| sent.name = Some(name));
    }

    /// The outcome of the block is known.
    pub fn settle(&mut self, ticket: Ticket, outcome: Outcome) {
        if let Some(outcomes) = &mut self.terms.outcomes {
            outcomes.push((ticket, outcome));
            return self.wake();
        }
        self.tell(ticket, |sent| sent.outcome = Some(outcome));
        self.wake();
    }

    fn tell(&mut self, ticket: Ticket, news: impl FnOnce(&mut SentState)) {
        if let Some(sent) = self.sent.get_mut(&ticket) {
            news(sent);
            sent.wake();
        }
    }

    pub fn close(&mut self, reason: String) {
        self.closed.get_or_insert(reason);
        self.wake();
        self.sent.values_mut().for_each(SentState::wake);
    }

    /// Whether the program has dropped the channel, and has handed over nothing more to send.
    pub fn is_done_with(&self) -> bool {
        self.dropped && self.closed.is_none() && self.outgoing.is_empty()
    }

    /// Whether the program has no handle of it left.
    pub fn is_over(&self) -> bool {
        self.dropped && self.closed.is_some() && self.sent.is_empty()
    }

    /// Whether a block waits for the program, or the channel has ended.
    pub fn has_arrived(&self) -> bool {
        !self.incoming.is_empty() || self.closed.is_some()
    }

    /// Whether its owner polls.
    pub const fn is_polled(&self) -> bool {
        self.terms.outcomes.is_some()
    }

    fn error(&self) -> Option<AppChannelError> {
        self.closed.clone().map(AppChannelError::Closed)
    }
}

impl State {
    /// A far node has opened a channel.
    pub fn accept(&mut self, peer: Fingerprint) -> ChannelId {
        let id = self.add();
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.peer_key = Some(peer);
        }
        self.accepted.push_back(id);
        self.wake_accepting();
        id
    }

    /// A block that was handed over.
    fn sent(&mut self, key: SentKey) -> Option<&mut SentState> {
        self.channels.get_mut(&key.channel)?.sent.get_mut(&key.ticket)
    }

    pub fn wake_accepting(&mut self) {
        core::mem::take(&mut self.accepting).into_values().for_each(std::task::Waker::wake);
    }

    pub fn add(&mut self) -> ChannelId {
        self.next += 1;
        self.channels.insert(self.next, ChannelState::default());
        self.next
    }

    /// Nothing more will happen.
    pub fn stop(&mut self, reason: &str) {
        self.stopped = true;
        self.channels.values_mut().for_each(|channel| channel.close(reason.to_owned()));
        self.wake_accepting();
    }
}

impl Waiter<'_> {
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<Result<(), AppChannelError>> {
        self.with(context, |channel| channel.open.then_some(Ok(())), Err)
    }

    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Option<ChannelId>> {
        let mut state = self.shared.state();
        if let Some(id) = state.accepted.pop_front() {
            return Poll::Ready(Some(id));
        }
        if state.stopped {
            return Poll::Ready(None);
        }
        state.accepting.insert(self.id, context.waker().clone());
        Poll::Pending
    }

    /// Hands `block` over; takes it out when there is room.
    pub fn poll_send(
        &self,
        block: &mut Option<Block>,
        context: &Context<'_>,
    ) -> Poll<Result<Ticket, AppChannelError>> {
        // A waiter hands over one block at the most: its own number serves as the block's.
        let ticket = self.id;
        let sent = self.with(
            context,
            |channel| {
                let room = channel.closed.is_none() && channel.outgoing.len() < OUTGOING_MAX;
                let block = if room { block.take() } else { None }?;
                let block = OutgoingBlock { ticket, block, until: None, after: None };
                channel.outgoing.push_back(block);
                channel.sent.insert(ticket, SentState::default());
                Some(Ok(ticket))
            },
            Err,
        );
        if sent.is_ready() {
            self.shared.waker.wake();
        }
        sent
    }

    /// The number of this one, which no other has.
    pub const fn number(&self) -> WaiterId {
        self.id
    }

    /// What `take` finds, or `failed` makes where the channel ends before.
    pub fn poll_for<T>(
        &self,
        context: &Context<'_>,
        take: impl FnMut(&mut ChannelState) -> Option<T>,
        failed: impl FnOnce(AppChannelError) -> T,
    ) -> Poll<T> {
        self.with(context, take, failed)
    }

    pub fn poll_recv(&self, context: &Context<'_>) -> Poll<Option<ArrivedBlock>> {
        self.with(context, |channel| channel.take().map(Some), |_| None)
    }

    fn with<T>(
        &self,
        context: &Context<'_>,
        mut take: impl FnMut(&mut ChannelState) -> Option<T>,
        failed: impl FnOnce(AppChannelError) -> T,
    ) -> Poll<T> {
        let mut state = self.shared.state();
        let Some(channel) = self.channel.and_then(|id| state.channels.get_mut(&id)) else {
            return Poll::Ready(failed(AppChannelError::Closed(
                "the channel has ended".to_owned(),
            )));
        };
        if let Some(taken) = take(channel) {
            return Poll::Ready(taken);
        }
        match channel.error() {
            Some(error) => Poll::Ready(failed(error)),
            None => {
                channel.waiting.insert(self.id, context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl SentWaiter<'_> {
    /// The outcome of the block; `None` if the channel ended first.
    pub fn poll_outcome(&self, context: &Context<'_>) -> Poll<Option<Outcome>> {
        self.shared.poll_sent(self.key, self.id, context, |sent| sent.outcome)
    }

    /// The session's name for the block; `None` if the session did not take it.
    pub fn poll_name(&self, context: &Context<'_>) -> Poll<Option<BlockId>> {
        let known = |sent: &SentState| sent.name.map(Some).or(sent.outcome.map(|_| None));
        self.shared.poll_sent(self.key, self.id, context, known).map(Option::flatten)
    }
}

impl Drop for SentWaiter<'_> {
    fn drop(&mut self) {
        let _waker = {
            let mut state = self.shared.state();
            state.sent(self.key).and_then(|sent| sent.waiting.remove(&self.id))
        };
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        // The waker may own this future: it is dropped after the lock.
        let _waker = {
            let mut state = self.shared.state();
            match self.channel {
                None => state.accepting.remove(&self.id),
                Some(id) => {
                    state.channels.get_mut(&id).and_then(|held| held.waiting.remove(&self.id))
                }
            }
        };
    }
}

impl Shared {
    pub fn new(waker: Waker) -> Self {
        Self { state: Mutex::default(), waker }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Wakes `waker` once at the next change of a channel.
    pub fn watch(&self, id: ChannelId, waker: std::task::Waker) {
        if let Some(channel) = self.state().channels.get_mut(&id) {
            channel.waiting.insert(POLLING, waker);
        }
    }

    /// Wakes the thread of the transport.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Asks for a session with a node.
    pub fn connect(&self, request: ConnectRequest) -> ChannelId {
        let mut state = self.state();
        let id = state.add();
        state.connecting.push_back((id, request));
        drop(state);
        self.waker.wake();
        id
    }

    /// Asks for a channel over a shared session.
    pub fn open(&self, request: OpenRequest) -> ChannelId {
        let mut state = self.state();
        let id = state.add();
        if state.stopped
            && let Some(channel) = state.channels.get_mut(&id)
        {
            channel.close("the node has stopped".to_owned());
        }
        state.opening.push_back((id, request));
        drop(state);
        self.waker.wake();
        id
    }

    /// A future that waits for `channel` to change, or, without one, for one that a far node opens.
    pub fn waiter(&self, channel: Option<ChannelId>) -> Waiter<'_> {
        let mut state = self.state();
        state.next += 1;
        Waiter { shared: self, id: state.next, channel }
    }

    /// A future that waits for news of a sent block.
    pub fn sent_waiter(&self, key: SentKey) -> SentWaiter<'_> {
        let mut state = self.state();
        state.next += 1;
        SentWaiter { shared: self, id: state.next, key }
    }

    /// The outcome of a block, for its owner, who waits under the block's own number; `None` if the
    /// channel ended first.
    pub fn poll_outcome(&self, key: SentKey, context: &Context<'_>) -> Poll<Option<Outcome>> {
        self.poll_sent(key, key.ticket, context, |sent| sent.outcome)
    }

    fn poll_sent<T>(
        &self,
        key: SentKey,
        waiter: WaiterId,
        context: &Context<'_>,
        news: impl FnOnce(&SentState) -> Option<T>,
    ) -> Poll<Option<T>> {
        let mut state = self.state();
        let channel = state.channels.get(&key.channel);
        let is_closed = channel.is_none_or(|channel| channel.closed.is_some());
        let Some(sent) = state.sent(key) else { return Poll::Ready(None) };
        match news(sent) {
            None if !is_closed => {
                sent.waiting.insert(waiter, context.waker().clone());
                Poll::Pending
            }
            known => Poll::Ready(known),
        }
    }

    /// The program does not ask for this block's outcome any more.
    pub fn forget_sent(&self, SentKey { channel, ticket }: SentKey) {
        // A waker in it may own what waits: it is dropped after the lock.
        let mut state = self.state();
        let sent = state.channels.get_mut(&channel).and_then(|held| held.sent.remove(&ticket));
        drop(state);
        drop(sent);
    }

    /// The program is done with a block of this length.
    pub fn release(&self, id: ChannelId, len: usize) {
        if let Some(channel) = self.state().channels.get_mut(&id) {
            channel.released.push(len);
        }
        self.waker.wake();
    }

    /// What `look` sees of a channel; the default where it is gone.
    pub fn see<T: Default>(&self, id: ChannelId, look: impl FnOnce(&ChannelState) -> T) -> T {
        self.state().channels.get(&id).map_or_else(T::default, look)
    }

    /// The program drops a channel: it is closed once the blocks handed over have an outcome.
    pub fn let_go(&self, id: ChannelId) {
        if let Some(channel) = self.state().channels.get_mut(&id) {
            channel.dropped = true;
        }
        self.waker.wake();
    }
}
