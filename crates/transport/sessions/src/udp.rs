//! UDP datagrams to and from endpoints.

use crate::Endpoint;
use bytes::BytesMut;
use core::net::{IpAddr, SocketAddr};
use skyhaul_units::Instant;

/// An endpoint over UDP.
pub trait Datagrams: Endpoint {
    /// Takes in a UDP datagram.
    fn handle_datagram(&mut self, now: Instant, received: ReceivedDatagram);

    /// The next datagram to be sent, or a batch of them to one address, into `out`, which is
    /// emptied first.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;
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

/// One UDP datagram that arrived.
#[derive(Debug, Clone)]
pub struct ReceivedDatagram {
    /// Where it came from.
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
    /// Where it goes.
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
