//! Moves everything that can move between a session and its path.

use crate::path::Path;
use crate::session::Session;
use skyhaul_units::Instant;

/// Hands the path's news to the session, does what is due, and fills the path's room. Afterwards take the session's
/// events, and call again at the earlier of the two next time-outs or when either has something new.
pub fn drive(session: &mut Session, path: &mut impl Path, now: Instant) {
    while let Some(event) = path.poll(now) {
        session.handle(now, event);
    }
    session.handle_timeout(now);
    loop {
        let bytes = session.poll_control();
        let taken = if bytes.is_empty() { 0 } else { path.send_control(now, bytes) };
        if taken == 0 {
            break;
        }
        session.control_taken(taken);
    }
    while path.room(now) > 0 {
        let Some((token, datagram)) = session.poll_datagram(now) else { break };
        path.send(now, Some(token), datagram);
    }
    if let Some(reason) = session.wants_close() {
        path.close(now, &reason);
    }
}
