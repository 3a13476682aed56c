//! Moves everything that can move between a session and its paths.

use crate::path::{Path, PathId};
use crate::session::{PathRoom, Session};
use skyhaul_units::Instant;

/// Passes a path's events to the session. Call it for every path, then
/// [`Session::handle_timeout`].
pub fn take_in(session: &mut Session, id: PathId, path: &mut (impl Path + ?Sized), now: Instant) {
    while let Some(event) = path.poll(now) {
        session.handle(now, id, event);
    }
    let estimate = path.estimate();
    session.measured(id, estimate);
    session.sender_mut().sharing_mut().account(now, id, estimate.sent);
}

/// Fills a path's room from the session. Do it for every path in the session's
/// [`crate::SessionPaths::fill_order`]. Whether anything was sent.
pub fn give_out(
    session: &mut Session,
    id: PathId,
    path: &mut (impl Path + ?Sized),
    now: Instant,
) -> bool {
    loop {
        let bytes = session.control_mut().poll(id);
        let taken = if bytes.is_empty() { 0 } else { path.send_control(now, bytes) };
        if taken == 0 {
            break;
        }
        session.control_mut().taken(taken);
    }
    let mut any = false;
    let mut room = path.room(now);
    while room > 0 {
        let Some((token, datagram)) = session.poll_datagram(now, id) else { break };
        path.send(now, Some(token), datagram);
        any = true;
        room -= 1;
        if room == 0 {
            room = path.room(now);
        }
    }
    session.filled(now, id, if room > 0 { PathRoom::Left } else { PathRoom::None });
    any
}

/// All of it for a session with one path. Afterwards take the session's events, and call again at
/// the earlier of the two next time-outs or when either has something new.
pub fn drive(session: &mut Session, path: &mut (impl Path + ?Sized), now: Instant) {
    take_in(session, PathId(0), path, now);
    session.handle_timeout(now);
    give_out(session, PathId(0), path, now);
    if let Some(reason) = session.control_mut().wants_close() {
        path.close(now, &reason);
    }
}
