//! What each connection is for.

use super::event::{SessionId, SessionManagerEvent};
use super::joining::Joining;
use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Refusal};
use skyhaul_transport::PathId;

pub(super) enum Role {
    /// Opened for a session that begins when the connection is up.
    Opening(SessionId),
    /// A path of a session.
    Member(SessionId, PathId),
    /// Opened, by either end, for one more path of a session.
    Joining(Joining),
}

impl Role {
    pub(super) fn is_opening(&self, id: SessionId) -> bool {
        matches!(self, Self::Opening(other) if *other == id)
    }

    /// Whether the connection is up and waits for the far end's part of the join.
    pub(super) fn is_joining(&self) -> bool {
        matches!(self, Self::Joining(joining) if joining.has_begun())
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
