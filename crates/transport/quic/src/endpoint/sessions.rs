//! The endpoint as the session manager's endpoint.

use super::QuicEndpoint;
use crate::Fingerprint;
use skyhaul_sessions::{
    ConnectError, ConnectionId, ConnectionPurpose, Datagrams, Endpoint, EndpointEvent,
    ReceivedDatagram, Transmit,
};
use skyhaul_transport::Path;
use skyhaul_units::Instant;
use std::net::SocketAddr;

impl QuicEndpoint {
    /// Whether a closing datagram, or a copy of one, is still to be sent: a process that ends
    /// should wait for that. A lost closing datagram leaves the far end to its idle time-out.
    pub fn is_closing(&self) -> bool {
        self.table.iter().any(|(_, held)| !held.drained && held.path.state().is_closing())
    }

    /// Closes all connections, those that are being set up too, because this node goes on in
    /// another process: the far ends may call that at once.
    pub fn close_to_go_on(&mut self, now: Instant) {
        self.settle_pending();
        for id in self.table.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            if let Some(held) = self.table.get_mut(id) {
                held.path.close_to_go_on(now);
            }
            self.settle(now, id);
        }
    }
}

impl Endpoint for QuicEndpoint {
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError> {
        match purpose {
            ConnectionPurpose::NewSession => self.connect(now, remote, expected),
            ConnectionPurpose::JoinSession => self.join(now, remote, expected),
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        self.path(id).map(|path| path as &mut dyn Path)
    }

    fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.table.get(id).map(|held| held.remote)
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.poll_event()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }
}

impl Datagrams for QuicEndpoint {
    fn handle_datagram(&mut self, now: Instant, received: ReceivedDatagram) {
        self.handle_datagram(now, received);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(now, out)
    }
}
