//! Whose call is taken, and who has to leave for it.

use super::{MAX_CONNECTIONS, QuicEndpoint, Stage};
use crate::Refusal;
use skyhaul_sessions::admission::Admission;
use skyhaul_sessions::{ConnectionId, EndpointEvent};
use skyhaul_transport::Path as _;
use skyhaul_units::Instant;
use std::net::SocketAddr;

impl QuicEndpoint {
    /// Whether a call is taken; one that is slow has left its place then, where it must.
    pub(super) fn admit(&mut self, now: Instant, remote: SocketAddr) -> Admission {
        if self.connections.len() >= MAX_CONNECTIONS {
            return Admission::Refused;
        }
        let others = self.connections.values().filter(|held| held.setup_ends().is_some());
        let others = others.map(|held| (held.remote.ip(), held.began));
        let admission = self.doorkeeper.admit(now, remote.ip(), others);
        if admission == Admission::Replaces {
            let slow = self.connections.iter().filter(|(_, held)| held.setup_ends().is_some());
            let oldest = slow.min_by_key(|(_, held)| held.began).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.turn_out(now, oldest);
                self.settle(now, oldest);
            }
        }
        admission
    }

    /// A call that was taken is not up in time: its place is for others.
    pub(super) fn turn_out(&mut self, now: Instant, id: ConnectionId) {
        let Some(held) = self.connections.get_mut(&id) else { return };
        held.stage = Stage::Over;
        held.path.close(now, "the handshake took too long");
        let (remote, reason) = (held.remote, Refusal::TooSlow);
        self.report(EndpointEvent::Refused { id: Some(id), remote, fingerprint: None, reason });
    }
}
