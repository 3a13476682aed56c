//! The sessions of one node, and the connections that are their paths.

use super::endpoint_set::{ConnectionKey, EndpointSet};
use super::event::SessionId;
use crate::Endpoint;
use skyhaul_identity::{Fingerprint, Keying};
use skyhaul_transport::{PathId, PathOptions, Session, SessionConfig, give_out, take_in};
use skyhaul_units::Instant;
use std::collections::BTreeMap;

/// Rounds of turns on a shared line at one instant, of which each sends a datagram at least: more
/// than the room of all paths, so that only a fault reaches it.
const ROUNDS_MAX: usize = 1 << 14;

/// What the two ends of a connection have agreed on when it is up.
pub(super) struct Agreed {
    pub(super) peer: Fingerprint,
    pub(super) keying: Keying,
    /// The protocol version.
    pub(super) version: u16,
}

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct SessionTable {
    sessions: BTreeMap<SessionId, HeldSession>,
    next_id: u64,
}

impl SessionTable {
    pub(super) fn new_id(&mut self) -> SessionId {
        self.next_id += 1;
        SessionId(self.next_id - 1)
    }

    pub(super) fn insert(&mut self, id: SessionId, held: HeldSession) {
        self.sessions.insert(id, held);
    }

    pub(super) fn remove(&mut self, id: SessionId) {
        self.sessions.remove(&id);
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&HeldSession> {
        self.sessions.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut HeldSession> {
        self.sessions.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, &HeldSession)> {
        self.sessions.iter().map(|(id, held)| (*id, held))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut HeldSession)> {
        self.sessions.iter_mut().map(|(id, held)| (*id, held))
    }

    /// Serves the sessions that share a line again and again, each for its turn, until none of them
    /// sends or gives way. Whether anything was sent.
    pub(super) fn fill_shared<C: Endpoint>(
        &mut self,
        endpoints: &mut EndpointSet<C>,
        now: Instant,
    ) -> bool {
        let mut any = false;
        for _ in 0..ROUNDS_MAX {
            let mut moved = false;
            for held in self.sessions.values_mut() {
                if held.session.sender().sharing().is_shared() && held.session.has_symbol() {
                    let sent = held.refill(endpoints, now);
                    any |= sent;
                    moved |= sent | held.session.sender_mut().sharing_mut().gives_way();
                }
            }
            if !moved {
                break;
            }
        }
        any
    }
}

/// The keys of the far end of a session: two while it changes its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerKeyPair {
    /// The one that it shows where it is called.
    pub(super) shown: Fingerprint,
    /// Another one with which it may call.
    pub(super) other: Option<Fingerprint>,
}

impl PeerKeyPair {
    pub(super) fn has(self, key: Fingerprint) -> bool {
        self.shown == key || self.other == Some(key)
    }
}

/// A session, its paths, and what a further path must prove.
pub(super) struct HeldSession {
    pub(super) session: Session,
    pub(super) paths: BTreeMap<PathId, ConnectionKey>,
    /// Of the first connection.
    pub(super) keying: Keying,
    pub(super) peer: PeerKeyPair,
    /// Numbers of paths are not used again.
    pub(super) next_path: u16,
}

impl HeldSession {
    /// A session whose first path is the connection `key` with `peer`.
    pub(super) fn new(config: SessionConfig, key: ConnectionKey, agreed: Agreed) -> Self {
        let Agreed { peer, keying, version } = agreed;
        let mut session = Session::new(SessionConfig { version, ..config });
        session.add_path(PathId(0), PathOptions::default());
        let (paths, peer) =
            (BTreeMap::from([(PathId(0), key)]), PeerKeyPair { shown: peer, other: None });
        Self { session, paths, keying, peer, next_path: 1 }
    }

    /// Moves everything that can move between the session and its paths. Whether another session of
    /// its line may have more to send, or this one after the others.
    pub(super) fn serve<C: Endpoint>(
        &mut self,
        endpoints: &mut EndpointSet<C>,
        now: Instant,
    ) -> bool {
        let Self { session, paths, .. } = self;
        for (id, key) in paths.iter() {
            if let Some(path) = endpoints.connection(*key) {
                take_in(session, *id, path, now);
            }
        }
        session.handle_timeout(now);
        let order = if paths.len() == 1 {
            paths.keys().copied().collect()
        } else {
            session.paths().fill_order()
        };
        let mut any = false;
        for id in order {
            let Some(key) = paths.get(&id) else { continue };
            if let Some(path) = endpoints.connection(*key) {
                any |= give_out(session, id, path, now);
            }
        }
        if let Some(reason) = session.control_mut().wants_close() {
            for key in paths.values() {
                if let Some(path) = endpoints.connection(*key) {
                    path.close(now, &reason);
                }
            }
        }
        let sharing = session.sender_mut().sharing_mut();
        (any && sharing.is_shared()) || sharing.gives_way()
    }

    /// Fills the room of the paths with symbols; whether any was given out.
    pub(super) fn refill<C: Endpoint>(
        &mut self,
        endpoints: &mut EndpointSet<C>,
        now: Instant,
    ) -> bool {
        let mut any = false;
        for id in self.session.paths().fill_order() {
            let Some(key) = self.paths.get(&id) else { continue };
            if let Some(path) = endpoints.connection(*key) {
                any |= give_out(&mut self.session, id, path, now);
            }
        }
        any
    }
}
