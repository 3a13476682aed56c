//! Reports paths that deliver nothing, or less than before: in the log, as alarms, in the status of
//! the line.

use super::Uplink;
use super::presence::subject_behind;
use crate::journal::EventNote;
use crate::station::paths::SmallerPacket;
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_net::SessionManager;
use skyhaul_transport::{Event, PathId, PathState, PathStatus};

/// The reason in the status where no path of the line delivers anything.
const SILENT: &str =
    "nothing is received from the centre; data not yet delivered waits in the spool";

/// Reports the health of the paths of an uplink.
pub(super) struct PathHealth<'a> {
    uplink: &'a mut Uplink,
}

impl<'a> PathHealth<'a> {
    pub(super) const fn of(uplink: &'a mut Uplink) -> Self {
        Self { uplink }
    }

    /// The state of a path has changed.
    pub(super) fn path_event(&mut self, manager: &mut SessionManager, event: &Event) {
        let (&Event::PathUp(path)
        | &Event::PathStalled(path)
        | &Event::PathBack(path)
        | &Event::PathResized(path)) = event
        else {
            return;
        };
        let session = self.uplink.connection.id().and_then(|id| manager.session(id));
        let status = session.and_then(|session| session.paths().iter().find(|(id, _)| *id == path));
        let Some((_, status)) = status else { return };
        self.tell(path, event);
        match event {
            Event::PathUp(_) => {
                self.share(manager, path);
                self.uplink.paths.up(path, status.payload);
                self.uplink.send_forecasts(manager, path);
            }
            Event::PathStalled(_) => self.path_stalled(path, &status),
            Event::PathBack(_) => {
                let about = subject_behind(self.uplink, &about(self.uplink.paths.title(path)));
                if !self.uplink.shared.alarms.clear(AlarmKind::PathBlackHole, &about) {
                    tracing::info!(path = self.uplink.paths.title(path), "path answers again");
                }
            }
            _ => self.path_resized(path, status.payload),
        }
        self.uplink.timers.update_at = skyhaul_units::Instant::ZERO;
    }

    /// Notes what happened to a path.
    fn tell(&self, path: PathId, event: &Event) {
        let (kind, what) = match event {
            Event::PathUp(_) => (EventKind::PathUp, "carries data"),
            Event::PathStalled(_) => (EventKind::PathStalled, "does not answer"),
            Event::PathBack(_) => (EventKind::PathBack, "answers again"),
            _ => return,
        };
        let (title, peer) = (self.uplink.paths.title(path), &self.uplink.centre.name);
        let note = EventNote::new(kind, about(title), format!("path {title} to {peer} {what}"));
        self.uplink.shared.alarms.events().note(note.with("peer", peer.clone()));
    }

    /// A path that came up, or has another rate by a forecast, counts for the line that the
    /// sessions share.
    pub(super) fn share(&self, manager: &mut SessionManager, path: PathId) {
        let (Some(line), Some(session)) =
            (&self.uplink.line, self.uplink.connection.id().and_then(|id| manager.session(id)))
        else {
            return;
        };
        let now = self.uplink.clock.now();
        let (title, rate) = self.uplink.paths.declared(path, self.uplink.clock.utc_of(now));
        let declared = line.declare(now, title, rate);
        let outcome =
            declared.and_then(|()| session.sender_mut().sharing_mut().set_path(path, title));
        if let Err(error) = outcome {
            tracing::warn!(path = title, "{error}");
        }
    }

    fn path_stalled(&self, path: PathId, status: &PathStatus) {
        let title = self.uplink.paths.title(path);
        match status.state {
            PathState::BlackHole => {
                let reason = "only short packets arrive; no larger size works; \
                              ask the line's operator for packets of 1280 bytes";
                let subject = subject_behind(self.uplink, &about(title));
                self.uplink.shared.alarms.raise(AlarmKind::PathBlackHole, subject, reason);
            }
            PathState::Silent => tracing::warn!(
                path = title,
                "path silent: nothing received for 1 s plus three round trips; data without \
                urgency waits"
            ),
            _ => tracing::warn!(
                path = title,
                "path does not answer; its data goes over the other paths"
            ),
        }
    }

    fn path_resized(&self, path: PathId, payload: usize) {
        let packets = packets(self.uplink.paths.title(path));
        let (about, alarms) = (subject_behind(self.uplink, &packets), &self.uplink.shared.alarms);
        match self.uplink.paths.smaller_packet(path, payload) {
            Some(SmallerPacket { size, configured }) => {
                let reason = format!(
                    "packets of {configured} bytes are lost; {size} bytes are sent instead. \
                     Write `mtu = \"{size} B\"` under [line] if this is permanent"
                );
                alarms.raise(AlarmKind::PathShortened, &about, &reason);
            }
            None => _ = alarms.clear(AlarmKind::PathShortened, &about),
        }
    }

    /// Clears the alarms of paths: the session has ended, and the next one judges its paths itself.
    pub(super) fn forget(&self) {
        for title in self.uplink.paths.titles() {
            let alarms = &self.uplink.shared.alarms;
            alarms.clear(AlarmKind::PathBlackHole, self.uplink.subject(&about(title)));
            alarms.clear(AlarmKind::PathShortened, self.uplink.subject(&packets(title)));
        }
    }

    /// Shows in the status of an open line that none of its paths delivers anything.
    pub(super) fn show_silence(&mut self, used: &[(PathId, PathStatus)]) {
        let brings_nothing = |state| {
            matches!(
                state,
                PathState::Silent | PathState::BlackHole | PathState::Stalled | PathState::Probing
            )
        };
        let is_dead = |state| brings_nothing(state) && state != PathState::Probing;
        let silent = used.iter().all(|(_, status)| brings_nothing(status.state))
            && used.iter().any(|(_, status)| is_dead(status.state));
        self.uplink.status.reason = silent.then(|| SILENT.to_owned());
    }
}

/// The subject of the alarm about a path that delivers only short packets.
fn packets(title: &str) -> String {
    format!("packets on path {title}")
}

/// The subject of the alarm about a path that delivers nothing.
fn about(title: &str) -> String {
    format!("path {title}")
}
