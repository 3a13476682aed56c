//! The endpoints of one node, one for each socket.

use super::event::SocketId;
use crate::{
    ConnectError, ConnectionId, Datagrams, Endpoint, EndpointEvent, ReceivedDatagram, Transmit,
};
use skyhaul_transport::Path;
use skyhaul_units::Instant;

/// A connection of one of the endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionKey {
    pub(super) socket: SocketId,
    pub(super) connection: ConnectionId,
}

/// The endpoints in the order in which they were added.
pub(super) struct EndpointSet<C> {
    endpoints: Vec<C>,
    /// The endpoint polled for datagrams last: the next one has its turn first.
    turn: usize,
}

impl<C> EndpointSet<C> {
    pub(super) fn new(first: C) -> Self {
        Self { endpoints: vec![first], turn: 0 }
    }

    pub(super) fn add(&mut self, endpoint: C) -> SocketId {
        self.endpoints.push(endpoint);
        SocketId(self.endpoints.len() - 1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        self.endpoints.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.endpoints.iter_mut()
    }

    pub(super) fn get_mut(&mut self, socket: SocketId) -> Result<&mut C, ConnectError> {
        self.endpoints.get_mut(socket.0).ok_or(ConnectError::NoSocket)
    }
}

impl<C: Endpoint> EndpointSet<C> {
    pub(super) fn connection(&mut self, key: ConnectionKey) -> Option<&mut dyn Path> {
        self.endpoints.get_mut(key.socket.0)?.connection(key.connection)
    }

    /// The next event of the endpoint `socket`, until `None`.
    pub(super) fn poll_event(&mut self, socket: SocketId) -> Option<EndpointEvent> {
        self.endpoints.get_mut(socket.0)?.poll_event()
    }

    /// The sockets of the endpoints.
    pub(super) fn sockets(&self) -> impl Iterator<Item = SocketId> + use<C> {
        (0..self.endpoints.len()).map(SocketId)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.endpoints.iter().filter_map(Endpoint::next_timeout).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for endpoint in &mut self.endpoints {
            if endpoint.next_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
        }
    }
}

impl<C: Datagrams> EndpointSet<C> {
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        socket: SocketId,
        received: ReceivedDatagram,
    ) {
        if let Some(endpoint) = self.endpoints.get_mut(socket.0) {
            endpoint.handle_datagram(now, received);
        }
    }

    /// The next datagram, or batch of datagrams of one size, into `out`. The endpoint that sent
    /// last is asked first, so that its batches stay together.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<(SocketId, Transmit)> {
        let count = self.endpoints.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            if let Some(transmit) = self.endpoints[index].poll_transmit(now, out) {
                self.turn = index;
                return Some((SocketId(index), transmit));
            }
        }
        None
    }
}
