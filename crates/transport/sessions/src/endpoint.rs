//! The session manager's view of an endpoint.

use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Keying, Refusal};
use skyhaul_transport::{DownReason, Path};
use skyhaul_units::Instant;

/// A connection of one endpoint; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a connection is for. The end that connects decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionPurpose {
    /// The first path of a new session.
    #[default]
    NewSession,
    /// One more path of a session that exists.
    JoinSession,
}

/// Opens and accepts connections over one socket, and knows each by its id.
pub trait Endpoint {
    /// Connects to the node at `remote`, which must have the key `expected`. Ends in
    /// [`EndpointEvent::Ready`] or [`EndpointEvent::Refused`].
    ///
    /// # Errors
    /// See [`ConnectError`].
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError>;

    /// A connection, until its end has been polled from it.
    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path>;

    /// The far end's address on a connection, where the endpoint has it at hand.
    fn remote(&self, _id: ConnectionId) -> Option<SocketAddr> {
        None
    }

    /// The next event, until `None`.
    fn poll_event(&mut self) -> Option<EndpointEvent>;

    /// When [`Endpoint::handle_timeout`] is due.
    fn next_timeout(&self) -> Option<Instant>;

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);
}

/// What an endpoint reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A connection is up, its peer's key checked: see [`Endpoint::connection`].
    Ready {
        /// The connection.
        id: ConnectionId,
        /// The peer's key.
        peer: Fingerprint,
        /// What both ends can prove that they share.
        keying: Keying,
        /// True where the peer called.
        incoming: bool,
        /// What the end that connected wants of it.
        purpose: ConnectionPurpose,
        /// The protocol version that both ends speak.
        version: u16,
    },
    /// A handshake came to nothing. No session knew of it.
    Refused {
        /// The connection, where there was one.
        id: Option<ConnectionId>,
        /// The other node's address.
        remote: SocketAddr,
        /// Its key, if it has shown one.
        fingerprint: Option<Fingerprint>,
        /// Why, and what to do.
        reason: Refusal,
    },
    /// A connection that was ready has ended. Its path reports the end too, after its last events.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// Why.
        reason: DownReason,
    },
}

/// Why a connection could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The address can't be called.
    #[error("cannot connect to {remote} ({reason}): give an address and a port other than 0")]
    Address {
        /// The address.
        remote: SocketAddr,
        /// In the words of the endpoint.
        reason: String,
    },
    /// No such endpoint.
    #[error("unknown socket")]
    NoSocket,
    /// The session to be joined has ended.
    #[error("the session has ended")]
    NoSession,
    /// Too many connections.
    #[error("{max} connections are open already: close some")]
    TooMany {
        /// As many as there may be.
        max: usize,
    },
}
