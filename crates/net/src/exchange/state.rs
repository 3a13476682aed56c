//! What the program's side and the transport's thread share.

use super::LinkError;
use crate::Waker;
use core::net::SocketAddr;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{Block, Outcome, Received, Stats};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A link of one exchange.
pub(super) type LinkId = u64;
/// A block handed over, before the session has named it.
pub(super) type Ticket = u64;

/// A node to call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub remote: SocketAddr,
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
    waiting: Vec<std::task::Waker>,
}

#[derive(Debug, Default)]
pub(super) struct Fate {
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

    pub fn settle(&mut self, ticket: Ticket, outcome: Outcome) {
        if let Some(fate) = self.fates.get_mut(&ticket) {
            fate.outcome = Some(outcome);
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

    pub fn poll_fate(&self, id: LinkId, ticket: Ticket, context: &Context<'_>) -> Poll<Option<Outcome>> {
        let mut state = self.state();
        let Some(link) = state.links.get_mut(&id) else { return Poll::Ready(None) };
        let closed = link.closed.is_some();
        let Some(fate) = link.fates.get_mut(&ticket) else { return Poll::Ready(None) };
        if fate.outcome.is_some() || closed {
            return Poll::Ready(fate.outcome);
        }
        fate.waiting = Some(context.waker().clone());
        Poll::Pending
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

    pub fn stats(&self, id: LinkId) -> Stats {
        self.state().links.get(&id).map_or(Stats::default(), |link| link.stats)
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
