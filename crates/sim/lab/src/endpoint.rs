//! What the lab needs of whatever it runs.

use bytes::Bytes;
use core::net::SocketAddr;
use skyhaul_units::Instant;

/// A UDP datagram between two endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkDatagram {
    /// The sender's address. It and `to` choose the link.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The codepoint in the IP header; links leave it as it is.
    pub ecn: EcnMark,
    /// The UDP payload. On the link it counts with its headers
    /// ([`ip_packet_size`](skyhaul_link::ip_packet_size)).
    pub payload: Bytes,
}

impl NetworkDatagram {
    /// A datagram that does not take part in congestion notification.
    pub fn new(from: SocketAddr, to: SocketAddr, payload: impl Into<Bytes>) -> Self {
        Self { from, to, ecn: EcnMark::NotCapable, payload: payload.into() }
    }
}

/// Explicit congestion notification, with the bits of RFC 3168 5 as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnMark {
    /// The sender does not take part.
    #[default]
    NotCapable = 0b00,
    /// ECT(1).
    Ect1 = 0b01,
    /// ECT(0).
    Ect0 = 0b10,
    /// Congestion was met.
    Ce = 0b11,
}

/// A sans-IO session manager at one or several addresses.
///
/// After every call that changes it, the lab takes all its transmits and asks for its next timeout.
pub trait NetworkNode {
    /// Takes in a datagram that arrived at one of its addresses.
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram);

    /// The next datagram to send at `now`, until `None`.
    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram>;

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn next_timeout(&mut self) -> Option<Instant>;

    /// Its timeout has come: `now` is at or after it.
    fn handle_timeout(&mut self, now: Instant);
}

impl<E: NetworkNode + ?Sized> NetworkNode for Box<E> {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        (**self).handle_datagram(now, datagram);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram> {
        (**self).poll_transmit(now)
    }
    fn next_timeout(&mut self) -> Option<Instant> {
        (**self).next_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }
}
