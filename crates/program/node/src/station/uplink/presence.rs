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

    /// The same, of an alarm that says nothing while the destination is silent.
    pub(super) fn subject_behind(&self, what: &str) -> AlarmSubject {
        self.subject(what).behind(&self.centre.name)
    }

    /// The session is set up.
    pub(super) fn tell_open(&self) {
        self.shared.alarms.connected(&self.centre.name);
        self.tell(EventKind::PeerConnected, format!("the line to {} is open", self.centre.name));
    }

    /// The session has ended, if there was one.
    pub(super) fn tell_down(&self, reason: &str) {
        self.shared.alarms.lost(&self.centre.name);
        if self.status.state == LineState::Open {
            let sentence = format!("the line to {} is down: {reason}", self.centre.name);
            self.tell(EventKind::PeerDisconnected, sentence);
        }
    }

    /// A path has ended.
    pub(super) fn tell_path_down(&self, path: PathId, reason: &str) {
        let (title, peer) = (self.paths.title(path), &self.centre.name);
        let sentence = format!("path {title} to {peer} is down: {reason}");
        let note = EventNote::new(EventKind::PathDown, format!("path {title}"), sentence);
        self.shared.alarms.events().note(note.with("peer", peer.clone()));
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

    fn tell(&self, kind: EventKind, sentence: String) {
        let note = EventNote::new(kind, format!("node {}", self.centre.name), sentence);
        self.shared.alarms.events().note(note.with("peer", self.centre.name.clone()));
    }
}
