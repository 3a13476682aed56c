//! What each connection is for.

use super::endpoint_set::ConnectionKey;
use super::event::{SessionId, SessionManagerEvent};
use super::joining::{JoinProgress, Joining};
use super::table::SessionTable;
use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Refusal};
use skyhaul_transport::PathId;
use std::collections::BTreeMap;

pub(super) enum Role {
    /// Opened for a session that begins when the connection is up.
    Opening(SessionId),
    /// A path of a session.
    Member(SessionId, PathId),
    /// Opened, by either end, for one more path of a session.
    Joining(Joining),
}

/// The roles of all connections. Bounded by the endpoints' connections.
#[derive(Default)]
pub(super) struct Roles(BTreeMap<ConnectionKey, Role>);

impl Roles {
    pub(super) fn set(&mut self, key: ConnectionKey, role: Role) {
        self.0.insert(key, role);
    }

    pub(super) fn take(&mut self, key: ConnectionKey) -> Option<Role> {
        self.0.remove(&key)
    }

    /// Takes the role of a connection that joins a session.
    pub(super) fn take_joining(&mut self, key: ConnectionKey) -> Option<Joining> {
        match self.0.remove(&key)? {
            Role::Joining(joining) => Some(joining),
            Role::Opening(_) | Role::Member(..) => None,
        }
    }

    /// The session that a connection was opened for.
    pub(super) fn opening(&self, key: ConnectionKey) -> Option<SessionId> {
        match self.0.get(&key)? {
            Role::Opening(id) => Some(*id),
            Role::Joining(_) | Role::Member(..) => None,
        }
    }

    /// Connections that were opened for a session which has not begun.
    pub(super) fn opened_for(&self, id: SessionId) -> impl Iterator<Item = ConnectionKey> + '_ {
        let opened = self.0.iter();
        opened.filter_map(move |(key, role)| {
            matches!(role, Role::Opening(other) if *other == id).then_some(*key)
        })
    }

    /// Connections that are up and wait for the far end's half of the join.
    pub(super) fn joining(&self) -> Vec<ConnectionKey> {
        let joining = |role: &Role| matches!(role, Role::Joining(joining) if joining.has_begun());
        self.0.iter().filter(|(_, role)| joining(role)).map(|(key, _)| *key).collect()
    }

    /// Keeps what has become of a joining connection; gives what the owner learns.
    pub(super) fn keep(
        &mut self,
        key: ConnectionKey,
        progress: JoinProgress,
        sessions: &mut SessionTable,
    ) -> Option<SessionManagerEvent> {
        match progress {
            JoinProgress::Waiting(joining) => self.set(key, Role::Joining(joining)),
            JoinProgress::Joined(id, path) => {
                if let Some(held) = sessions.get_mut(id) {
                    held.paths.insert(path, key);
                }
                self.set(key, Role::Member(id, path));
            }
            JoinProgress::Failed(event) => return event,
        }
        None
    }
}

/// What the owner learns where a connection is refused. `role` is `None` for an incoming one that
/// never came up.
pub(super) fn refused(
    role: Option<Role>,
    remote: SocketAddr,
    fingerprint: Option<Fingerprint>,
    reason: Refusal,
) -> Option<SessionManagerEvent> {
    let id = match role {
        Some(Role::Joining(joining)) => return joining.refused(reason.to_string()),
        Some(Role::Opening(id)) => Some(id),
        Some(Role::Member(..)) | None => None,
    };
    Some(SessionManagerEvent::Refused { id, remote, fingerprint, reason })
}
