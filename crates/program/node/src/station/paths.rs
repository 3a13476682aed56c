//! The paths of the station's line: which are in use, when a missing one is called again, what is
//! foretold of each.

mod over_tcp;
mod shown;
mod size;

use super::fallback::Twin;
use super::sockets::{PathSocket, PathSocketOpener, resolve_in};
use crate::config::{LinePath as PathConfig, Transport};
use crate::fault::Fault;
use crate::status::{LinePath, PathHint};
use skyhaul_net::{AnyEndpoint, Clock, SessionManager};
use skyhaul_sessions::{SessionId, SocketId};
use skyhaul_transport::{Hint, PathId, PathOptions, PathStatus, Session};
use skyhaul_units::{Duration, Instant, Rate, Utc};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The paths that are to be used, and which of them the session has.
#[derive(Debug)]
pub struct Paths {
    opener: PathSocketOpener,
    planned: Vec<Planned>,
    /// Where to look for the path that the next session begins on.
    next: usize,
    /// The path that the present session was called on.
    calling: Option<String>,
    /// Sockets to be served; the first is the one asked for last.
    adding: VecDeque<Adding>,
    /// Sockets of paths that are gone: they are used again for paths alike.
    spare: Vec<Spare>,
    /// Sockets ever opened.
    opened: usize,
}

struct Adding {
    name: String,
    spare: Option<Spare>,
    endpoint: Option<AnyEndpoint>,
}

impl core::fmt::Debug for Adding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Adding").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Spare {
    config: PathConfig,
    is_ipv6: bool,
    socket: Option<SocketId>,
}

#[derive(Debug)]
struct Planned {
    config: PathConfig,
    remote: String,
    is_ipv6: bool,
    /// None until it is served.
    socket: Option<SocketId>,
    foretold: Vec<Foretold>,
    path: Option<PathId>,
    retry_at: Instant,
    reason: Option<String>,
    /// The largest symbol datagram when it came up.
    full: usize,
    /// Its TCP side, where it has both.
    tcp: Option<Twin>,
}

/// What is known of a path beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foretold {
    Outage(Utc, Utc),
    Rate(Utc, Rate),
}

/// Between two calls on a path that is missing.
const RETRY: Duration = Duration::from_secs(5);
/// A station has a handful of ways out; each costs a socket.
pub const PATHS_MAX: usize = 8;
/// Sockets ever opened: those of paths taken out are used again, but for other addresses and rates.
const SOCKETS_MAX: usize = 64;
/// As many outages and rates as a session takes.
const FORETOLD_MAX: usize = 64;

impl Paths {
    /// The paths of a configuration; the sockets that were opened for them are served in their
    /// order, from the first.
    pub fn new(opener: PathSocketOpener, paths: &[(PathConfig, bool)]) -> Self {
        let mut this = Self {
            opener,
            planned: Vec::new(),
            next: 0,
            calling: None,
            adding: VecDeque::new(),
            spare: Vec::new(),
            opened: paths.len(),
        };
        for (place, (config, is_ipv6)) in paths.iter().enumerate() {
            let planned = this.plan(config.clone(), *is_ipv6, Some(SocketId(place)));
            this.planned.push(planned);
        }
        this
    }

    fn plan(&self, config: PathConfig, is_ipv6: bool, socket: Option<SocketId>) -> Planned {
        Planned {
            remote: self.opener.remote(&config),
            foretold: outages(&config),
            is_ipv6,
            socket,
            path: None,
            retry_at: Instant::ZERO,
            reason: None,
            full: 0,
            tcp: (config.transport == Transport::Auto).then(Twin::default),
            config,
        }
    }

    /// The path that a session begins on now: its socket, the centre's address there. None while
    /// all are foretold to be out.
    ///
    /// # Errors
    /// The centre's name is not found.
    pub fn call(&mut self, utc: Utc) -> Option<(SocketId, Result<SocketAddr, String>)> {
        let count = self.planned.len();
        let places = (0..count).map(|step| (self.next + step) % count);
        let able = |place: &usize| {
            let planned = &self.planned[*place];
            planned.socket.is_some() && planned.out_until(utc).is_none()
        };
        let place = places.into_iter().find(able)?;
        self.next = place;
        let planned = &self.planned[place];
        self.calling = Some(planned.config.title().to_owned());
        Some((planned.socket?, resolve_in(&planned.remote, planned.is_ipv6)))
    }

    /// A session has begun on the path that was called: how it may use it.
    pub fn begun(&mut self) -> PathOptions {
        let calling = self.calling.clone();
        let called = |planned: &&mut Planned| Some(planned.config.title()) == calling.as_deref();
        let Some(planned) = self.planned.iter_mut().find(called) else {
            return PathOptions::default();
        };
        planned.path = Some(PathId(0));
        planned.reason = None;
        planned.options()
    }

    /// There is no session: the next one begins on the next path.
    pub fn ended(&mut self, reason: &str) {
        for planned in &mut self.planned {
            planned.path = None;
            planned.reason = Some(reason.to_owned());
            planned.tcp.iter_mut().for_each(Twin::ended);
        }
        self.next = (self.next + 1) % self.planned.len().max(1);
    }

    /// A path ended, or did not come up.
    pub fn down(&mut self, now: Instant, path: PathId, reason: &str) {
        for planned in self.planned.iter_mut().filter(|planned| planned.path == Some(path)) {
            tracing::warn!(path = planned.config.title(), "path down: {reason}");
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

    /// What a path of the session is called.
    pub fn title(&self, path: PathId) -> &str {
        let planned = self.planned.iter().find(|planned| planned.has(path));
        planned.map_or("path", |planned| planned.config.title())
    }

    /// Tells the session what is foretold of one of its paths.
    pub fn hint(&self, session: &mut Session, path: PathId, clock: Clock) {
        let Some(planned) = self.planned.iter().find(|planned| planned.has(path)) else { return };
        session.hint(path, Hint::Withdraw);
        for foretold in &planned.foretold {
            session.hint(path, foretold.hint(clock));
        }
    }

    /// Calls the centre on the paths that are missing, and not foretold to be out.
    pub fn call_missing(
        &mut self,
        (now, utc): (Instant, Utc),
        manager: &mut SessionManager,
        session: SessionId,
    ) {
        let missing = |planned: &&mut Planned| planned.path.is_none() && planned.retry_at <= now;
        for planned in self.planned.iter_mut().filter(missing) {
            let Some(socket) = planned.socket else { continue };
            if planned.out_until(utc).is_some() {
                continue;
            }
            planned.retry_at = now + RETRY;
            let joined = resolve_in(&planned.remote, planned.is_ipv6).and_then(|remote| {
                let options = planned.options();
                manager
                    .join(now, session, (socket, remote), options)
                    .map_err(|error| error.to_string())
            });
            match joined {
                Ok(path) => planned.path = Some(path),
                Err(reason) => planned.reason = Some(reason),
            }
        }
    }

    /// One more path.
    ///
    /// # Errors
    /// There is one of that name, there are too many, or its socket cannot be had.
    pub fn add(&mut self, config: PathConfig) -> Result<String, Fault> {
        let (name, place) = (config.title().to_owned(), format!("path {}", config.title()));
        if self.planned.iter().any(|planned| planned.config.title() == name) {
            let help = "give it another name, or remove the other first";
            return Err(Fault::configuration("a path of this name exists", place, help));
        }
        if self.planned.len() >= PATHS_MAX {
            let what = format!("the station has {PATHS_MAX} paths");
            return Err(Fault::configuration(what, place, "remove one first"));
        }
        let alike = |spare: &Spare| spare.socket.is_some() && spare.serves(&config);
        if let Some(index) = self.spare.iter().position(alike) {
            let spare = self.spare.swap_remove(index);
            let planned = self.plan(config, spare.is_ipv6, spare.socket);
            self.planned.push(planned);
            return Ok(format!("path {name} added"));
        }
        if self.opened >= SOCKETS_MAX {
            let what =
                format!("the station has opened {SOCKETS_MAX} sockets since its start, the limit");
            return Err(Fault::environment(
                what,
                place,
                "restart the station: the spool keeps all data",
            ));
        }
        let PathSocket { endpoint, is_ipv6 } = self.opener.open(&config)?;
        self.opened += 1;
        let endpoint = Some(endpoint);
        let spare = Some(Spare { config: config.clone(), is_ipv6, socket: None });
        self.adding.push_back(Adding { name: name.clone(), spare, endpoint });
        let planned = self.plan(config, is_ipv6, None);
        self.planned.push(planned);
        Ok(format!("path {name} added"))
    }

    /// The socket to be served next.
    pub fn next_socket(&mut self) -> Option<AnyEndpoint> {
        self.adding.iter_mut().find_map(|adding| adding.endpoint.take())
    }

    /// The socket that was given last is served.
    pub fn socket_added(&mut self, id: SocketId) {
        let Some(mut adding) = self.adding.pop_front() else { return };
        let waits = |planned: &&mut Planned| {
            planned.socket.is_none() && planned.config.title() == adding.name
        };
        match self.planned.iter_mut().find(waits) {
            Some(planned) => planned.socket = Some(id),
            None => self
                .spare
                .extend(adding.spare.take().map(|spare| Spare { socket: Some(id), ..spare })),
        }
    }

    /// A path is used no longer; what was under way there goes on the others.
    ///
    /// # Errors
    /// There is none of that name, or it is the only one.
    pub fn remove(
        &mut self,
        now: Instant,
        name: &str,
        (manager, session): (&mut SessionManager, Option<SessionId>),
    ) -> Result<String, Fault> {
        let index = self.find(name)?;
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
        self.leave(now, gone, (manager, session));
        Ok(format!("path {name} removed"))
    }

    fn leave(
        &mut self,
        now: Instant,
        gone: Planned,
        (manager, session): (&mut SessionManager, Option<SessionId>),
    ) {
        let twin = gone.tcp.as_ref().and_then(|twin| twin.path);
        for path in [gone.path, twin].into_iter().flatten() {
            if let Some(session) = session {
                manager.leave(now, session, path, "the operator removed the path");
            }
        }
        if gone.socket.is_some() {
            let Planned { config, is_ipv6, socket, .. } = gone;
            self.spare.push(Spare { config, is_ipv6, socket });
        }
    }

    /// What is known of a path beforehand; its session is to be told too.
    ///
    /// # Errors
    /// There is none of that name, or too much is foretold of it.
    pub fn foretell(
        &mut self,
        name: &str,
        hint: PathHint,
        now: Utc,
    ) -> Result<(Option<PathId>, String), Fault> {
        let index = self.find(name)?;
        let Some(planned) = self.planned.get_mut(index) else { return Ok((None, String::new())) };
        planned.foretold.retain(|foretold| foretold.is_open(now));
        let said = match hint {
            PathHint::Withdraw => {
                planned.foretold.clear();
                format!("path {name} has no forecasts")
            }
            _ if planned.foretold.len() >= FORETOLD_MAX => {
                let what = format!("it already has {FORETOLD_MAX} forecasts");
                let help = "withdraw them, then give the next ones";
                return Err(Fault::configuration(what, format!("path {name}"), help));
            }
            PathHint::Outage { from, until } if from >= until => {
                let what = "the outage would end before it begins";
                let help = "give --until a time after --from";
                return Err(Fault::configuration(what, format!("path {name}"), help));
            }
            PathHint::Outage { from, until } => {
                planned.foretold.push(Foretold::Outage(from.utc(), until.utc()));
                format!("path {name} is expected to be out from {from} until {until}")
            }
            PathHint::Rate { from, rate } => {
                let from = from.map_or(now, |from| from.utc());
                planned.foretold.push(Foretold::Rate(from, rate));
                format!("path {name} is expected to carry {rate}")
            }
        };
        Ok((planned.path, said))
    }

    /// Uses the paths of a configuration that was read again: those that are there stay, with what
    /// is foretold of them now. What was done, a sentence each, and the session's paths of which
    /// something else is foretold.
    pub fn adopt(
        &mut self,
        now: Instant,
        paths: Vec<PathConfig>,
        (manager, session): (&mut SessionManager, Option<SessionId>),
    ) -> (Vec<String>, Vec<PathId>) {
        let (mut said, mut hinted) = (Vec::new(), Vec::new());
        let before = core::mem::take(&mut self.planned);
        let (mut stay, gone): (Vec<Planned>, Vec<Planned>) = before
            .into_iter()
            .partition(|planned| paths.iter().any(|path| is_same(path, &planned.config)));
        for planned in &mut stay {
            let Some(path) = paths.iter().find(|path| is_same(path, &planned.config)) else {
                continue;
            };
            if path.outage != planned.config.outage {
                planned.foretold = outages(path);
                planned.config.outage.clone_from(&path.outage);
                hinted.extend(planned.path);
                said.push(format!("path {}: forecast outages changed", path.title()));
            }
        }
        self.planned = stay;
        for path in paths {
            if self.planned.iter().any(|planned| is_same(&path, &planned.config)) {
                continue;
            }
            said.push(self.add(path).unwrap_or_else(|fault| fault.to_string()));
        }
        if self.planned.is_empty() {
            said.push(
                "no path of the new configuration is usable: the previous paths stay".to_owned(),
            );
            self.planned = gone;
            return (said, hinted);
        }
        for gone in gone {
            said.push(format!("path {} removed", gone.config.title()));
            self.leave(now, gone, (manager, session));
        }
        self.next = 0;
        (said, hinted)
    }

    fn find(&self, name: &str) -> Result<usize, Fault> {
        let found = self.planned.iter().position(|planned| planned.config.title() == name);
        found.ok_or_else(|| {
            let known: Vec<&str> =
                self.planned.iter().map(|planned| planned.config.title()).collect();
            let help = format!("the paths are {}", known.join(", "));
            Fault::configuration("there is no such path", format!("path {name}"), help)
        })
    }

    /// The paths for status output; `used` are the session's.
    pub fn status(&self, used: &[(PathId, PathStatus)], clock: Clock) -> Vec<LinePath> {
        let sides = |planned: &Planned| {
            let twin = planned.tcp.as_ref().filter(|twin| twin.path.is_some());
            let settings = self.opener.settings(&planned.config, planned.is_ipv6);
            let now = used.iter().find(|(path, _)| Some(*path) == planned.path);
            let less = now.map_or(0, |(_, status)| planned.less(status.payload));
            let shown = planned.shown(used, clock).controlled(&settings, less);
            [Some(shown), twin.map(|twin| planned.shown_over_tcp(twin, used, clock))]
        };
        self.planned.iter().flat_map(sides).flatten().collect()
    }
}

impl Planned {
    fn options(&self) -> PathOptions {
        PathOptions { metered: self.config.metered, standby: self.config.standby }
    }

    /// Until when it is foretold to be out; none where it is not out at `now`.
    fn out_until(&self, now: Utc) -> Option<Utc> {
        let ends = self.foretold.iter().filter_map(|foretold| match foretold {
            Foretold::Outage(from, until) if *from <= now && now < *until => Some(*until),
            Foretold::Outage(..) | Foretold::Rate(..) => None,
        });
        ends.max()
    }

    /// Whether one of its sides is this path of the session.
    fn has(&self, path: PathId) -> bool {
        self.path == Some(path) || self.tcp.as_ref().is_some_and(|twin| twin.path == Some(path))
    }
}

impl Spare {
    /// Whether the socket does for another path.
    fn serves(&self, other: &PathConfig) -> bool {
        let own = &self.config;
        own.local == other.local
            && own.transport == other.transport
            && own.interface == other.interface
            && own.rate == other.rate
            && own.remote == other.remote
    }
}

impl Foretold {
    fn hint(self, clock: Clock) -> Hint {
        let at = |utc: Utc| Instant::ZERO + utc.since(clock.utc_at_start());
        match self {
            Self::Outage(from, until) => Hint::Outage { from: at(from), until: at(until) },
            Self::Rate(from, rate) => Hint::Rate { from: at(from), rate },
        }
    }

    /// Whether it still says something.
    fn is_open(&self, now: Utc) -> bool {
        match self {
            Self::Outage(_, until) => now < *until,
            Self::Rate(from, _) => now < *from,
        }
    }
}

fn outages(config: &PathConfig) -> Vec<Foretold> {
    config
        .outages()
        .iter()
        .map(|outage| Foretold::Outage(outage.from.utc(), outage.until.utc()))
        .collect()
}

/// Whether two paths are one, but for what is foretold of them.
fn is_same(one: &PathConfig, other: &PathConfig) -> bool {
    let bare = |path: &PathConfig| PathConfig { outage: None, ..path.clone() };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigTime;
    use skyhaul_net::{Socket, UdpEndpoint};
    use skyhaul_quic::{EndpointConfig, Identity, PathConfig as QuicConfig, QuicEndpoint};
    use skyhaul_transport::SessionConfig;

    fn config(text: &str) -> PathConfig {
        toml::from_str(text).expect("a path")
    }

    /// One path, `a`, and a session manager that serves its socket.
    fn paths() -> (Paths, SessionManager, Clock) {
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
        let opener = PathSocketOpener { identity, line, centre: "127.0.0.1:9".to_owned(), clock };
        (Paths::new(opener, &[(config("name = \"a\""), false)]), manager, clock)
    }

    fn serve(paths: &mut Paths, manager: &mut SessionManager) {
        while let Some(endpoint) = paths.next_socket() {
            let id = manager.add_carrier(endpoint);
            paths.socket_added(id);
        }
    }

    fn names(paths: &Paths) -> Vec<&str> {
        paths.planned.iter().map(|planned| planned.config.title()).collect()
    }

    #[test]
    fn paths_come_and_go_and_sockets_are_used_again() {
        let (mut paths, mut manager, _) = paths();
        let now = Instant::ZERO;
        assert!(paths.remove(now, "a", (&mut manager, None)).is_err(), "the only one");
        assert!(paths.add(config("name = \"a\"")).is_err(), "there is one of that name");
        for round in 0..100 {
            paths.add(config("name = \"b\"\ninterface = \"lo\"")).expect("added");
            serve(&mut paths, &mut manager);
            assert!(paths.planned[1].socket.is_some(), "round {round}");
            paths.remove(now, "b", (&mut manager, None)).expect("removed");
        }
        assert_eq!((names(&paths), paths.opened), (vec!["a"], 2));
        for number in 1..PATHS_MAX {
            paths.add(config(&format!("name = \"p{number}\""))).expect("added");
        }
        assert!(paths.add(config("name = \"more\"")).is_err(), "{PATHS_MAX} are enough");
    }

    #[test]
    fn one_that_is_removed_before_it_is_served_leaves_its_socket() {
        let (mut paths, mut manager, _) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        paths.remove(Instant::ZERO, "b", (&mut manager, None)).expect("removed");
        serve(&mut paths, &mut manager);
        assert_eq!((paths.spare.len(), names(&paths)), (1, vec!["a"]));
    }

    #[test]
    fn a_session_begins_on_a_path_that_is_not_foretold_to_be_out() {
        let (mut paths, mut manager, clock) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        serve(&mut paths, &mut manager);
        let time = |text: &str| text.parse::<ConfigTime>().expect("a time");
        let (from, until) = (time("2020-01-01T00:00:00Z"), time("2150-01-01T00:00:00Z"));
        let now = clock.utc();
        paths.foretell("a", PathHint::Outage { from, until }, now).expect("foretold");
        assert!(paths.call(now).is_some());
        assert_eq!(paths.calling.as_deref(), Some("b"));
        paths.foretell("b", PathHint::Outage { from, until }, now).expect("foretold");
        assert!(paths.call(now).is_none(), "all are out");
        let shown = paths.status(&[], clock);
        assert_eq!((shown[0].state.as_str(), shown[0].reason.is_some()), ("absent", true));
        paths.foretell("a", PathHint::Withdraw, now).expect("withdrawn");
        assert!(paths.call(now).is_some());
        assert!(paths.foretell("b", PathHint::Outage { from: until, until: from }, now).is_err());
    }

    #[test]
    fn a_configuration_that_is_read_again_changes_what_differs_alone() {
        let (mut paths, mut manager, _) = paths();
        paths.add(config("name = \"b\"")).expect("added");
        serve(&mut paths, &mut manager);
        let now = Instant::ZERO;
        let outage = "name = \"b\"\n[[outage]]\nfrom = \"2030-01-01T00:00:00Z\"\nuntil = \
                     \"2030-01-01T01:00:00Z\"";
        let (said, hinted) =
            paths.adopt(now, vec![config(outage), config("name = \"c\"")], (&mut manager, None));
        assert_eq!((said.len(), hinted.len(), names(&paths)), (3, 0, vec!["b", "c"]), "{said:?}");
        assert_eq!(paths.planned[0].foretold.len(), 1);
        let (said, _) = paths.adopt(
            now,
            vec![config("name = \"d\"\ninterface = \"eth99\"")],
            (&mut manager, None),
        );
        assert!(said[0].contains("eth99") && said[1].contains("stay"), "{said:?}");
        assert_eq!(names(&paths), ["b", "c"]);
    }
}
