//! Connecting to the far nodes, and again to those that are gone.

use crate::ForwardNode;
use skyhaul_net::SessionManager;
use skyhaul_sessions::{PathTarget, SessionId};
use skyhaul_transport::PathOptions;
use skyhaul_units::{Duration, Instant};

/// All far nodes, and the session with each.
#[derive(Debug)]
pub(super) struct FarNodes {
    nodes: Vec<FarNode>,
}

#[derive(Debug)]
struct FarNode {
    node: ForwardNode,
    session: Option<SessionId>,
    was_up: bool,
    /// When to connect next.
    at: Instant,
    /// Failed attempts in a row: the next one goes to the next address.
    failures: u32,
}

/// A node is not connected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NodeDown {
    pub index: usize,
    pub name: String,
    pub was_up: bool,
    pub reason: String,
}

/// Between two attempts to connect; twice as long after each, up to the second.
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(10);

impl FarNodes {
    pub fn new(nodes: Vec<ForwardNode>) -> Self {
        let far = |node| {
            let (session, was_up, at, failures) = (None, false, Instant::ZERO, 0);
            FarNode { node, session, was_up, at, failures }
        };
        Self { nodes: nodes.into_iter().map(far).collect() }
    }

    /// The node for which a session was begun.
    pub fn node_of(&self, id: SessionId) -> Option<usize> {
        self.nodes.iter().position(|far| far.session == Some(id))
    }

    /// When the next attempt is due.
    pub fn next_attempt(&self) -> Option<Instant> {
        self.nodes.iter().filter(|far| far.session.is_none()).map(|far| far.at).min()
    }

    /// Connects to the nodes whose time has come. Returns those that cannot be connected to.
    pub fn connect(&mut self, now: Instant, manager: &mut SessionManager) -> Vec<NodeDown> {
        let mut failed = Vec::new();
        for index in 0..self.nodes.len() {
            let far = &mut self.nodes[index];
            if far.session.is_some() || now < far.at {
                continue;
            }
            let ForwardNode { peer, addresses, .. } = &far.node;
            let Some((socket, remote)) =
                addresses.get(far.failures as usize % addresses.len().max(1))
            else {
                continue;
            };
            match manager.connect_from(now, *socket, *remote, *peer) {
                Ok(id) => far.session = Some(id),
                Err(error) => failed.push(self.down(now, index, error.to_string())),
            }
        }
        failed
    }

    /// The handshake with a node is complete: its other addresses become further paths. Returns
    /// the node's name.
    pub fn up(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
    ) -> Option<String> {
        let far = self.nodes.iter_mut().find(|far| far.session == Some(id))?;
        let ForwardNode { name, addresses, .. } = &far.node;
        let first = far.failures as usize % addresses.len();
        for (index, (socket, remote)) in addresses.iter().enumerate() {
            if index != first {
                // The session goes on without a path that cannot be begun.
                let target = PathTarget { socket: *socket, remote: *remote };
                let _ = manager.join(now, id, target, PathOptions::default());
            }
        }
        (far.was_up, far.failures) = (true, 0);
        Some(name.clone())
    }

    /// A node's session has ended, or did not begin.
    pub fn down(&mut self, now: Instant, index: usize, reason: String) -> NodeDown {
        let far = &mut self.nodes[index];
        far.session = None;
        far.at = now + (RETRY * (1 << far.failures.min(8))).min(RETRY_MAX);
        far.failures = far.failures.saturating_add(1);
        let (was_up, name) = (core::mem::take(&mut far.was_up), far.node.name.clone());
        NodeDown { index, name, was_up, reason }
    }
}
