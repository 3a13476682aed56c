//! Calling the far nodes, and calling again those that are gone.

use super::forwarder::Forwarder;
use super::{ForwardNode, ForwardNotice};
use crate::SessionManager;
use skyhaul_sessions::{PathTarget, SessionId};
use skyhaul_transport::PathOptions;
use skyhaul_units::{Duration, Instant};

/// How it stands with each node that is to be called.
#[derive(Debug)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Clone, Copy, Default)]
struct Call {
    session: Option<SessionId>,
    was_up: bool,
    /// When to call; at once, at first.
    at: Instant,
    /// Calls in a row that brought nothing: the next one goes to the next address.
    failures: u32,
}

/// Between two calls of a node that does not answer; longer after each, up to the second.
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(10);

impl Calls {
    pub fn new(nodes: usize) -> Self {
        Self(vec![Call::default(); nodes])
    }

    /// Which node a session was called for.
    pub fn node_of(&self, id: SessionId) -> Option<usize> {
        self.0.iter().position(|call| call.session == Some(id))
    }

    /// When the next call is due.
    pub fn next_call(&self) -> Option<Instant> {
        self.0.iter().filter(|call| call.session.is_none()).map(|call| call.at).min()
    }
}

impl Forwarder {
    /// Calls the nodes that are to be called now.
    pub(super) fn call(&mut self, now: Instant, manager: &mut SessionManager) {
        for index in 0..self.calls.0.len() {
            let call = self.calls.0[index];
            if call.session.is_some() || now < call.at {
                continue;
            }
            let ForwardNode { peer, addresses, .. } = &self.nodes[index];
            let Some((socket, remote)) =
                addresses.get(call.failures as usize % addresses.len().max(1))
            else {
                continue;
            };
            match manager.connect_from(now, *socket, *remote, *peer) {
                Ok(id) => self.calls.0[index].session = Some(id),
                Err(error) => self.down(now, index, error.to_string()),
            }
        }
    }

    /// Both ends know each other.
    pub(super) fn greeted(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        name: String,
    ) {
        let Some(index) = self.calls.node_of(id) else {
            self.forwards.opened(id);
            return self.forwards.notice(&ForwardNotice::Called { node: name });
        };
        let call = &mut self.calls.0[index];
        let ForwardNode { name, addresses, .. } = &self.nodes[index];
        let node = name.clone();
        let first = call.failures as usize % addresses.len();
        for (place, (socket, remote)) in addresses.iter().enumerate() {
            if place != first {
                // A path that does not come up is missed by nobody: the session goes on without it.
                let target = PathTarget { socket: *socket, remote: *remote };
                let _ = manager.join(now, id, target, PathOptions::default());
            }
        }
        (call.was_up, call.failures) = (true, 0);
        self.forwards.notice(&ForwardNotice::NodeUp { node });
        self.forwards.opened(id);
    }

    /// A session is gone, or did not begin.
    pub(super) fn disconnected(&mut self, now: Instant, id: SessionId, reason: String) {
        let node = self.calls.node_of(id);
        let was_open = self.forwards.left(id);
        match (node, was_open) {
            (Some(node), _) => self.down(now, node, reason),
            (None, true) => self.forwards.notice(&ForwardNotice::Left { reason }),
            (None, false) => {}
        }
    }

    fn down(&mut self, now: Instant, index: usize, reason: String) {
        let call = &mut self.calls.0[index];
        call.session = None;
        call.at = now + (RETRY * (1 << call.failures.min(8))).min(RETRY_MAX);
        call.failures = call.failures.saturating_add(1);
        let (was_up, node) = (core::mem::take(&mut call.was_up), self.nodes[index].name.clone());
        self.forwards.unreached(index);
        self.forwards.notice(&ForwardNotice::NodeDown { node, was_up, reason });
    }
}
