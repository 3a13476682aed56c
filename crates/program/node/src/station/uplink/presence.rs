//! Whether the destination is there: what events say of it, and the subjects of its alarms.

use super::connection::Ending;
use super::{SPOOL, Served, Uplink};
use crate::journal::EventNote;
use crate::reports::PeerSide;
use crate::status::LineState;
use skyhaul_events::{AlarmKind, AlarmSubject, EventKind, Severity};
use skyhaul_transport::{DownReason, PathId};

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
    uplink.shared.reports.connected(PeerSide::Destination, &uplink.centre.name);
    let sentence = format!("the line to {} is open", uplink.centre.name);
    uplink.shared.alarms.events().note(about(uplink, EventKind::PeerConnected, sentence));
}

/// The session has ended, if there was one.
pub fn down(uplink: &Uplink, ending: Ending, reason: &str) {
    if uplink.status.reason.as_deref() != Some(reason) {
        let centre = &uplink.centre.address;
        match ending {
            Ending::GoesOn => tracing::info!(%centre, "the session has ended: {reason}"),
            _ => tracing::warn!(%centre, "the line is down: {reason}"),
        }
    }
    uplink.shared.alarms.lost(&uplink.centre.name);
    uplink.shared.reports.lost(PeerSide::Destination, &uplink.centre.name);
    if uplink.status.state == LineState::Open {
        let sentence = format!("the line to {} is down: {reason}", uplink.centre.name);
        let note = about(uplink, EventKind::PeerDisconnected, sentence);
        uplink.shared.alarms.events().note(match ending {
            Ending::GoesOn => note.severity(Severity::Info),
            Ending::Lost | Ending::Refused => note,
        });
    }
}

/// A path has ended.
pub fn path_down(uplink: &Uplink, path: PathId, reason: &DownReason) {
    let (title, peer) = (uplink.paths.title(path), &uplink.centre.name);
    let sentence = format!("path {title} to {peer} is down: {reason}");
    let note = EventNote::new(EventKind::PathDown, format!("path {title}"), sentence);
    let note = note.because(reason);
    uplink.shared.alarms.events().note(note.with("peer", peer.clone()));
}

fn about(uplink: &Uplink, kind: EventKind, sentence: String) -> EventNote {
    let note = EventNote::new(kind, format!("node {}", uplink.centre.name), sentence);
    note.with("peer", uplink.centre.name.clone())
}
