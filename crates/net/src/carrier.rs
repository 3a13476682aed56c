//! The kinds of carriers that a driver moves bytes for.

use core::net::SocketAddr;
use skyhaul_engine::{CarrierEvent, ConnectError, ConnectionId, Datagrams, Received, Transmit};
use skyhaul_quic::{Endpoint, Fingerprint};
use skyhaul_transport::Path;
use skyhaul_units::Instant;

/// A carrier of whatever kind.
pub enum Carrier {
    /// QUIC over UDP.
    Udp(Box<Endpoint>),
}

impl From<Endpoint> for Carrier {
    fn from(endpoint: Endpoint) -> Self {
        Self::Udp(Box::new(endpoint))
    }
}

impl skyhaul_engine::Carrier for Carrier {
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        joins: bool,
    ) -> Result<ConnectionId, ConnectError> {
        match self {
            Self::Udp(endpoint) => endpoint.call(now, remote, expected, joins),
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        match self {
            Self::Udp(endpoint) => endpoint.connection(id),
        }
    }

    fn poll_event(&mut self) -> Option<CarrierEvent> {
        match self {
            Self::Udp(endpoint) => endpoint.poll_event(),
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Udp(endpoint) => endpoint.next_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Udp(endpoint) => endpoint.handle_timeout(now),
        }
    }
}

impl Datagrams for Carrier {
    fn handle_datagram(&mut self, now: Instant, received: Received) {
        match self {
            Self::Udp(endpoint) => endpoint.handle_datagram(now, received),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Udp(endpoint) => endpoint.poll_transmit(now, out),
        }
    }
}
