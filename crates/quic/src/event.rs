//! What goes in and out of an endpoint.

use crate::{Fingerprint, Refusal};
use bytes::BytesMut;
use noq_proto::{ConnectionError, EcnCodepoint};
use skyhaul_transport::DownReason;
use std::net::{IpAddr, SocketAddr};

/// A connection of one endpoint; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u64);

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Explicit congestion notification bits of an IP packet (RFC 3168 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Capable, 0b10.
    Ect0,
    /// Capable, 0b01.
    Ect1,
    /// Congestion experienced, 0b11.
    Ce,
}

impl From<Ecn> for EcnCodepoint {
    fn from(ecn: Ecn) -> Self {
        match ecn {
            Ecn::Ect0 => Self::Ect0,
            Ecn::Ect1 => Self::Ect1,
            Ecn::Ce => Self::Ce,
        }
    }
}

impl From<EcnCodepoint> for Ecn {
    fn from(ecn: EcnCodepoint) -> Self {
        match ecn {
            EcnCodepoint::Ect0 => Self::Ect0,
            EcnCodepoint::Ect1 => Self::Ect1,
            EcnCodepoint::Ce => Self::Ce,
        }
    }
}

/// One UDP datagram that arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// Whence it came.
    pub remote: SocketAddr,
    /// The local address it was sent to, where known: answers leave from it.
    pub local_ip: Option<IpAddr>,
    /// Its congestion notification bits, where known.
    pub ecn: Option<Ecn>,
    /// Its payload.
    pub payload: BytesMut,
}

/// One UDP datagram to be sent, or several of equal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Whither.
    pub to: SocketAddr,
    /// Bytes of payload in the buffer, all datagrams together.
    pub size: usize,
    /// Payload of each datagram but the last, which may be shorter; `None` for a single one.
    pub segment_size: Option<usize>,
    /// Congestion notification bits to set.
    pub ecn: Option<Ecn>,
    /// Local address to send from, where it matters.
    pub src_ip: Option<IpAddr>,
}

impl From<noq_proto::Transmit> for Transmit {
    fn from(transmit: noq_proto::Transmit) -> Self {
        Self {
            to: transmit.destination,
            size: transmit.size,
            segment_size: transmit.segment_size,
            ecn: transmit.ecn.map(Ecn::from),
            src_ip: transmit.src_ip,
        }
    }
}

/// What an endpoint reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A path is up, its peer's key checked: see [`crate::Endpoint::path`].
    Ready {
        /// The connection.
        id: ConnectionId,
        /// The peer's key.
        peer: Fingerprint,
        /// True where the peer called.
        incoming: bool,
        /// The call is for one more path of a session that stands.
        joins: bool,
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
    /// A path that was ready has ended. The path itself says so too, after its last news.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// Why.
        reason: DownReason,
    },
}

/// TLS alert 49, access_denied (RFC 8446 6.2), as a QUIC error code (RFC 9001 4.8).
const ACCESS_DENIED: u64 = 0x131;

/// Application close code: the reason names the protocol version that the closing end speaks.
pub(crate) const CLOSE_VERSION: u32 = 1;

/// Why a handshake failed, as far as the error of the state machine tells.
pub(crate) fn refusal(error: &ConnectionError, ours: Fingerprint, alpn: &[u8]) -> Refusal {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(MAX_REASON).collect::<String>();
    match error {
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == ACCESS_DENIED => {
            Refusal::OwnKeyUntrusted { ours }
        }
        ConnectionError::ConnectionClosed(close)
            if close.error_code == noq_proto::TransportErrorCode::CONNECTION_REFUSED =>
        {
            Refusal::Busy
        }
        ConnectionError::ApplicationClosed(close) if close.error_code == CLOSE_VERSION.into() => {
            Refusal::Version { ours: text(alpn), theirs: text(&close.reason) }
        }
        ConnectionError::TimedOut => Refusal::NoAnswer,
        ConnectionError::LocallyClosed => Refusal::ClosedHere,
        other => Refusal::Failed(text(other.to_string().as_bytes())),
    }
}

/// Why a path ended, from the error of the state machine.
pub(crate) fn down_reason(error: &ConnectionError) -> DownReason {
    match error {
        ConnectionError::TimedOut => DownReason::TimedOut,
        ConnectionError::LocallyClosed => DownReason::ClosedHere,
        ConnectionError::ApplicationClosed(close) => DownReason::ClosedByPeer(
            String::from_utf8_lossy(&close.reason).chars().take(MAX_REASON).collect(),
        ),
        ConnectionError::Reset => DownReason::Failed("the far end has started anew".to_owned()),
        other => DownReason::Failed(other.to_string().chars().take(MAX_REASON).collect()),
    }
}

/// Characters of a far end's reason that are kept.
const MAX_REASON: usize = 200;
