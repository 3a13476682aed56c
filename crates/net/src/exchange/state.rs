//! What the program's side and the transport's thread share.

use super::{LinkError, Way};
use crate::Waker;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, BlockId, Outcome, PathId, PathStatus, Received, Stats};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A link of one exchange.
pub(super) type LinkId = u64;
/// A block handed over, before the session has named it.
pub(super) type Ticket = u64;

/// A node to call, over at least one path.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub ways: Vec<Way>,
    pub peer: Fingerprint,
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
    pub links: BTreeMap<LinkId, LinkState>,
    pub accepted: VecDeque<LinkId>,
    accepting: Vec<std::task::Waker>,
    next: u64,
    pub stopped: bool,
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
    pub incoming: VecDeque<Received>,
    /// Lengths of blocks that the program is done with.
    pub released: Vec<usize>,
    /// Blocks whose fate the program waits for, and those known.
    pub fates: BTreeMap<Ticket, Fate>,
    pub stats: Stats,
    pub paths: Vec<(PathId, PathStatus)>,
    /// Paths that did not come up, and why; no more than were called for.
    pub refused: Vec<String>,
    waiting: Vec<std::task::Waker>,
}

#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The session's name for the block, from when it took it.
    pub name: Option<BlockId>,
    pub outcome: Option<Outcome>,
    waiting: Option<std::task::Waker>,
}

/// Blocks between program and session: enough to keep the thread from waiting for the program.
const OUTGOING_MAX: usize = 64;

impl LinkState {
    /// Something changed: whoever waits looks again.
    pub fn wake(&mut self) {
        self.waiting.drain(..).for_each(std::task::Waker::wake);
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
            fate.waiting.take().into_iter().for_each(std::task::Waker::wake);
        }
    }

    pub fn close(&mut self, reason: String) {
        self.closed.get_or_insert(reason);
        self.wake();
        for fate in self.fates.values_mut() {
            fate.waiting.take().into_iter().for_each(std::task::Waker::wake);
        }
    }

    fn wait(&mut self, context: &Context<'_>) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
            self.waiting.push(context.waker().clone());
        }
    }

    fn error(&self) -> Option<LinkError> {
        self.closed.clone().map(LinkError::Closed)
    }
}

impl State {
    /// A node called.
    pub fn accept(&mut self) -> LinkId {
        let id = self.add();
        self.accepted.push_back(id);
        self.accepting.drain(..).for_each(std::task::Waker::wake);
        id
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
        self.accepting.drain(..).for_each(std::task::Waker::wake);
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

    pub fn poll_open(&self, id: LinkId, context: &Context<'_>) -> Poll<Result<(), LinkError>> {
        self.with(id, context, |link| link.open.then_some(Ok(())), Err)
    }

    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Option<LinkId>> {
        let mut state = self.state();
        if let Some(id) = state.accepted.pop_front() {
            return Poll::Ready(Some(id));
        }
        if state.stopped {
            return Poll::Ready(None);
        }
        state.accepting.push(context.waker().clone());
        Poll::Pending
    }

    /// Hands `block` over; takes it out when there is room.
    pub fn poll_send(
        &self,
        id: LinkId,
        block: &mut Option<Block>,
        context: &Context<'_>,
    ) -> Poll<Result<Ticket, LinkError>> {
        let mut state = self.state();
        state.next += 1;
        let ticket = state.next;
        drop(state);
        let sent = self.with(
            id,
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
            self.waker.wake();
        }
        sent
    }

    pub fn poll_recv(&self, id: LinkId, context: &Context<'_>) -> Poll<Option<Received>> {
        self.with(id, context, |link| link.incoming.pop_front().map(Some), |_| None)
    }

    /// What became of a block; `None` where the link ended first.
    pub fn poll_fate(&self, id: LinkId, ticket: Ticket, context: &Context<'_>) -> Poll<Option<Outcome>> {
        self.poll_news(id, ticket, context, |fate| fate.outcome)
    }

    /// The session's name for a block; `None` where the session did not take it.
    pub fn poll_name(&self, id: LinkId, ticket: Ticket, context: &Context<'_>) -> Poll<Option<BlockId>> {
        let known = |fate: &Fate| fate.name.map(Some).or(fate.outcome.map(|_| None));
        self.poll_news(id, ticket, context, known).map(Option::flatten)
    }

    fn poll_news<T>(
        &self,
        id: LinkId,
        ticket: Ticket,
        context: &Context<'_>,
        news: impl FnOnce(&Fate) -> Option<T>,
    ) -> Poll<Option<T>> {
        let mut state = self.state();
        let Some(link) = state.links.get_mut(&id) else { return Poll::Ready(None) };
        let closed = link.closed.is_some();
        let Some(fate) = link.fates.get_mut(&ticket) else { return Poll::Ready(None) };
        match news(fate) {
            None if !closed => {
                fate.waiting = Some(context.waker().clone());
                Poll::Pending
            }
            known => Poll::Ready(known),
        }
    }

    pub fn forget_fate(&self, id: LinkId, ticket: Ticket) {
        if let Some(link) = self.state().links.get_mut(&id) {
            link.fates.remove(&ticket);
        }
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

    fn with<T>(
        &self,
        id: LinkId,
        context: &Context<'_>,
        mut take: impl FnMut(&mut LinkState) -> Option<T>,
        failed: impl FnOnce(LinkError) -> T,
    ) -> Poll<T> {
        let mut state = self.state();
        let Some(link) = state.links.get_mut(&id) else {
            return Poll::Ready(failed(LinkError::Closed("the link is gone".to_owned())));
        };
        if let Some(taken) = take(link) {
            return Poll::Ready(taken);
        }
        match link.error() {
            Some(error) => Poll::Ready(failed(error)),
            None => {
                link.wait(context);
                Poll::Pending
            }
        }
    }
}
