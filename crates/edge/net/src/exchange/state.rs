//! What the program's side and the transport's thread share.

use super::{LinkError, PathChoice};
use crate::Waker;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, BlockId, Outcome, PathId, PathStatus, Received, Stats, cost};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A link of one exchange.
pub(super) type LinkId = u64;
/// A block handed over, before the session has named it.
pub(super) type Ticket = u64;

/// Something of the program that waits.
type WaiterId = u64;

/// A node to call, over at least one path.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub ways: Vec<PathChoice>,
    pub peer: Fingerprint,
}

/// A link that is wanted over the session with a node, which somebody else holds.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The place of the node among those that whoever holds the sessions knows.
    pub node: usize,
    /// Under which class its blocks go; empty for the default one.
    pub class: String,
}

/// Both sides' meeting place.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    waker: Waker,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub calls: VecDeque<(LinkId, Call)>,
    pub wanted: VecDeque<(LinkId, Wanted)>,
    pub links: BTreeMap<LinkId, LinkState>,
    pub accepted: VecDeque<LinkId>,
    accepting: BTreeMap<WaiterId, std::task::Waker>,
    next: u64,
    pub stopped: bool,
}

/// A block that has arrived, for the program to take.
#[derive(Debug)]
pub(super) struct Came {
    pub received: Received,
    /// It counts against a window until the program is done with it.
    pub is_counted: bool,
}

/// One link.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    pub open: bool,
    /// The far end's name and key, once they are known.
    pub peer: (String, Option<Fingerprint>),
    pub closed: Option<String>,
    /// The program has let go of it.
    pub dropped: bool,
    /// Blocks on their way to the session: at most [`OUTGOING_MAX`].
    pub outgoing: VecDeque<(Ticket, Block)>,
    /// Blocks that have arrived: the receive window bounds them.
    incoming: VecDeque<Came>,
    /// Cost of those among them that count against no window.
    uncounted: u64,
    /// Lengths of blocks that the program is done with.
    pub released: Vec<usize>,
    /// Blocks whose fate the program waits for, and those known.
    pub fates: BTreeMap<Ticket, Fate>,
    pub stats: Stats,
    pub paths: Vec<(PathId, PathStatus)>,
    /// Paths that did not come up, and why; no more than were called for.
    pub refused: Vec<String>,
    /// Those who wait for anything of the link, each once.
    waiting: BTreeMap<WaiterId, std::task::Waker>,
}

/// Something of the program that waits for a link, or for a call. Whoever gives up waiting leaves
/// nothing behind.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    shared: &'a Shared,
    id: WaiterId,
    link: Option<LinkId>,
}

#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The session's name for the block, from when it took it.
    pub name: Option<BlockId>,
    pub outcome: Option<Outcome>,
    /// Those who wait for either, each once.
    waiting: BTreeMap<WaiterId, std::task::Waker>,
}

impl Fate {
    fn wake(&mut self) {
        core::mem::take(&mut self.waiting).into_values().for_each(std::task::Waker::wake);
    }
}

/// Something of the program that waits for news of a block. Whoever gives up waiting leaves nothing
/// behind.
#[derive(Debug)]
pub(super) struct FateWaiter<'a> {
    shared: &'a Shared,
    id: WaiterId,
    block: (LinkId, Ticket),
}

impl Came {
    fn uncounted(&self) -> u64 {
        if self.is_counted { 0 } else { cost(self.received.bytes.len()) }
    }
}

/// Blocks between program and session: enough to keep the thread from waiting for the program.
const OUTGOING_MAX: usize = 64;

impl LinkState {
    /// Something changed: whoever waits looks again.
    pub fn wake(&mut self) {
        core::mem::take(&mut self.waiting).into_values().for_each(std::task::Waker::wake);
    }

    /// A block has arrived.
    pub fn arrived(&mut self, came: Came) {
        self.uncounted += came.uncounted();
        self.incoming.push_back(came);
        self.wake();
    }

    /// Cost of blocks that the program has not taken and that count against no window.
    pub const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    fn take(&mut self) -> Option<Came> {
        let came = self.incoming.pop_front()?;
        self.uncounted -= came.uncounted();
        Some(came)
    }

    /// The session took the block.
    pub fn named(&mut self, ticket: Ticket, name: BlockId) {
        self.tell(ticket, |fate| fate.name = Some(name));
    }

    pub fn settle(&mut self, ticket: Ticket, outcome: Outcome) {
        self.tell(ticket, |fate| fate.outcome = Some(outcome));
    }

    fn tell(&mut self, ticket: Ticket, news: impl FnOnce(&mut Fate)) {
        if let Some(fate) = self.fates.get_mut(&ticket) {
            news(fate);
            fate.wake();
        }
    }

    pub fn close(&mut self, reason: String) {
        self.closed.get_or_insert(reason);
        self.wake();
        self.fates.values_mut().for_each(Fate::wake);
    }

    /// Whether nobody will ask for anything of it any more.
    pub fn is_over(&self) -> bool {
        self.dropped && self.closed.is_some() && self.fates.is_empty()
    }

    fn error(&self) -> Option<LinkError> {
        self.closed.clone().map(LinkError::Closed)
    }
}

impl State {
    /// A node called.
    pub fn accept(&mut self, peer: Fingerprint) -> LinkId {
        let id = self.add();
        if let Some(link) = self.links.get_mut(&id) {
            link.peer.1 = Some(peer);
        }
        self.accepted.push_back(id);
        self.wake_accepting();
        id
    }

    fn wake_accepting(&mut self) {
        core::mem::take(&mut self.accepting).into_values().for_each(std::task::Waker::wake);
    }

    fn add(&mut self) -> LinkId {
        self.next += 1;
        self.links.insert(self.next, LinkState::default());
        self.next
    }

    /// Nothing more will happen.
    pub fn stop(&mut self, reason: &str) {
        self.stopped = true;
        self.links.values_mut().for_each(|link| link.close(reason.to_owned()));
        self.wake_accepting();
    }
}

impl Waiter<'_> {
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<Result<(), LinkError>> {
        self.with(context, |link| link.open.then_some(Ok(())), Err)
    }

    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Option<LinkId>> {
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
    ) -> Poll<Result<Ticket, LinkError>> {
        // A waiter hands over one block at the most: its own number serves as the block's.
        let ticket = self.id;
        let sent = self.with(
            context,
            |link| {
                let room = link.closed.is_none() && link.outgoing.len() < OUTGOING_MAX;
                let block = if room { block.take() } else { None }?;
                link.outgoing.push_back((ticket, block));
                link.fates.insert(ticket, Fate::default());
                Some(Ok(ticket))
            },
            Err,
        );
        if sent.is_ready() {
            self.shared.waker.wake();
        }
        sent
    }

    pub fn poll_recv(&self, context: &Context<'_>) -> Poll<Option<Came>> {
        self.with(context, |link| link.take().map(Some), |_| None)
    }

    fn with<T>(
        &self,
        context: &Context<'_>,
        mut take: impl FnMut(&mut LinkState) -> Option<T>,
        failed: impl FnOnce(LinkError) -> T,
    ) -> Poll<T> {
        let mut state = self.shared.state();
        let Some(link) = self.link.and_then(|link| state.links.get_mut(&link)) else {
            return Poll::Ready(failed(LinkError::Closed("the channel has ended".to_owned())));
        };
        if let Some(taken) = take(link) {
            return Poll::Ready(taken);
        }
        match link.error() {
            Some(error) => Poll::Ready(failed(error)),
            None => {
                link.waiting.insert(self.id, context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl FateWaiter<'_> {
    /// What became of the block; `None` where the link ended first.
    pub fn poll_outcome(&self, context: &Context<'_>) -> Poll<Option<Outcome>> {
        self.shared.poll_news(self.block, self.id, context, |fate| fate.outcome)
    }

    /// The session's name for the block; `None` where the session did not take it.
    pub fn poll_name(&self, context: &Context<'_>) -> Poll<Option<BlockId>> {
        let known = |fate: &Fate| fate.name.map(Some).or(fate.outcome.map(|_| None));
        self.shared.poll_news(self.block, self.id, context, known).map(Option::flatten)
    }
}

impl Drop for FateWaiter<'_> {
    fn drop(&mut self) {
        let (link, ticket) = self.block;
        let _waker = {
            let mut state = self.shared.state();
            let fate = state.links.get_mut(&link).and_then(|link| link.fates.get_mut(&ticket));
            fate.and_then(|fate| fate.waiting.remove(&self.id))
        };
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        // What wakes may hold what waits: it is let go of behind the lock.
        let _waker = {
            let mut state = self.shared.state();
            match self.link {
                None => state.accepting.remove(&self.id),
                Some(link) => {
                    state.links.get_mut(&link).and_then(|link| link.waiting.remove(&self.id))
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

    pub fn call(&self, call: Call) -> LinkId {
        let mut state = self.state();
        let id = state.add();
        state.calls.push_back((id, call));
        drop(state);
        self.waker.wake();
        id
    }

    pub fn want(&self, wanted: Wanted) -> LinkId {
        let mut state = self.state();
        let id = state.add();
        if state.stopped
            && let Some(link) = state.links.get_mut(&id)
        {
            link.close("the node has stopped".to_owned());
        }
        state.wanted.push_back((id, wanted));
        drop(state);
        self.waker.wake();
        id
    }

    /// Something that waits for `link`, or, without one, for a call.
    pub fn waiter(&self, link: Option<LinkId>) -> Waiter<'_> {
        let mut state = self.state();
        state.next += 1;
        Waiter { shared: self, id: state.next, link }
    }

    /// Something that waits for news of a block.
    pub fn fate_waiter(&self, link: LinkId, ticket: Ticket) -> FateWaiter<'_> {
        let mut state = self.state();
        state.next += 1;
        FateWaiter { shared: self, id: state.next, block: (link, ticket) }
    }

    /// What became of a block; `None` where the link ended first. For the one that owns it, whose
    /// number as a waiter is the block's.
    pub fn poll_fate(
        &self,
        block: (LinkId, Ticket),
        context: &Context<'_>,
    ) -> Poll<Option<Outcome>> {
        self.poll_news(block, block.1, context, |fate| fate.outcome)
    }

    fn poll_news<T>(
        &self,
        (link, ticket): (LinkId, Ticket),
        waiter: WaiterId,
        context: &Context<'_>,
        news: impl FnOnce(&Fate) -> Option<T>,
    ) -> Poll<Option<T>> {
        let mut state = self.state();
        let Some(link) = state.links.get_mut(&link) else { return Poll::Ready(None) };
        let closed = link.closed.is_some();
        let Some(fate) = link.fates.get_mut(&ticket) else { return Poll::Ready(None) };
        match news(fate) {
            None if !closed => {
                fate.waiting.insert(waiter, context.waker().clone());
                Poll::Pending
            }
            known => Poll::Ready(known),
        }
    }

    pub fn forget_fate(&self, id: LinkId, ticket: Ticket) {
        // What wakes may hold what waits: it is let go of behind the lock.
        let _fate = self.state().links.get_mut(&id).and_then(|link| link.fates.remove(&ticket));
    }

    pub fn release(&self, id: LinkId, len: usize) {
        if let Some(link) = self.state().links.get_mut(&id) {
            link.released.push(len);
        }
        self.waker.wake();
    }

    /// What `look` sees of a link; nothing where it is gone.
    pub fn see<T: Default>(&self, id: LinkId, look: impl FnOnce(&LinkState) -> T) -> T {
        self.state().links.get(&id).map_or_else(T::default, look)
    }

    /// The program lets go of a link: it is closed once what was handed over has settled.
    pub fn let_go(&self, id: LinkId) {
        if let Some(link) = self.state().links.get_mut(&id) {
            link.dropped = true;
        }
        self.waker.wake();
    }
}
