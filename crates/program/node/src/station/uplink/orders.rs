//! Orders for the paths of an uplink, and what changes of the configuration.

use super::connection::Ending;
use super::health::PathHealth;
use super::{Served, Uplink};
use crate::custody::Feeder;
use crate::fault::Fault;
use crate::forecasts::GivenHint;
use crate::reports::PeerSide;
use crate::station::early::EarlyFinishes;
use crate::station::rivals::SHARED_KEY;
use crate::station::shared::StationShared;
use skyhaul_config::{LinePath, LineSharing};
use skyhaul_events::AlarmKind;
use skyhaul_net::{AnyEndpoint, SessionManager};
use skyhaul_sessions::SocketId;
use skyhaul_transport::{LineShare, PathId, Resume};
use skyhaul_units::{Instant, Utc};

/// An uplink that takes orders.
pub struct UplinkOrders<'a> {
    uplink: &'a mut Uplink,
}

impl<'a> UplinkOrders<'a> {
    pub(super) const fn of(uplink: &'a mut Uplink) -> Self {
        Self { uplink }
    }

    /// Adds a path.
    ///
    /// # Errors
    /// There is one of that name, there are too many, or its socket cannot be had.
    pub fn add_path(&mut self, path: LinePath) -> Result<String, Fault> {
        self.uplink.paths.add(path)
    }

    /// Removes a path.
    ///
    /// # Errors
    /// There is none of that name, or it is the only one.
    pub fn remove_path(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        name: &str,
    ) -> Result<String, Fault> {
        let session = self.uplink.connection.id().filter(|_| self.uplink.feeder.is_feeding());
        self.uplink.paths.remove(now, name, manager, session)
    }

    /// Uses these paths and this sharing of the line. Returns what changed, a sentence each.
    pub fn adopt(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        paths: Vec<LinePath>,
        sharing: LineSharing,
    ) -> Vec<String> {
        let session = self.uplink.connection.id().filter(|_| self.uplink.feeder.is_feeding());
        let mut adopted = self.uplink.paths.adopt(now, paths, served.manager, session);
        for path in adopted.hinted {
            self.uplink.send_forecasts(served.manager, path);
        }
        adopted.changes.extend(self.share(served, sharing));
        adopted.changes
    }

    /// An order was carried out: what it changed is shown, and a call that may be on a path that is
    /// gone is made again.
    pub fn ordered(&mut self, now: Instant, served: &mut Served<'_>) {
        let session = self.uplink.connection.id().filter(|_| self.uplink.feeder.is_feeding());
        if session.is_none() && !self.uplink.connection.is_down() {
            self.uplink.connection.id().into_iter().for_each(|id| served.guests.ended(id));
            for call in self.uplink.connection.ids() {
                served.manager.close(now, call, "the station's paths have changed");
            }
            self.uplink.connection.restart(now);
        }
        self.uplink.timers.update_at = now;
    }

    /// Takes a forecast for a path.
    ///
    /// # Errors
    /// There is no such path, or the forecast cannot be.
    pub fn hint(
        &mut self,
        manager: &mut SessionManager,
        name: &str,
        hint: &GivenHint,
    ) -> Result<String, Fault> {
        let accepted = self.uplink.paths.forecast(name, hint, self.uplink.clock.utc())?;
        for path in accepted.paths {
            self.uplink.send_forecasts(manager, path);
        }
        Ok(accepted.said)
    }

    /// Replaces the class tree, the policy and the delivery of channels. Returns a sentence if they
    /// differ.
    fn share(&mut self, served: &mut Served<'_>, sharing: LineSharing) -> Option<String> {
        let is_other = |old: &LineSharing| *old != sharing;
        if !is_other(self.uplink.feeder.sharing()) {
            return None;
        }
        if let Some(line) = &self.uplink.line {
            line.replace(sharing.tree.clone());
        }
        if let Some(session) = self.uplink.session(served.manager) {
            session.sender_mut().share(sharing.tree.clone(), sharing.policy);
        }
        self.uplink
            .connection
            .id()
            .into_iter()
            .for_each(|id| served.guests.shared(id, &sharing.tree));
        self.uplink.feeder.share(&self.uplink.shared.spool(), sharing);
        Some("the classes of the line are changed".to_owned())
    }

    /// An endpoint to serve from now on.
    pub fn next_socket(&mut self) -> Option<AnyEndpoint> {
        self.uplink.paths.next_endpoint()
    }

    /// The endpoint given last is served under this number.
    pub fn socket_added(&mut self, id: SocketId) {
        self.uplink.paths.socket_added(id);
    }

    /// Shares a line from now on, if it shares none.
    pub fn share_line(&mut self, served: &mut Served<'_>, line: Option<&LineShare>) {
        if self.uplink.line.is_some() || line.is_none() {
            return;
        }
        self.uplink.line = line.cloned();
        let Some(session) = self.uplink.session(served.manager) else { return };
        if let Err(error) = session.sender_mut().set_line(line) {
            tracing::warn!(centre = %self.uplink.centre.address, "{error}");
        }
        let used: Vec<PathId> = session.paths().iter().map(|(path, _)| path).collect();
        for path in used {
            PathHealth::of(self.uplink).share(served.manager, path);
        }
    }

    /// Ends its session, or its calls, because the destination is not configured any more. Its
    /// sockets stay open until the node ends.
    pub fn leave(&mut self, now: Instant, served: &mut Served<'_>) {
        let reason = "the destination was removed from the configuration";
        for id in self.uplink.connection.ids() {
            served.manager.close(now, id, reason);
        }
        let over = self.uplink.lateness.update(now, &[]);
        over.into_iter().for_each(|(flow, change)| self.uplink.report_forecast(flow, change));
        self.uplink.down(served.guests, Ending::Lost, reason.to_owned());
        let (alarms, name) = (&self.uplink.shared.alarms, &self.uplink.centre.name);
        alarms.clear(AlarmKind::KeyShared, self.uplink.subject(SHARED_KEY));
        alarms.clear(AlarmKind::StandbyFailed, self.uplink.subject(super::standby::CANNOT));
        alarms.clear(AlarmKind::DataGaveWay, format!("data for {name}"));
        alarms.forget(name);
        self.uplink.shared.reports.forget(PeerSide::Destination, name);
    }
}

/// The name of the destination of an uplink.
pub fn destination(uplink: &Uplink) -> &str {
    &uplink.centre.name
}

/// Takes the custody of contacts that the destination finished, and that ended since then.
pub(super) fn settle_finished(shared: &StationShared, feeder: &mut Feeder) {
    if feeder.early().next().is_some() {
        for flow in feeder.settle_finished(&mut shared.spool()) {
            shared.early.forget(flow, feeder.to());
        }
    }
}

/// The destination said what it has. Contacts that it finished too early are noted under the lock:
/// none can end between the two.
pub(super) fn greeted(shared: &StationShared, feeder: &mut Feeder, resume: &Resume, utc: Utc) {
    let mut spool = shared.spool();
    feeder.greeted(&mut spool, resume, utc);
    note_early(&shared.early, feeder);
}

/// Tells the spooler of contacts that the destination finished before they ended.
pub(super) fn note_early(noted: &EarlyFinishes, feeder: &Feeder) {
    for (flow, sent) in feeder.early() {
        noted.note(flow, feeder.to(), sent);
    }
}
