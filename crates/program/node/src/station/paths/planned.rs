//! A path that is to be used: its socket, its part in the session, its TCP side.

use super::pool::SocketPool;
use crate::address_family::AddressFamily;
use crate::forecasts::PathForecasts;
use crate::station::fallback::{BLOCKED, Twin};
use crate::station::sockets::resolve_in;
use skyhaul_config::{LinePath as PathConfig, Transport};
use skyhaul_net::SessionManager;
use skyhaul_sessions::{PathTarget, SessionId, SocketId};
use skyhaul_transport::{PathId, PathOptions};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A path of the configuration, or one that an operator added.
#[derive(Debug)]
pub struct PlannedPath {
    /// Its configuration.
    pub config: PathConfig,
    /// The destination's hosts and ports on it: the one that is called, then the others in turn.
    pub remotes: VecDeque<String>,
    /// The family of its addresses.
    pub family: AddressFamily,
    /// Its socket; none until that is served.
    pub socket: Option<SocketId>,
    /// Forecast outages and rates.
    pub forecasts: PathForecasts,
    /// The session's number of it, while it is called or in use.
    pub path: Option<PathId>,
    /// When it is called again.
    pub retry_at: Instant,
    /// Why it is not in use.
    pub reason: Option<String>,
    /// The largest symbol datagram when it came up.
    pub full_payload: usize,
    /// Its TCP side, where it has both.
    pub tcp: Option<Twin>,
}

/// Between two calls on a path that is missing.
pub const RETRY: Duration = Duration::from_secs(5);

impl PlannedPath {
    /// A path that is not in use yet.
    pub fn new(
        config: PathConfig,
        remotes: Vec<String>,
        family: AddressFamily,
        socket: Option<SocketId>,
    ) -> Self {
        Self {
            remotes: remotes.into(),
            forecasts: PathForecasts::of(&config),
            family,
            socket,
            path: None,
            retry_at: Instant::ZERO,
            reason: None,
            full_payload: 0,
            tcp: (config.transport == Transport::Auto).then(Twin::default),
            config,
        }
    }

    /// Its name, or what stands for it.
    pub fn title(&self) -> &str {
        self.config.title()
    }

    /// How the session may use it.
    pub const fn options(&self) -> PathOptions {
        PathOptions { metered: self.config.metered, standby: self.config.standby }
    }

    /// When the forecast outage ends that it is in at `now`; none where it is in none.
    pub fn out_until(&self, now: Utc) -> Option<Utc> {
        self.forecasts.out_until(now)
    }

    /// The session's paths that are its sides.
    pub fn used(&self) -> impl Iterator<Item = PathId> + use<> {
        [self.path, self.tcp.as_ref().and_then(|twin| twin.path)].into_iter().flatten()
    }

    /// Whether one of its sides is this path of the session.
    pub fn has(&self, path: PathId) -> bool {
        self.used().any(|used| used == path)
    }

    /// The host and port that are called.
    pub fn remote(&self) -> &str {
        self.remotes.front().map_or("", String::as_str)
    }

    /// The address that is called.
    ///
    /// # Errors
    /// The name has no address of its family: a sentence for the log.
    pub fn resolve(&self) -> Result<SocketAddr, String> {
        resolve_in(self.remote(), self.family)
    }

    /// The socket of its TCP side, which is opened at the first use; none where there is no such
    /// side, or no socket can be had.
    pub fn tcp_socket(
        &mut self,
        pool: &mut SocketPool,
        manager: &mut SessionManager,
    ) -> Option<SocketId> {
        let twin = self.tcp.as_mut()?;
        if twin.socket.is_none() {
            match pool.open_tcp(&self.config, self.family) {
                Ok(Some(endpoint)) => twin.socket = Some(manager.add_endpoint(endpoint.into())),
                Ok(None) => {}
                Err(fault) => twin.reason = Some(fault.to_string()),
            }
        }
        twin.socket
    }

    /// Adds its TCP side to a session.
    pub fn join_tcp(
        &mut self,
        now: Instant,
        pool: &mut SocketPool,
        manager: &mut SessionManager,
        session: SessionId,
    ) {
        let Some(socket) = self.tcp_socket(pool, manager) else { return };
        let (options, remote) = (self.options(), self.resolve());
        let Some(twin) = &mut self.tcp else { return };
        let joined = remote.and_then(|remote| {
            manager
                .join(now, session, PathTarget { socket, remote }, options)
                .map_err(|error| error.to_string())
        });
        match joined {
            Ok(path) => {
                tracing::warn!(path = self.config.title(), "{BLOCKED}");
                twin.called(path, BLOCKED);
            }
            Err(reason) => twin.down(now, &reason),
        }
    }

    /// The bytes by which datagrams of `payload` bytes are smaller than when the path came up.
    pub const fn shrunk_by(&self, payload: usize) -> u64 {
        self.full_payload.saturating_sub(payload) as u64
    }
}
