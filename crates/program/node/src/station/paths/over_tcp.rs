//! The TCP sides of paths: opened when they are needed, called while UDP does not work, left when
//! it does.

use super::super::fallback::{BLOCKED, FallbackStep};
use super::planned::RETRY;
use super::{CallPath, StationPaths, TcpSide};
use skyhaul_net::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_transport::{PathId, PathOptions, PathState, Session};
use skyhaul_units::{Instant, Utc};

impl StationPaths {
    /// The TCP side of the path that the centre is called on; none where it has no such side.
    pub fn call_tcp(&mut self, manager: &mut SessionManager) -> Option<CallPath> {
        let index = self.called()?;
        let planned = self.planned.get_mut(index)?;
        let socket = planned.tcp_socket(&mut self.sockets, manager)?;
        Some(CallPath { socket, remote: planned.resolve(), tcp_side: TcpSide::Absent })
    }

    /// Calls over TCP where UDP does not work, and leaves TCP where UDP works again.
    pub fn fall_back(
        &mut self,
        now: Instant,
        utc: Utc,
        manager: &mut SessionManager,
        session: SessionId,
    ) {
        let Some(states) = manager.session(session).map(|session| states(session)) else { return };
        for planned in &mut self.planned {
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
                (FallbackStep::Call, _) => {
                    planned.join_tcp(now, &mut self.sockets, manager, session);
                }
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
                (FallbackStep::Stay, _)
                | (FallbackStep::StandBy | FallbackStep::Lead | FallbackStep::Leave, None) => {}
            }
        }
    }

    /// A session has begun over the TCP side of the path that was called, because of `reason`: how
    /// it may use it.
    pub fn begun_over_tcp(&mut self, now: Instant, reason: &str) -> PathOptions {
        let Some(planned) = self.called().and_then(|index| self.planned.get_mut(index)) else {
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
    session.paths().iter().map(|(path, status)| (path, status.state)).collect()
}
