//! Paths for status output.

use super::super::fallback::Twin;
use super::planned::PlannedPath;
use crate::status::{LinePath, seconds};
use skyhaul_config::Transport;
use skyhaul_net::Clock;
use skyhaul_quic::PathConfig;
use skyhaul_transport::{PathId, PathState, PathStatus};
use skyhaul_units::Rate;

impl PlannedPath {
    pub(super) fn shown_over_tcp(
        &self,
        twin: &Twin,
        used: &[(PathId, PathStatus)],
        clock: Clock,
    ) -> LinePath {
        let mut shown = LinePath {
            name: self.config.title().to_owned(),
            local: self.config.place(),
            remote: self.remote().to_owned(),
            over: "tcp".to_owned(),
            state: PathState::Probing.name().to_owned(),
            ..LinePath::default()
        };
        if let Some((_, status)) = used.iter().find(|(path, _)| Some(*path) == twin.path) {
            shown.measure(status, clock);
        }
        shown.reason = shown.reason.or_else(|| twin.reason.clone());
        shown
    }

    pub(super) fn shown(&self, used: &[(PathId, PathStatus)], clock: Clock) -> LinePath {
        let mut shown = LinePath {
            name: self.config.title().to_owned(),
            local: self.config.place(),
            remote: self.remote().to_owned(),
            over: if self.config.transport == Transport::Tcp { "tcp" } else { "udp" }.to_owned(),
            state: "failed".to_owned(),
            reason: self.reason.clone(),
            ..LinePath::default()
        };
        if let Some(until) = self.out_until(clock.utc()) {
            shown.state = PathState::Absent.name().to_owned();
            shown.reason = Some(format!("outage forecast until {}", seconds(until)));
        } else if self.path.is_some() || self.reason.is_none() {
            shown.state = PathState::Probing.name().to_owned();
            shown.reason = None;
        }
        shown.outlook = self.forecasts.outlook(clock.utc());
        if let Some((_, status)) = used.iter().find(|(path, _)| Some(*path) == self.path) {
            shown.measure(status, clock);
        }
        shown
    }
}

impl LinePath {
    /// The same with what decides how fast it goes, where it goes over UDP.
    /// Its datagrams are by `less` smaller than configured.
    pub(super) fn controlled(mut self, settings: &PathConfig, less: u64) -> Self {
        if self.over == "udp" {
            self.control.controller = settings.controller.name().to_owned();
            self.control.declared_bps = settings.controller.declared_rate().map(Rate::as_bps);
            self.control.payload = u64::from(settings.udp_payload).saturating_sub(less);
            self.control.payload_configured =
                if less > 0 { u64::from(settings.udp_payload) } else { 0 };
        }
        self
    }
}
