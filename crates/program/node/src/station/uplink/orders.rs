//! Orders for the paths of an uplink, and what changes of the configuration.

use super::{Served, Uplink};
use crate::fault::Fault;
use crate::status::PathHint;
use skyhaul_config::{LinePath, LineSharing};
use skyhaul_net::{AnyEndpoint, SessionManager};
use skyhaul_sessions::SocketId;
use skyhaul_units::Instant;

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
        hint: PathHint,
    ) -> Result<String, Fault> {
        let accepted = self.uplink.paths.forecast(name, hint, self.uplink.clock.utc())?;
        if let Some(path) = accepted.path {
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
}
