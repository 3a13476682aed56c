//! The connections of one endpoint, and whose turn it is to send.

use super::held::HeldConnection;
use crate::memories::Memories;
use noq_proto::ConnectionHandle;
use skyhaul_congestion::Memory;
use skyhaul_sessions::ConnectionId;
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Connections by their ids, and by the handles of the state machine.
pub(super) struct ConnectionTable {
    connections: BTreeMap<ConnectionId, HeldConnection>,
    by_handle: BTreeMap<usize, ConnectionId>,
    next_id: u64,
    /// The connection polled for datagrams last: the next one has its turn first.
    turn: ConnectionId,
    memories: Memories,
}

impl ConnectionTable {
    pub(super) fn new() -> Self {
        Self {
            connections: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            next_id: 0,
            turn: ConnectionId(0),
            memories: Memories::default(),
        }
    }

    /// Whether there is no room for one more connection.
    pub(super) fn is_full(&self) -> bool {
        self.connections.len() >= MAX_CONNECTIONS
    }

    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn insert(&mut self, mut held: HeldConnection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        held.id = id;
        self.next_id += 1;
        self.by_handle.insert(held.handle.0, id);
        self.connections.insert(id, held);
        id
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&HeldConnection> {
        self.connections.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut HeldConnection> {
        self.connections.get_mut(&id)
    }

    pub(super) fn by_handle(&self, handle: ConnectionHandle) -> Option<ConnectionId> {
        self.by_handle.get(&handle.0).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &HeldConnection)> {
        self.connections.iter().map(|(id, held)| (*id, held))
    }

    /// Incoming connections that are not up yet.
    pub(super) fn in_setup(&self) -> impl Iterator<Item = (ConnectionId, &HeldConnection)> {
        self.iter().filter(|(_, held)| held.setup_end().is_some())
    }

    /// Connections with an expired timer.
    pub(super) fn due(&self, now: Instant) -> Vec<ConnectionId> {
        let due = self.iter().filter(|(_, held)| held.due().is_some_and(|at| at <= now));
        due.map(|(id, _)| id).collect()
    }

    /// When the first timer expires.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(HeldConnection::due).min()
    }

    /// The connection whose turn is next.
    pub(super) fn next_turn(&self) -> Option<ConnectionId> {
        self.after(self.turn)
    }

    /// The connection whose turn is after that of `id`, round and round.
    pub(super) fn after(&self, id: ConnectionId) -> Option<ConnectionId> {
        let later = self.connections.range(ConnectionId(id.0 + 1)..).next();
        later.or_else(|| self.connections.first_key_value()).map(|(id, _)| *id)
    }

    /// The connection `id` has had its turn.
    pub(super) const fn had_turn(&mut self, id: ConnectionId) {
        self.turn = id;
    }

    /// The state machine has forgotten the connection, and may use its handle again.
    pub(super) fn forget_handle(&mut self, id: ConnectionId) {
        self.by_handle.retain(|_, other| *other != id);
    }

    /// What was learned on an earlier connection with the host `remote`.
    pub(super) fn memory_of(&self, remote: IpAddr) -> Option<Memory> {
        self.memories.of(remote)
    }

    /// Removes connections that have ended and been read out. What they learned is kept.
    pub(super) fn sweep(&mut self) {
        for held in self.connections.values().filter(|held| held.is_done()) {
            if let Some(memory) = held.path.memory() {
                self.memories.keep(held.remote.ip(), memory);
            }
        }
        self.connections.retain(|_, held| !held.is_done());
    }
}

/// Connections open at a time, those in handshake included. More are refused, and counted.
pub(super) const MAX_CONNECTIONS: usize = 1_024;
