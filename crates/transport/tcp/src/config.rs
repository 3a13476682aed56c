//! The configuration of an endpoint and its paths.

use skyhaul_identity::{Fingerprint, OwnKey};
use skyhaul_sessions::admission::SETUP_MAX;
use skyhaul_transport::ProtocolVersions;
use skyhaul_units::{ByteCount, Duration};
use std::collections::BTreeSet;

/// How to make a [`crate::TlsEndpoint`].
#[derive(Debug, Clone)]
pub struct TlsEndpointConfig {
    /// This node's key.
    pub identity: OwnKey,
    /// Keys of the nodes that may connect.
    pub trusted: BTreeSet<Fingerprint>,
    /// For every path.
    pub path: TlsPathConfig,
    /// The protocol versions that it speaks; [`ProtocolVersions::OURS`].
    pub versions: ProtocolVersions,
}

impl TlsEndpointConfig {
    /// An endpoint that trusts no key yet, with defaults for everything else.
    pub fn new(identity: impl Into<OwnKey>) -> Self {
        Self {
            identity: identity.into(),
            trusted: BTreeSet::new(),
            path: TlsPathConfig::default(),
            versions: ProtocolVersions::OURS,
        }
    }
}

/// How to run a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsPathConfig {
    /// Largest datagram that this end sends, in bytes. Default 1438: what QUIC leaves of an IPv4
    /// packet of 1500 bytes, so that what was sent here can be sent again on such a path as it is.
    pub payload: u16,
    /// A path that is not up after this long is given up. Default 15 s: five round trips at 660 ms,
    /// each sent again twice by TCP.
    pub setup_timeout: Duration,
    /// A path silent for this long is given up. Default 60 s.
    pub idle_timeout: Duration,
    /// After this long without sending, a sign of life is sent. Default 5 s.
    pub keep_alive: Duration,
    /// Received bytes held until polled; at the bound no more are taken from the stream. Default 4
    /// MiB: 340 ms at 93 Mbit/s.
    pub receive_buffer: ByteCount,
    /// Control bytes held until they are on their way. Default 256 KiB.
    pub control_buffer: ByteCount,
}

impl TlsPathConfig {
    /// For paths beside ones over UDP: datagrams as long as QUIC carries in UDP payloads of
    /// `udp_payload` bytes, so that what was sent here can be sent again there as it is.
    pub fn beside(udp_payload: u16) -> Self {
        Self { payload: udp_payload.saturating_sub(QUIC_OVERHEAD), ..Self::default() }
    }
}

/// What QUIC takes of a UDP payload around a datagram, with connection ids of 4 bytes: see
/// [`TlsPathConfig::payload`].
const QUIC_OVERHEAD: u16 = 1_472 - 1_438;

impl Default for TlsPathConfig {
    fn default() -> Self {
        Self {
            payload: 1438,
            setup_timeout: SETUP_MAX,
            idle_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(5),
            receive_buffer: ByteCount::mib(4),
            control_buffer: ByteCount::kib(256),
        }
    }
}
