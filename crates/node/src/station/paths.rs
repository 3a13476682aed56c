//! The paths of the station's line: which are in use, and when a missing one is called again.

use super::uplink::resolve;
use crate::status::LinePath;
use skyhaul_engine::{SessionId, SocketId};
use skyhaul_net::Engine;
use skyhaul_transport::{PathId, PathOptions, PathStatus};
use skyhaul_units::{Duration, Instant};

/// One configured path.
#[derive(Debug, Clone)]
pub struct PathPlan {
    /// The socket that it goes from.
    pub socket: SocketId,
    /// That socket's address, as configured.
    pub local: String,
    /// The centre's host and port on this path.
    pub remote: String,
    /// How it may be used.
    pub options: PathOptions,
}

/// The configured paths, and which of them the session has.
#[derive(Debug)]
pub struct Paths {
    planned: Vec<Planned>,
    /// The one that the next session begins on.
    first: usize,
}

#[derive(Debug)]
struct Planned {
    plan: PathPlan,
    path: Option<PathId>,
    retry_at: Instant,
    reason: Option<String>,
}

/// Between two calls on a path that is missing.
const RETRY: Duration = Duration::from_secs(5);

impl Paths {
    /// At least one path.
    pub fn new(plans: Vec<PathPlan>) -> Self {
        let planned = |plan| Planned { plan, path: None, retry_at: Instant::ZERO, reason: None };
        Self { planned: plans.into_iter().map(planned).collect(), first: 0 }
    }

    /// The path that a session begins on.
    pub fn first(&self) -> Option<&PathPlan> {
        self.planned.get(self.first).map(|planned| &planned.plan)
    }

    /// A session has begun on the first path.
    pub fn begun(&mut self) {
        if let Some(planned) = self.planned.get_mut(self.first) {
            planned.path = Some(PathId(0));
            planned.reason = None;
        }
    }

    /// There is no session: the next one begins on the next path.
    pub fn ended(&mut self, reason: &str) {
        for planned in &mut self.planned {
            planned.path = None;
            planned.reason = Some(reason.to_owned());
        }
        self.first = (self.first + 1) % self.planned.len().max(1);
    }

    /// A path ended, or did not come up.
    pub fn down(&mut self, now: Instant, path: PathId, reason: &str) {
        for planned in self.planned.iter_mut().filter(|planned| planned.path == Some(path)) {
            tracing::warn!(
                local = planned.plan.local,
                remote = planned.plan.remote,
                "a path is down: {reason}"
            );
            planned.path = None;
            planned.reason = Some(reason.to_owned());
            planned.retry_at = now + RETRY;
        }
    }

    /// Calls the centre on the paths that are missing.
    pub fn call_missing(&mut self, now: Instant, engine: &mut Engine, session: SessionId) {
        for planned in
            self.planned.iter_mut().filter(|planned| planned.path.is_none() && planned.retry_at <= now)
        {
            planned.retry_at = now + RETRY;
            let PathPlan { socket, ref remote, options, .. } = planned.plan;
            let joined = resolve(remote).and_then(|remote| {
                engine.join(now, session, (socket, remote), options).map_err(|error| error.to_string())
            });
            match joined {
                Ok(path) => planned.path = Some(path),
                Err(reason) => planned.reason = Some(reason),
            }
        }
    }

    /// The paths for status output; `used` are the session's.
    pub fn status(&self, used: &[(PathId, PathStatus)]) -> Vec<LinePath> {
        let line_path = |planned: &Planned| {
            let mut shown = LinePath {
                local: planned.plan.local.clone(),
                remote: planned.plan.remote.clone(),
                state: "down".to_owned(),
                reason: planned.reason.clone(),
                ..LinePath::default()
            };
            if let Some((_, status)) = used.iter().find(|(path, _)| Some(*path) == planned.path) {
                shown.state = status.state.name().to_owned();
                shown.reason = None;
                shown.rtt_s = status.estimate.rtt.as_secs_f64();
                shown.rate_bps = status.estimate.rate.as_bps();
                shown.loss = status.loss.as_f64();
                shown.bytes_sent = status.stats.bytes_sent;
                shown.repair_sent = status.stats.repair_sent;
                shown.repair_used = status.stats.recovered_there;
                shown.stalls = status.stats.stalls;
            } else if planned.path.is_some() {
                shown.state = "probing".to_owned();
            }
            shown
        };
        self.planned.iter().map(line_path).collect()
    }
}
