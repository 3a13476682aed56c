//! Whether an incoming connection is accepted, and which slow one is closed to make room for it.

use super::QuicEndpoint;
use skyhaul_sessions::ConnectionId;
use skyhaul_sessions::admission::Admission;
use skyhaul_units::Instant;
use std::net::SocketAddr;

impl QuicEndpoint {
    /// Decides about a connection from `remote`. Where it replaces a slow one, that is closed here.
    pub(super) fn admit(&mut self, now: Instant, remote: SocketAddr) -> Admission {
        if self.table.is_full() {
            return Admission::Refused;
        }
        let others = self.table.in_setup().map(|(_, held)| (held.remote.ip(), held.began));
        let admission = self.doorkeeper.admit(now, remote.ip(), others);
        if admission == Admission::Replaces {
            let oldest = self.table.in_setup().min_by_key(|(_, held)| held.began);
            if let Some(oldest) = oldest.map(|(id, _)| id) {
                self.refuse_slow(now, oldest);
                self.settle(now, oldest);
            }
        }
        admission
    }

    /// Closes an incoming connection that is not up in time.
    pub(super) fn refuse_slow(&mut self, now: Instant, id: ConnectionId) {
        if let Some(held) = self.table.get_mut(id) {
            let event = held.refuse_slow(now);
            self.events.push(event);
        }
    }
}
