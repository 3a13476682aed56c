//! The paths of the station's line: which are in use, and when a missing one is called again.

mod over_tcp;
mod planned;
mod pool;
mod shown;

use super::fallback::Twin;
use super::outside::board::OutsideBoard;
use super::sockets::PathSocketOpener;
use crate::fault::Fault;
use crate::forecasts::{GivenHint, PathForecasts};
use crate::status::LinePath;
use planned::{PlannedPath, RETRY};
use pool::SocketPool;
pub use pool::SpareSocket;
use skyhaul_config::LinePath as PathConfig;
use skyhaul_net::{AnyEndpoint, Clock, SessionManager};
use skyhaul_sessions::{PathTarget, SessionId, SocketId};
use skyhaul_transport::{PathId, PathOptions, PathStatus, Session};
use skyhaul_units::{Instant, Rate, Utc};
use std::net::SocketAddr;

/// The paths that are to be used, and which of them the session has.
#[derive(Debug)]
pub struct StationPaths {
    sockets: SocketPool,
    planned: Vec<PlannedPath>,
    /// The index at which to look for the path that the next session begins on.
    next: usize,
    /// The path that the present session was called on.
    calling: Option<String>,
}

/// A path that a call goes out on.
#[derive(Debug)]
pub struct CallPath {
    /// Its socket.
    pub socket: SocketId,
    /// The centre's address there, or why there is none.
    pub remote: Result<SocketAddr, String>,
    /// Whether a second call can go out over TCP.
    pub tcp_side: TcpSide,
}

/// Whether a path can be called over TCP where UDP brings no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpSide {
    /// It can.
    Present,
    /// It uses one transport only.
    Absent,
}

/// What came of paths that were read from a changed configuration.
#[derive(Debug, Default)]
pub struct AdoptedPaths {
    /// What was done, a sentence each.
    pub changes: Vec<String>,
    /// The session's paths with other forecasts than before.
    pub hinted: Vec<PathId>,
}

/// What came of a forecast.
#[derive(Debug)]
pub struct AcceptedHint {
    /// The session's paths that the forecast is for: over UDP, over TCP.
    pub paths: Vec<PathId>,
    /// A sentence for the operator.
    pub said: String,
}

/// Sizes of a path's IP packets, where they are smaller than configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallerPacket {
    /// The size now, in bytes.
    pub size: u64,
    /// The configured size, in bytes.
    pub configured: u64,
}

/// A station has a handful of ways out; each costs a socket.
pub const PATHS_MAX: usize = 8;

impl StationPaths {
    /// The paths of a configuration, each with its socket that is served.
    pub fn new(opener: PathSocketOpener, paths: &[SpareSocket]) -> Self {
        let planned = paths.iter().map(|served| {
            let remotes = opener.remotes(&served.config);
            PlannedPath::new(served.config.clone(), remotes, served.family, Some(served.socket))
        });
        let planned = planned.collect();
        Self { sockets: SocketPool::new(opener, paths.len()), planned, next: 0, calling: None }
    }

    /// The path that a session begins on now; none while all are forecast to be out.
    pub fn call(&mut self, utc: Utc) -> Option<CallPath> {
        let count = self.planned.len();
        let able = |index: &usize| {
            let planned = &self.planned[*index];
            planned.socket.is_some() && planned.out_until(utc).is_none()
        };
        let index = (0..count).map(|step| (self.next + step) % count).find(able)?;
        self.next = index;
        let planned = &self.planned[index];
        self.calling = Some(planned.title().to_owned());
        let tcp_side = match planned.tcp {
            Some(_) => TcpSide::Present,
            None => TcpSide::Absent,
        };
        Some(CallPath { socket: planned.socket?, remote: planned.resolve(), tcp_side })
    }

    /// A session has begun on the path that was called: how it may use it.
    pub fn begun(&mut self) -> PathOptions {
        let Some(planned) = self.called().and_then(|index| self.planned.get_mut(index)) else {
            return PathOptions::default();
        };
        planned.path = Some(PathId(0));
        planned.reason = None;
        planned.options()
    }

    /// The index of the path that the present session was called on.
    fn called(&self) -> Option<usize> {
        let calling = self.calling.as_deref()?;
        self.planned.iter().position(|planned| planned.title() == calling)
    }

    /// There is no session: the next one begins on the next path, and where none was answered, at
    /// the next address.
    pub fn ended(&mut self, reason: &str) {
        let is_unanswered = self.planned.iter().all(|planned| planned.path.is_none());
        for planned in self.planned.iter_mut().filter(|_| is_unanswered) {
            planned.remotes.rotate_left(planned.remotes.len().min(1));
        }
        for planned in &mut self.planned {
            planned.path = None;
            planned.reason = Some(reason.to_owned());
            planned.tcp.iter_mut().for_each(Twin::ended);
        }
        self.next = (self.next + 1) % self.planned.len().max(1);
    }

    /// A path came up, which carries symbol datagrams of `payload` bytes.
    pub fn up(&mut self, path: PathId, payload: usize) {
        if let Some(planned) = self.planned.iter_mut().find(|planned| planned.path == Some(path)) {
            planned.full_payload = payload;
        }
    }

    /// A path ended, or did not come up.
    pub fn down(&mut self, now: Instant, path: PathId, reason: &str) {
        for planned in self.planned.iter_mut().filter(|planned| planned.path == Some(path)) {
            tracing::warn!(path = planned.title(), "path down: {reason}");
            planned.path = None;
            planned.reason = Some(reason.to_owned());
            let pause = planned.tcp.as_mut().and_then(Twin::next_pause);
            planned.retry_at = now + pause.unwrap_or(RETRY);
        }
        for planned in &mut self.planned {
            if let Some(twin) = planned.tcp.as_mut().filter(|twin| twin.path == Some(path)) {
                tracing::warn!(
                    path = planned.config.title(),
                    "TCP connection of the path down: {reason}"
                );
                twin.down(now, reason);
            }
        }
    }

    /// The name of a path of the session.
    pub fn title(&self, path: PathId) -> &str {
        let planned = self.planned.iter().find(|planned| planned.has(path));
        planned.map_or("path", PlannedPath::title)
    }

    /// The name of a path of the session, and the rate that is declared for it, or the lower one
    /// that it has now by a forecast.
    pub fn declared(&self, path: PathId, utc: Utc) -> (&str, Option<Rate>) {
        let planned = self.planned.iter().find(|planned| planned.has(path));
        let rate = planned.and_then(|planned| planned.config.rate);
        let rate = rate.or(self.sockets.opener.line.rate);
        let most = planned.and_then(|planned| planned.forecasts.ceiling(utc));
        (self.title(path), rate.into_iter().chain(most).min())
    }

    /// The names of all paths.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.planned.iter().map(PlannedPath::title)
    }

    /// The size of the IP packets of a path that carries symbol datagrams of `payload` bytes; none
    /// where they are as large as configured.
    pub fn smaller_packet(&self, path: PathId, payload: usize) -> Option<SmallerPacket> {
        let planned = self.planned.iter().find(|planned| planned.path == Some(path))?;
        let less = planned.shrunk_by(payload);
        let configured = self.sockets.mtu();
        (less > 0).then(|| SmallerPacket { size: configured.saturating_sub(less), configured })
    }

    /// Takes what feeds and plans say now. Returns the session's paths with other forecasts than
    /// before.
    pub fn learn(&mut self, board: &OutsideBoard, utc: Utc) -> Vec<PathId> {
        let mut changed = Vec::new();
        for planned in &mut self.planned {
            let knowledge = board.of(planned.config.title());
            if planned.forecasts.learn(knowledge, utc) {
                changed.extend(planned.used());
            }
        }
        changed
    }

    /// Tells the session the forecasts for one of its paths.
    pub fn hint(&self, session: &mut Session, path: PathId, clock: Clock) {
        if let Some(planned) = self.planned.iter().find(|planned| planned.has(path)) {
            planned.forecasts.send_to(session, path, clock);
        }
    }

    /// Calls the centre on the paths that are missing, and not forecast to be out.
    pub fn call_missing(
        &mut self,
        now: Instant,
        utc: Utc,
        manager: &mut SessionManager,
        session: SessionId,
    ) {
        let missing = |planned: &&mut PlannedPath| {
            planned.path.is_none() && planned.retry_at <= now && planned.out_until(utc).is_none()
        };
        for planned in self.planned.iter_mut().filter(missing) {
            let Some(socket) = planned.socket else { continue };
            planned.retry_at = now + RETRY;
            let joined = planned.resolve().and_then(|remote| {
                manager
                    .join(now, session, PathTarget { socket, remote }, planned.options())
                    .map_err(|error| error.to_string())
            });
            match joined {
                Ok(path) => planned.path = Some(path),
                Err(reason) => planned.reason = Some(reason),
            }
        }
    }

    /// Adds a path.
    ///
    /// # Errors
    /// There is one of that name, there are too many, or its socket cannot be had.
    pub fn add(&mut self, config: PathConfig) -> Result<String, Fault> {
        let (name, place) = (config.title().to_owned(), format!("path {}", config.title()));
        if self.planned.iter().any(|planned| planned.title() == name) {
            let help = "give it another name, or remove the other first";
            return Err(Fault::configuration("a path of this name exists", place, help));
        }
        if self.planned.len() >= PATHS_MAX {
            let what = format!("the station has {PATHS_MAX} paths");
            return Err(Fault::configuration(what, place, "remove one first"));
        }
        let (family, socket) = match self.sockets.take_spare(&config) {
            Some(spare) => (spare.family, Some(spare.socket)),
            None => (self.sockets.open(&config)?, None),
        };
        let remotes = self.sockets.opener.remotes(&config);
        self.planned.push(PlannedPath::new(config, remotes, family, socket));
        Ok(format!("path {name} added"))
    }

    /// The endpoint to be served next.
    pub fn next_endpoint(&mut self) -> Option<AnyEndpoint> {
        self.sockets.next_endpoint()
    }

    /// The endpoint that was given last is served.
    pub fn socket_added(&mut self, id: SocketId) {
        let Some(served) = self.sockets.served(id) else { return };
        let waits = |planned: &&mut PlannedPath| {
            planned.socket.is_none() && planned.title() == served.config.title()
        };
        match self.planned.iter_mut().find(waits) {
            Some(planned) => planned.socket = Some(id),
            // The path was removed meanwhile.
            None => self.sockets.keep(served),
        }
    }

    /// Removes a path; its data in flight moves to the other paths.
    ///
    /// # Errors
    /// There is none of that name, or it is the only one.
    pub fn remove(
        &mut self,
        now: Instant,
        name: &str,
        manager: &mut SessionManager,
        session: Option<SessionId>,
    ) -> Result<String, Fault> {
        let index = find(&self.planned, name)?;
        if self.planned.len() == 1 {
            let help = "add another first";
            return Err(Fault::configuration(
                "the only path cannot be removed",
                format!("path {name}"),
                help,
            ));
        }
        let gone = self.planned.remove(index);
        if index < self.next {
            self.next -= 1;
        }
        self.next %= self.planned.len().max(1);
        self.leave(now, gone, manager, session);
        Ok(format!("path {name} removed"))
    }

    fn leave(
        &mut self,
        now: Instant,
        gone: PlannedPath,
        manager: &mut SessionManager,
        session: Option<SessionId>,
    ) {
        let twin = gone.tcp.as_ref().and_then(|twin| twin.path);
        for path in [gone.path, twin].into_iter().flatten() {
            if let Some(session) = session {
                manager.leave(now, session, path, "the operator removed the path");
            }
        }
        let PlannedPath { config, family, socket, .. } = gone;
        if let Some(socket) = socket {
            self.sockets.keep(SpareSocket { config, family, socket });
        }
    }

    /// Takes a forecast for a path; the caller passes it to the session.
    ///
    /// # Errors
    /// There is none of that name, there are too many forecasts, or an outage ends before it
    /// begins.
    pub fn forecast(
        &mut self,
        name: &str,
        hint: &GivenHint,
        now: Utc,
    ) -> Result<AcceptedHint, Fault> {
        let index = find(&self.planned, name)?;
        let planned = &mut self.planned[index];
        let said = planned.forecasts.apply(name, hint, now).map_err(|refused| {
            Fault::configuration(refused.reason, format!("path {name}"), refused.help)
        })?;
        Ok(AcceptedHint { paths: planned.used().collect(), said })
    }

    /// Uses the paths of a configuration that was read again. Those that are there stay, with their
    /// present forecasts.
    pub fn adopt(
        &mut self,
        now: Instant,
        paths: Vec<PathConfig>,
        manager: &mut SessionManager,
        session: Option<SessionId>,
    ) -> AdoptedPaths {
        let mut adopted = AdoptedPaths::default();
        let before = core::mem::take(&mut self.planned);
        let (mut stay, gone): (Vec<PlannedPath>, Vec<PlannedPath>) = before
            .into_iter()
            .partition(|planned| paths.iter().any(|path| is_same(path, &planned.config)));
        for planned in &mut stay {
            let Some(path) = paths.iter().find(|path| is_same(path, &planned.config)) else {
                continue;
            };
            let has_other_outages = path.outage != planned.config.outage;
            planned.config = path.clone();
            if has_other_outages {
                planned.forecasts = PathForecasts::of(path);
                adopted.hinted.extend(planned.used());
                adopted.changes.push(format!("path {}: forecast outages changed", path.title()));
            }
        }
        self.planned = stay;
        for path in paths {
            if self.planned.iter().any(|planned| is_same(&path, &planned.config)) {
                continue;
            }
            adopted.changes.push(self.add(path).unwrap_or_else(|fault| fault.to_string()));
        }
        if self.planned.is_empty() {
            adopted.changes.push(
                "no path of the new configuration is usable: the previous paths stay".to_owned(),
            );
            self.planned = gone;
            return adopted;
        }
        for gone in gone {
            adopted.changes.push(format!("path {} removed", gone.title()));
            self.leave(now, gone, manager, session);
        }
        self.next = 0;
        adopted
    }

    /// The paths for status output; `used` are the session's.
    pub fn status(&self, used: &[(PathId, PathStatus)], clock: Clock) -> Vec<LinePath> {
        let sides = |planned: &PlannedPath| {
            let twin = planned.tcp.as_ref().filter(|twin| twin.path.is_some());
            let settings = self.sockets.opener.settings(&planned.config, planned.family);
            let now = used.iter().find(|(path, _)| Some(*path) == planned.path);
            let less = now.map_or(0, |(_, status)| planned.shrunk_by(status.payload));
            let shown = planned.shown(used, clock).controlled(&settings, less);
            [Some(shown), twin.map(|twin| planned.shown_over_tcp(twin, used, clock))]
        };
        self.planned.iter().flat_map(sides).flatten().collect()
    }
}

/// The index of the path of this name.
fn find(planned: &[PlannedPath], name: &str) -> Result<usize, Fault> {
    let found = planned.iter().position(|planned| planned.title() == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = planned.iter().map(PlannedPath::title).collect();
        let help = format!("the paths are {}", known.join(", "));
        Fault::configuration("there is no such path", format!("path {name}"), help)
    })
}

/// Whether two paths are the same but for what is known of them from outside.
fn is_same(one: &PathConfig, other: &PathConfig) -> bool {
    one.without_hints() == other.without_hints()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_family::AddressFamily;
    use crate::forecasts::HintGiver;
    use crate::status::PathHint;
    use skyhaul_config::ConfigTime;
    use skyhaul_net::{Socket, UdpEndpoint};
    use skyhaul_quic::{EndpointConfig, Identity, PathConfig as QuicConfig, QuicEndpoint};
    use skyhaul_transport::SessionConfig;

    fn config(text: &str) -> PathConfig {
        toml::from_str(text).expect("a path")
    }

    /// One path, `a`, and a session manager that serves its socket.
    fn paths() -> (StationPaths, SessionManager, Clock) {
        let (clock, identity) = (Clock::start(), Identity::from_seed(&[1; 32]).expect("a key"));
        let settings = EndpointConfig::new(
            identity.clone(),
            QuicConfig::over(Rate::from_mbps(10)),
            clock.std_start(),
        );
        let socket = Socket::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
        let endpoint = UdpEndpoint::new(QuicEndpoint::new(settings).expect("an endpoint"), socket);
        let manager = SessionManager::new(endpoint.into(), SessionConfig::default());
        let line = toml::from_str("").expect("a line");
        let opener = PathSocketOpener {
            identity: identity.into(),
            line,
            centre: vec!["127.0.0.1:9".to_owned()],
            clock,
        };
        let a = SpareSocket {
            config: config("name = \"a\""),
            family: AddressFamily::V4,
            socket: SocketId(0),
        };
        (StationPaths::new(opener, &[a]), manager, clock)
    }

    fn serve(paths: &mut StationPaths, manager: &mut SessionManager) {
        while let Some(endpoint) = paths.next_endpoint() {
            let id = manager.add_endpoint(endpoint);
            paths.socket_added(id);
        }
    }

    fn names(paths: &StationPaths) -> Vec<&str> {
        paths.planned.iter().map(|planned| planned.config.title()).collect()
    }

    #[test]
    fn paths_come_and_go_and_sockets_are_used_again() {
        let (mut paths, mut manager, _) = paths();
        let now = Instant::ZERO;
        assert!(paths.remove(now, "a", &mut manager, None).is_err(), "the only one");
        assert!(paths.add(config("name = \"a\"")).is_err(), "there is one of that name");
        for round in 0..100 {
            paths.add(config("name = \"b\"\ninterface = \"lo\"")).expect("added");
            serve(&mut paths, &mut manager);
            assert!(paths.planned[1].socket.is_some(), "round {round}");
            paths.remove(now, "b", &mut manager, None).expect("removed");
        }
        assert_eq!((names(&paths), paths.sockets.counts().0), (vec!["a"], 2));
        for number in 1..PATHS_MAX {
            paths.add(config(&format!("name = \"p{number}\""))).expect("added");
        }
        assert!(paths.add(config("name = \"more\"")).is_err(), "{PATHS_MAX} are enough");
    }

    #[test]
    fn one_that_is_removed_before_it_is_served_leaves_its_socket() {
        let (mut paths, mut manager, _) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        paths.remove(Instant::ZERO, "b", &mut manager, None).expect("removed");
        serve(&mut paths, &mut manager);
        assert_eq!((paths.sockets.counts().1, names(&paths)), (1, vec!["a"]));
    }

    #[test]
    fn a_session_begins_on_a_path_that_is_not_forecast_to_be_out() {
        let (mut paths, mut manager, clock) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        serve(&mut paths, &mut manager);
        let time = |text: &str| text.parse::<ConfigTime>().expect("a time");
        let (from, until) = (time("2020-01-01T00:00:00Z"), time("2150-01-01T00:00:00Z"));
        let now = clock.utc();
        let given = |says| GivenHint { by: HintGiver::Operator, says };
        let outage = given(PathHint::Outage { from, until });
        paths.forecast("a", &outage, now).expect("forecast");
        assert!(paths.call(now).is_some());
        assert_eq!(paths.calling.as_deref(), Some("b"));
        paths.forecast("b", &outage, now).expect("forecast");
        assert!(paths.call(now).is_none(), "all are out");
        let shown = paths.status(&[], clock);
        assert_eq!((shown[0].state.as_str(), shown[0].reason.is_some()), ("absent", true));
        paths.forecast("a", &given(PathHint::Withdraw), now).expect("withdrawn");
        assert!(paths.call(now).is_some());
        let reversed = given(PathHint::Outage { from: until, until: from });
        assert!(paths.forecast("b", &reversed, now).is_err());
    }

    #[test]
    fn a_configuration_that_is_read_again_changes_what_differs_alone() {
        let (mut paths, mut manager, _) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        serve(&mut paths, &mut manager);
        let now = Instant::ZERO;
        let outage = "name = \"b\"\n[[outage]]\nfrom = \"2030-01-01T00:00:00Z\"\nuntil = \
                     \"2030-01-01T01:00:00Z\"";
        let AdoptedPaths { changes, hinted } =
            paths.adopt(now, vec![config(outage), config("name = \"c\"")], &mut manager, None);
        assert_eq!(
            (changes.len(), hinted.len(), names(&paths)),
            (3, 0, vec!["b", "c"]),
            "{changes:?}"
        );
        assert!(!paths.planned[0].forecasts.is_empty());
        let AdoptedPaths { changes, .. } = paths.adopt(
            now,
            vec![config("name = \"d\"\ninterface = \"eth99\"")],
            &mut manager,
            None,
        );
        assert!(changes[0].contains("eth99") && changes[1].contains("stay"), "{changes:?}");
        assert_eq!(names(&paths), ["b", "c"]);
    }
}
