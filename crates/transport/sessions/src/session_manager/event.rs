//! Names of sessions and sockets, and what the owner of a session manager learns.

use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Refusal};
use skyhaul_transport::{DownReason, Event, PathId};

/// A session of one session manager; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(super) u64);

impl core::fmt::Display for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A session manager's endpoint, and the socket or address that it stands for, in the order in
/// which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SocketId(pub usize);

/// Where to connect to, and over which socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathTarget {
    /// The socket of this end.
    pub socket: SocketId,
    /// The far end's address.
    pub remote: SocketAddr,
}

/// What the owner of a session manager learns.
#[derive(Debug)]
pub enum SessionManagerEvent {
    /// A trusted node is connected; open its session with [`skyhaul_transport::Session::open`].
    Connected {
        /// The session.
        id: SessionId,
        /// Whose key it proved to have.
        fingerprint: Fingerprint,
        /// Whether the far end connected.
        incoming: bool,
    },
    /// A connection was refused, by this end or by the far one, before any session began.
    Refused {
        /// The session that it was for, where this end connected.
        id: Option<SessionId>,
        /// Its address.
        remote: SocketAddr,
        /// Its key, where it got as far as showing one.
        fingerprint: Option<Fingerprint>,
        /// A sentence for the log.
        reason: Refusal,
    },
    /// A further path did not come up; the session goes on without it.
    PathRefused {
        /// The session.
        id: SessionId,
        /// The path that did not come up.
        path: PathId,
        /// The address connected to.
        remote: SocketAddr,
        /// A sentence for the log.
        reason: String,
    },
    /// Something happened in a session.
    Session {
        /// The session.
        id: SessionId,
        /// What.
        event: Event,
    },
    /// The last connection ended; the session is gone.
    Disconnected {
        /// The session.
        id: SessionId,
        /// Why.
        reason: DownReason,
    },
}
