//! The sessions that carry forwards, and which far nodes can be reached over them.

use crate::peer::Peer;
use skyhaul_sessions::SessionId;
use std::collections::BTreeMap;

/// All sessions, and the state of each node that forwards lead to.
#[derive(Debug)]
pub(super) struct Sessions {
    peers: BTreeMap<SessionId, Peer>,
    /// One for each of [`Forwarding::nodes`](crate::Forwarding::nodes).
    reaches: Vec<Reach>,
}

/// Over which session a listener's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerOwner {
    /// That with the node of this index in the setup.
    Node(usize),
    /// That of the far node which asked to listen.
    Session(SessionId),
}

/// The state of the session that a listener needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Open(SessionId),
    /// The first connection attempt has not been answered yet.
    Connecting,
    Down,
}

impl Sessions {
    /// No sessions; `nodes` far nodes are being connected to.
    pub fn new(nodes: usize) -> Self {
        Self { peers: BTreeMap::new(), reaches: vec![Reach::Connecting; nodes] }
    }

    pub fn get(&self, id: SessionId) -> Option<&Peer> {
        self.peers.get(&id)
    }

    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Peer> {
        self.peers.get_mut(&id)
    }

    pub fn ids(&self) -> Vec<SessionId> {
        self.peers.keys().copied().collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    pub fn insert(&mut self, id: SessionId, peer: Peer) {
        self.peers.insert(id, peer);
    }

    /// The handshake of a session is complete. Returns the node that it leads to, if it is one of
    /// the setup.
    pub fn set_open(&mut self, id: SessionId) -> Option<usize> {
        let peer = self.peers.get_mut(&id)?;
        peer.open = true;
        let node = peer.node?;
        if let Some(reach) = self.reaches.get_mut(node) {
            *reach = Reach::Open(id);
        }
        Some(node)
    }

    /// A node does not answer, or its session has ended.
    pub fn set_down(&mut self, node: usize) {
        if let Some(reach) = self.reaches.get_mut(node) {
            *reach = Reach::Down;
        }
    }

    /// Takes out a session that has ended.
    pub fn remove(&mut self, id: SessionId) -> Option<Peer> {
        let of_it = self.reaches.iter_mut().filter(|reach| **reach == Reach::Open(id));
        of_it.for_each(|reach| *reach = Reach::Down);
        self.peers.remove(&id)
    }

    pub fn reach(&self, owner: ListenerOwner) -> Reach {
        match owner {
            ListenerOwner::Node(node) => self.reaches.get(node).copied().unwrap_or(Reach::Down),
            ListenerOwner::Session(id) if self.peers.get(&id).is_some_and(|peer| peer.open) => {
                Reach::Open(id)
            }
            ListenerOwner::Session(_) => Reach::Down,
        }
    }
}
