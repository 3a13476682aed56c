//! The TCP sides of paths: opened when they are needed, called while UDP does not work, left when
//! it does.

use super::super::fallback::FallbackStep;
use super::super::sockets::resolve_in;
use super::{Paths, RETRY, SOCKETS_MAX};
use core::net::SocketAddr;
use skyhaul_net::SessionManager;
use skyhaul_sessions::{SessionId, SocketId};
use skyhaul_transport::{PathId, PathOptions, PathState, Session};
use skyhaul_units::{Instant, Utc};

/// Why TCP is used.
const BLOCKED: &str = "no answer over UDP: using TCP until UDP works";

impl Paths {
    /// The path that the centre is called on, over TCP: its endpoint there, the centre's address.
    /// None where it has no TCP side.
    pub fn call_tcp(
        &mut self,
        manager: &mut SessionManager,
    ) -> Option<(SocketId, Result<SocketAddr, String>)> {
        let place = self.called()?;
        let socket = self.tcp_socket(place, manager)?;
        let planned = self.planned.get(place)?;
        Some((socket, resolve_in(&planned.remote, planned.is_ipv6)))
    }

    /// Where the path is that the present session was called on.
    fn called(&self) -> Option<usize> {
        let calling = self.calling.as_deref()?;
        self.planned.iter().position(|planned| planned.config.title() == calling)
    }

    /// The endpoint of a path's TCP side; opened where there is none yet.
    fn tcp_socket(&mut self, place: usize, manager: &mut SessionManager) -> Option<SocketId> {
        let opened = self.opened;
        let planned = self.planned.get_mut(place)?;
        let twin = planned.tcp.as_mut()?;
        if twin.socket.is_none() && opened < SOCKETS_MAX {
            match self.opener.open_tcp(&planned.config, planned.is_ipv6) {
                Ok(endpoint) => {
                    self.opened += 1;
                    twin.socket = Some(manager.add_carrier(endpoint.into()));
                }
                Err(fault) => twin.reason = Some(fault.to_string()),
            }
        }
        twin.socket
    }

    /// Calls over TCP where UDP does not work, and leaves that where it works again.
    pub fn fall_back(
        &mut self,
        (now, utc): (Instant, Utc),
        manager: &mut SessionManager,
        session: SessionId,
    ) {
        let Some(states) = manager.session(session).map(|session| states(session)) else { return };
        for place in 0..self.planned.len() {
            let planned = &mut self.planned[place];
            let (udp, options) = (planned.path, planned.options());
            let udp = udp
                .and_then(|udp| states.iter().find(|(id, _)| *id == udp))
                .map(|(_, state)| *state);
            if planned.out_until(utc).is_some() {
                continue;
            }
            let Some(twin) = &mut planned.tcp else { continue };
            let step = twin.step(now, udp);
            let path = twin.path;
            match (step, path) {
                (FallbackStep::Call, _) => self.join_tcp(now, place, (manager, session)),
                (FallbackStep::Leave, Some(path)) => {
                    tracing::info!(path = planned.config.title(), "UDP works again: leaving TCP");
                    manager.leave(now, session, path, "UDP works again");
                    twin.down(now, "UDP works");
                }
                (FallbackStep::StandBy | FallbackStep::Lead, Some(path)) => {
                    let standby = step == FallbackStep::StandBy || options.standby;
                    if let Some(session) = manager.session(session) {
                        session.add_path(path, PathOptions { standby, ..options });
                    }
                }
                (
                    FallbackStep::Stay
                    | FallbackStep::StandBy
                    | FallbackStep::Lead
                    | FallbackStep::Leave,
                    _,
                ) => {}
            }
        }
    }

    fn join_tcp(
        &mut self,
        now: Instant,
        place: usize,
        (manager, session): (&mut SessionManager, SessionId),
    ) {
        let Some(socket) = self.tcp_socket(place, manager) else { return };
        let planned = &mut self.planned[place];
        let options = planned.options();
        let Some(twin) = &mut planned.tcp else { return };
        let joined = resolve_in(&planned.remote, planned.is_ipv6).and_then(|remote| {
            manager.join(now, session, (socket, remote), options).map_err(|error| error.to_string())
        });
        match joined {
            Ok(path) => {
                tracing::warn!(path = planned.config.title(), "{BLOCKED}");
                twin.called(path, BLOCKED);
            }
            Err(reason) => twin.down(now, &reason),
        }
    }

    /// A session has begun over TCP on the path that was called, because `reason`: how it may use
    /// it.
    pub fn begun_over_tcp(&mut self, now: Instant, reason: &str) -> PathOptions {
        let place = self.called();
        let Some(planned) = place.and_then(|place| self.planned.get_mut(place)) else {
            return PathOptions::default();
        };
        tracing::warn!(path = planned.config.title(), "{BLOCKED}");
        planned.path = None;
        planned.reason = Some(reason.to_owned());
        if let Some(twin) = &mut planned.tcp {
            twin.called(PathId(0), BLOCKED);
            planned.retry_at = now + twin.next_pause().unwrap_or(RETRY);
        }
        planned.options()
    }
}

/// The states of a session's paths.
fn states(session: &Session) -> Vec<(PathId, PathState)> {
    session.paths().map(|(path, status)| (path, status.state)).collect()
}
