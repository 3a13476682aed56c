//! Reading applications' bytes when the line has room for them.
//!
//! Bytes leave at once where the line has room: a short message is not held back to be joined with
//! the next. Where it has none, bytes gather in the socket (backpressure), and the next block is as
//! large as what the line carries in a few milliseconds.

use crate::connection::Reading;
use crate::connections::Connections;
use crate::context::ForwardContext;
use crate::socket::{self, Moved};
use crate::streams::StreamKey;
use skyhaul_forward::Lane;
use skyhaul_net::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_transport::{Session, Supply};
use skyhaul_units::{Duration, Instant};

/// Why reading for a lane stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pumped {
    /// Nothing to read, or no window to send it in.
    Idle,
    /// Enough waits for the line.
    Ahead,
    /// The session's buffer is full: reports make room.
    Full,
}

/// How soon a lane is looked at again whose blocks wait for the line.
const LOOK: Duration = Duration::from_millis(1);

impl Connections {
    /// Reads from all connections what the line has room for. Returns when to do so again, if more
    /// was to be read.
    pub fn pump(
        &mut self,
        context: &mut ForwardContext,
        manager: &mut SessionManager,
    ) -> Option<Instant> {
        let mut again = None;
        for id in context.sessions.ids() {
            let (Some(peer), Some(session)) = (context.sessions.get_mut(id), manager.session(id))
            else {
                continue;
            };
            if !peer.open || peer.stays_quiet() {
                continue;
            }
            peer.measure(session);
            let lanes: Vec<Lane> = peer.lanes.keys().copied().collect();
            let mut more = !peer.flush(context.now, session);
            for lane in lanes {
                let pumped = self.pump_lane(context, id, session, lane);
                more |= pumped != Pumped::Idle;
                if pumped == Pumped::Ahead {
                    again = Some(context.now + LOOK);
                }
            }
            session.sender_mut().set_supply(if more {
                Supply::Continues
            } else {
                Supply::Complete
            });
        }
        again
    }

    fn pump_lane(
        &mut self,
        context: &mut ForwardContext,
        id: SessionId,
        session: &mut Session,
        lane: Lane,
    ) -> Pumped {
        loop {
            let Some(peer) = context.sessions.get_mut(id) else { return Pumped::Idle };
            if !peer.flush(context.now, session) {
                return Pumped::Full;
            }
            if peer.lanes.get(&lane).is_none_or(|queue| queue.is_empty()) {
                peer.lanes.remove(&lane);
                return Pumped::Idle;
            }
            if session.sender().waiting(lane.class, lane.priority).as_u64() >= peer.ahead() {
                return Pumped::Ahead;
            }
            if peer.room(session) < 2 * peer.block() as u64 {
                return Pumped::Full;
            }
            let Some(token) = peer.lanes.get_mut(&lane).and_then(|queue| queue.pop_front()) else {
                continue;
            };
            self.read(context, token);
        }
    }

    /// Reads one block from a connection that has left its lane's queue.
    fn read(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(connection) = self.all.get_mut(token) else { return };
        let StreamKey { session, stream } = connection.stream;
        let Some(peer) = context.sessions.get_mut(session) else { return };
        connection.reading = Reading::Ready;
        let most = peer.mux.credit(stream).min(peer.block());
        if most == 0 {
            return;
        }
        match socket::read(&connection.socket, &mut context.buffer[..most]) {
            Moved::Some(count) => {
                connection.active = context.now;
                peer.mux.data(stream, &context.buffer[..count]);
                context.counters.bytes_sent += count as u64;
                // Its next turn comes after that of all others in the lane.
                peer.lanes.entry(connection.lane).or_default().push_back(token);
                connection.reading = Reading::Queued;
            }
            Moved::Blocked => connection.reading = Reading::Blocked,
            Moved::End => {
                connection.reading = Reading::Ended;
                peer.mux.finish(stream);
                self.write(context, token);
            }
            Moved::Broken => self.reset(context, token),
        }
    }
}
