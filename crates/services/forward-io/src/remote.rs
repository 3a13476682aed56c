//! What this node asks its far nodes to listen at.

use crate::context::ForwardContext;
use crate::refusal::RequestRefusal;
use crate::sessions::{ListenerOwner, Reach};
use crate::{ForwardNotice, Remote};
use skyhaul_forward::{Local, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};

/// All remote listeners, in the order of [`Forwarding::remotes`](crate::Forwarding::remotes).
#[derive(Debug)]
pub(super) struct RemoteListeners {
    all: Vec<RemoteListener>,
    /// The far nodes' names.
    nodes: Vec<String>,
}

/// One of them.
#[derive(Debug)]
struct RemoteListener {
    remote: Remote,
    /// The far node has listened there at some time.
    was_heard: bool,
    /// When to ask again: the far node may not have noticed yet that the previous session has
    /// ended, and still listens for that.
    again: Option<Instant>,
}

/// Between two requests that are refused.
const AGAIN: Duration = Duration::from_secs(5);

impl RemoteListeners {
    pub fn new(remotes: Vec<Remote>, nodes: Vec<String>) -> Self {
        let listener = |remote| RemoteListener { remote, was_heard: false, again: None };
        Self { all: remotes.into_iter().map(listener).collect(), nodes }
    }

    /// The targets for which a node is asked to listen.
    pub fn targets_at(&self, node: Option<usize>) -> Vec<Target> {
        let at_node = self.all.iter().filter(|held| Some(held.remote.node) == node);
        at_node.map(|held| held.remote.wish.target.clone()).collect()
    }

    /// Asks a node for all that it is to listen at.
    pub fn ask_all(&mut self, context: &mut ForwardContext, session: SessionId, node: usize) {
        for index in 0..self.all.len() {
            if self.all[index].remote.node == node {
                self.ask(context, session, index);
            }
        }
    }

    fn ask(&mut self, context: &mut ForwardContext, session: SessionId, index: usize) {
        let listener = &mut self.all[index];
        listener.again = None;
        if let (Some(peer), Ok(number)) = (context.sessions.get_mut(session), u32::try_from(index))
        {
            peer.mux.listens.ask(number, listener.remote.wish.clone());
        }
    }

    /// Repeats requests that were refused.
    pub fn ask_again(&mut self, context: &mut ForwardContext) {
        for index in 0..self.all.len() {
            let listener = &mut self.all[index];
            if listener.again.is_none_or(|again| context.now < again) {
                continue;
            }
            listener.again = None;
            let owner = ListenerOwner::Node(listener.remote.node);
            if let Reach::Open(session) = context.sessions.reach(owner) {
                self.ask(context, session, index);
            }
        }
    }

    /// The far node listens at `at`.
    pub fn granted(
        &mut self,
        context: &mut ForwardContext,
        session: SessionId,
        number: u32,
        at: Local,
    ) {
        let Some(index) = self.index(context, session, number) else { return };
        let listener = &mut self.all[index];
        listener.was_heard = true;
        let Remote { node, wish } = &listener.remote;
        let (node, target) = (self.nodes[*node].clone(), wish.target.clone());
        context.notice(&ForwardNotice::FarListens { node, at, target });
    }

    /// The far node does not listen.
    pub fn refused(
        &mut self,
        context: &mut ForwardContext,
        session: SessionId,
        number: u32,
        refusal: RequestRefusal,
    ) {
        let Some(index) = self.index(context, session, number) else { return };
        let listener = &mut self.all[index];
        listener.again = Some(context.now + AGAIN);
        let (was_heard, Remote { node, wish }) = (listener.was_heard, &listener.remote);
        let (node, at) = (self.nodes[*node].clone(), wish.at.clone());
        let RequestRefusal { reason, sentence } = refusal;
        context.notice(&ForwardNotice::FarRefuses { node, at, was_heard, reason, sentence });
    }

    /// Which request the far node of `session` answers; `None` where there is none of this number.
    fn index(&self, context: &ForwardContext, session: SessionId, number: u32) -> Option<usize> {
        let node = context.sessions.get(session)?.node.filter(|node| *node < self.nodes.len())?;
        let index = usize::try_from(number).ok()?;
        self.all.get(index).filter(|held| held.remote.node == node).map(|_| index)
    }
}
