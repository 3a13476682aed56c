//! Whether the destination is there: what events say of it, and the subjects of its alarms.

use super::{SPOOL, Served, Uplink};
use crate::journal::EventNote;
use crate::status::LineState;
use skyhaul_events::{AlarmKind, AlarmSubject, EventKind};
use skyhaul_transport::PathId;

impl Uplink {
    /// The subject of an alarm about this destination.
    pub(super) fn subject(&self, what: &str) -> AlarmSubject {
        AlarmSubject::from(format!("{what}{}", self.about))
    }

    /// Ends a session that must not continue, with an alarm; the centre is called again.
    pub(super) fn end_with_alarm(
        &mut self,
        served: &mut Served<'_>,
        kind: AlarmKind,
        reason: &str,
    ) {
        self.shared.alarms.raise(kind, SPOOL, reason);
        self.call_again(served, &format!("{SPOOL} {}: {reason}", kind.says()));
    }
}

/// The subject of an alarm that says nothing while the destination is silent.
pub fn subject_behind(uplink: &Uplink, what: &str) -> AlarmSubject {
    uplink.subject(what).behind(&uplink.centre.name)
}

/// The session is set up.
pub fn opened(uplink: &Uplink) {
    uplink.shared.alarms.connected(&uplink.centre.name);
    tell(uplink, EventKind::PeerConnected, format!("the line to {} is open", uplink.centre.name));
}

/// The session has ended, if there was one.
pub fn down(uplink: &Uplink, reason: &str) {
    uplink.shared.alarms.lost(&uplink.centre.name);
    if uplink.status.state == LineState::Open {
        let sentence = format!("the line to {} is down: {reason}", uplink.centre.name);
        tell(uplink, EventKind::PeerDisconnected, sentence);
    }
}

/// A path has ended.
pub fn path_down(uplink: &Uplink, path: PathId, reason: &str) {
    let (title, peer) = (uplink.paths.title(path), &uplink.centre.name);
    let sentence = format!("path {title} to {peer} is down: {reason}");
    let note = EventNote::new(EventKind::PathDown, format!("path {title}"), sentence);
    uplink.shared.alarms.events().note(note.with("peer", peer.clone()));
}

fn tell(uplink: &Uplink, kind: EventKind, sentence: String) {
    let note = EventNote::new(kind, format!("node {}", uplink.centre.name), sentence);
    uplink.shared.alarms.events().note(note.with("peer", uplink.centre.name.clone()));
}
