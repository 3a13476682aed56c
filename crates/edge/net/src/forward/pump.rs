//! Reading applications' bytes when the line has room for them.
//!
//! What is read leaves at once where the line has room: a short message is not held back for more
//! to come. Where it has none, bytes gather in the socket, and the next block is as large as what a
//! line carries in a few milliseconds.

use super::forwards::Forwards;
use super::peer::Peer;
use super::socket::{self, Moved};
use crate::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_transport::{ClassId, Session};
use skyhaul_units::{Duration, Instant};

/// What a lane is at after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Nothing to read, or no window to send it in.
    Still,
    /// Enough waits for the line.
    Ahead,
    /// The session's buffer is full: reports make room.
    Full,
}

/// How soon a lane is looked at again whose blocks wait for the line.
const LOOK: Duration = Duration::from_millis(1);

impl Forwards {
    /// Reads from all connections what the line has room for. When to do so again, where more is to
    /// be read than it had.
    pub(super) fn pump(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        let mut again = None;
        let ids: Vec<SessionId> = self.peers.keys().copied().collect();
        for id in ids {
            let (Some(peer), Some(session)) = (self.peers.get_mut(&id), manager.session(id)) else {
                continue;
            };
            if !peer.open || peer.stays_quiet() {
                continue;
            }
            peer.measure(session);
            let lanes: Vec<(ClassId, u8)> = peer.lanes.keys().copied().collect();
            let mut more = !peer.flush(now, session);
            for lane in lanes {
                let state = self.pump_lane(now, (id, session), lane);
                more |= state != Lane::Still;
                if state == Lane::Ahead {
                    again = Some(now + LOOK);
                }
            }
            session.more_follows(more);
        }
        again
    }

    fn pump_lane(
        &mut self,
        now: Instant,
        (id, session): (SessionId, &mut Session),
        lane: (ClassId, u8),
    ) -> Lane {
        loop {
            let Some(peer) = self.peers.get_mut(&id) else { return Lane::Still };
            if !peer.flush(now, session) {
                return Lane::Full;
            }
            if peer.lanes.get(&lane).is_none_or(|queue| queue.is_empty()) {
                peer.lanes.remove(&lane);
                return Lane::Still;
            }
            if session.waiting(lane.0, lane.1).as_u64() >= peer.ahead() {
                return Lane::Ahead;
            }
            if peer.room(session) < 2 * peer.block() as u64 {
                return Lane::Full;
            }
            let Some(token) = peer.lanes.get_mut(&lane).and_then(|queue| queue.pop_front()) else {
                continue;
            };
            self.read(now, token);
        }
    }

    /// Reads one block from a connection.
    fn read(&mut self, now: Instant, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Some(peer) = self.peers.get_mut(&connection.session) else { return };
        connection.queued = false;
        let most = peer.mux.credit(connection.stream).min(peer.block());
        let Some(socket) = connection.socket.as_ref().filter(|_| most > 0) else { return };
        match socket::read(socket, &mut self.buffer[..most]) {
            Moved::Some(count) => {
                connection.active = now;
                peer.mux.data(connection.stream, &self.buffer[..count]);
                self.counters.bytes_sent += count as u64;
                Self::turn(peer, connection.lane, token);
                connection.queued = true;
            }
            Moved::Blocked => connection.readable = false,
            Moved::End => {
                connection.read_ended = true;
                peer.mux.finish(connection.stream);
                self.write(now, token);
            }
            Moved::Broken => self.reset(token),
        }
    }

    /// A connection that had its turn has the next one after all others.
    fn turn(peer: &mut Peer, lane: (ClassId, u8), token: u64) {
        peer.lanes.entry(lane).or_default().push_back(token);
    }
}
