//! The station's end of the line: keeps a session to the centre, feeds it from the spool, frees what is in custody.

use super::paths::{PathPlan, Paths};
use super::shared::Shared;
use crate::custody::{FeedError, Feeder};
use crate::status::{LineState, LineStatus};
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_net::Engine;
use skyhaul_net::{Clock, Service};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_transport::{Event, Opening, PathId, PathOptions, Resume};
use skyhaul_units::{Duration, Instant};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Where the centre is, and who it is.
#[derive(Debug, Clone)]
pub struct Centre {
    /// Its name.
    pub name: String,
    /// Host and port.
    pub address: String,
    /// Its key.
    pub fingerprint: Fingerprint,
}

/// Keeps the session to the centre.
#[derive(Debug)]
pub struct Uplink {
    name: String,
    centre: Centre,
    shared: Arc<Shared>,
    clock: Clock,
    paths: Paths,
    connection: Option<SessionId>,
    called_at: Instant,
    feeder: Feeder,
    retry_at: Instant,
    update_at: Instant,
    free_at: Instant,
    status: LineStatus,
}

/// Between two attempts to reach the centre.
const RETRY: Duration = Duration::from_secs(1);
/// A call without an answer for this long is made anew: the tries of one call come ever more seldom, and would miss the
/// line's return by as long as it was out. At 660 ms and 10 % loss a call takes 2 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks at the figures.
const UPDATE: Duration = Duration::from_millis(200);
/// Between two looks for segments to free.
const FREE: Duration = Duration::from_secs(1);

impl Uplink {
    /// An uplink of the station `name` to `centre`, not connected yet.
    pub fn new(
        name: String,
        centre: Centre,
        (shared, clock): (Arc<Shared>, Clock),
        paths: Vec<PathPlan>,
    ) -> Self {
        let status = LineStatus { peer: centre.address.clone(), ..LineStatus::default() };
        Self {
            name,
            centre,
            shared,
            clock,
            paths: Paths::new(paths),
            connection: None,
            called_at: Instant::ZERO,
            feeder: Feeder::default(),
            retry_at: Instant::ZERO,
            update_at: Instant::ZERO,
            free_at: Instant::ZERO,
            status,
        }
    }

    fn connect(&mut self, now: Instant, engine: &mut Engine) {
        self.retry_at = now + RETRY;
        self.called_at = now;
        let Some(path) = self.paths.first() else { return };
        let (socket, remote) = (path.socket, path.remote.clone());
        let outcome = resolve(&remote).and_then(|address| {
            let key = self.centre.fingerprint;
            engine.connect_from(now, socket, address, key).map_err(|error| error.to_string())
        });
        match outcome {
            Ok(id) => self.connection = Some(id),
            Err(reason) => self.down(LineState::Down, reason),
        }
    }

    fn down(&mut self, state: LineState, reason: String) {
        if self.status.reason.as_ref() != Some(&reason) {
            tracing::warn!(centre = %self.centre.address, "the line is down: {reason}");
        }
        self.paths.ended(&reason);
        self.status.paths = self.paths.status(&[]);
        self.status.state = state;
        self.status.reason = Some(reason);
        self.connection = None;
        self.feeder.disconnected();
        self.shared.line(self.status.clone());
    }

    fn session_event(&mut self, now: Instant, engine: &mut Engine, event: Event) {
        match event {
            Event::Greeted { name, resume } => self.greeted(now, engine, &name, &resume),
            Event::Custody { flow, next } => {
                self.feeder.custody(&mut self.shared.spool(), flow, next);
            }
            Event::Block(received) => {
                let refusal = "a station takes no data";
                tracing::warn!(flow = received.id.flow.0, "{refusal}");
                if let Some(session) = self.connection.and_then(|id| engine.session(id)) {
                    session.refuse(refusal);
                }
            }
            Event::PathStalled(path) => {
                tracing::warn!(path = path.0, "a path does not answer; its data goes on the others");
            }
            Event::PathBack(path) => tracing::info!(path = path.0, "a path answers again"),
            Event::PathDown(path, reason) => self.paths.down(now, path, &reason.to_string()),
            Event::Settled { .. } | Event::PathUp(_) => {}
            Event::Closed(reason) => self.down(LineState::Refused, reason.to_string()),
        }
    }

    fn greeted(&mut self, now: Instant, engine: &mut Engine, name: &str, resume: &Resume) {
        if name != self.centre.name {
            let reason = format!(
                "the centre calls itself `{name}`, not `{}`: correct one configuration",
                self.centre.name
            );
            if let Some(session) = self.connection.and_then(|id| engine.session(id)) {
                session.refuse(&reason);
            }
            return self.down(LineState::Refused, reason);
        }
        self.feeder.greeted(&mut self.shared.spool(), resume);
        self.status.state = LineState::Open;
        self.status.reason = None;
        self.status.connects += 1;
        self.update_at = now;
        tracing::info!(centre = %self.centre.address, "the line is open");
    }

    /// Moves blocks from the spool to the session while it has room.
    fn feed(&mut self, now: Instant, engine: &mut Engine) {
        let Some(session) = self.connection.and_then(|id| engine.session(id)) else { return };
        let (shared, taken) = (&self.shared, self.clock.utc());
        match self.feeder.feed(|reader| shared.spool().read(reader), session, (now, taken)) {
            Ok(()) => {}
            Err(FeedError::Spool(error)) => {
                self.shared.life.alarm("the spool cannot be read", &error.to_string());
            }
            Err(error @ (FeedError::Session(_) | FeedError::Order { .. })) => {
                self.shared.life.alarm("the spool cannot be sent", &error.to_string());
                session.refuse("the station's spool is out of order");
            }
        }
    }

    fn update(&mut self, now: Instant, engine: &mut Engine) {
        self.update_at = now + UPDATE;
        if let Some(id) = self.connection
            && let Some(estimate) = engine.estimate(id)
        {
            self.status.rtt_s = estimate.rtt.as_secs_f64();
            self.status.min_rtt_s = estimate.min_rtt.as_secs_f64();
            self.status.loss = estimate.loss.as_f64();
            self.status.rate_bps = estimate.rate.as_bps();
        }
        if let Some(session) = self.connection.and_then(|id| engine.session(id)) {
            let stats = session.stats();
            self.status.bytes_reported = stats.bytes_reported;
            self.status.symbols_sent = stats.symbols_sent;
            self.status.symbols_repeated = stats.symbols_repeated;
            self.status.symbols_lost = stats.symbols_lost;
            self.status.held_back = session.is_held_back();
            let used: Vec<_> = session.paths().collect();
            self.status.paths = self.paths.status(&used);
        }
        self.shared.line(self.status.clone());
    }
}

impl Service for Uplink {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, .. } if Some(id) == self.connection => {
                let options = self.paths.first().map_or(PathOptions::default(), |path| path.options);
                self.paths.begun();
                if let Some(session) = engine.session(id) {
                    session.add_path(PathId(0), options);
                    let flow_base = self.shared.spool().lowest_flow();
                    let name = self.name.clone();
                    session.open(Opening { name, flow_base, ..Opening::default() });
                }
            }
            EngineEvent::Session { id, event } if Some(id) == self.connection => {
                self.session_event(now, engine, event);
            }
            EngineEvent::Disconnected { id, reason } if Some(id) == self.connection => {
                self.down(LineState::Down, reason.to_string());
            }
            EngineEvent::Refused { id, reason, .. } if id.is_some() && id == self.connection => {
                let unheard = matches!(reason, Refusal::NoAnswer | Refusal::ClosedHere);
                self.down(if unheard { LineState::Down } else { LineState::Refused }, reason.to_string());
            }
            EngineEvent::PathRefused { id, path, reason, .. } if Some(id) == self.connection => {
                self.paths.down(now, path, &reason);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        if let Some(id) =
            self.connection.filter(|_| !self.feeder.is_feeding() && now >= self.called_at + PATIENCE)
        {
            engine.close(now, id, "no answer in time");
            self.down(LineState::Down, Refusal::NoAnswer.to_string());
        }
        if self.connection.is_none() && now >= self.retry_at {
            self.connect(now, engine);
        }
        if let Some(id) = self.connection.filter(|_| self.feeder.is_feeding()) {
            self.paths.call_missing(now, engine, id);
        }
        self.feed(now, engine);
        if now >= self.update_at {
            self.update(now, engine);
        }
        if now >= self.free_at {
            self.free_at = now + FREE;
            let freed = self.shared.spool().free(self.clock.utc_of(now));
            if let Err(error) = freed {
                self.shared.life.alarm("the spool cannot be freed", &error.to_string());
            }
        }
        let retry = self.connection.is_none().then_some(self.retry_at);
        [retry, Some(self.update_at), Some(self.free_at)].into_iter().flatten().min()
    }
}

/// The first address of `host:port`.
pub fn resolve(address: &str) -> Result<SocketAddr, String> {
    let mut found =
        address.to_socket_addrs().map_err(|error| format!("`{address}` is not found ({error})"))?;
    found.next().ok_or_else(|| format!("`{address}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_engine::SocketId;
    use skyhaul_net::{Socket, UdpCarrier, Waker};
    use skyhaul_quic::{Endpoint, EndpointConfig, Identity, PathConfig};
    use skyhaul_store::{Spool, SpoolConfig, sim::SimDisk};
    use skyhaul_transport::SessionConfig;
    use skyhaul_units::{Bytes, Rate};

    fn uplink(clock: Clock) -> (Uplink, Engine) {
        let identity = Identity::from_seed(&[1; 32]).expect("a key");
        let centre = Centre {
            name: "centre".to_owned(),
            address: "127.0.0.1:9".to_owned(),
            fingerprint: Identity::from_seed(&[2; 32]).expect("a key").fingerprint(),
        };
        let config =
            SpoolConfig { max_size: Bytes::mib(8), segment_size: Bytes::mib(1), ..SpoolConfig::default() };
        let disk = Arc::new(SimDisk::new(Bytes::mib(256)));
        let spool = Spool::open(disk, config, clock.utc()).expect("a spool");
        let waker = Waker::new().expect("a waker");
        let shared = Arc::new(Shared::new("station".to_owned(), Vec::new(), spool, clock, waker));
        let endpoint =
            EndpointConfig::new(identity, PathConfig::over(Rate::from_mbps(10)), clock.std_start());
        let socket = Socket::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
        let carrier = UdpCarrier::new(Endpoint::new(endpoint).expect("an endpoint"), socket);
        let engine = Engine::new(carrier.into(), SessionConfig::default());
        let plan = PathPlan {
            socket: SocketId(0),
            local: "0.0.0.0".to_owned(),
            remote: "127.0.0.1:9".to_owned(),
            options: PathOptions::default(),
        };
        (Uplink::new("station".to_owned(), centre, (shared, clock), vec![plan]), engine)
    }

    /// Seen with a centre that was down for two minutes: the call made meanwhile found it only as long after its return.
    #[test]
    fn a_call_without_answer_is_made_anew_and_its_end_does_not_touch_the_next() {
        let (mut uplink, mut engine) = uplink(Clock::start());
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        uplink.work(at(0), &mut engine);
        let first = uplink.connection.expect("called");
        uplink.work(at(14), &mut engine);
        assert_eq!(uplink.connection, Some(first), "patient so far");
        uplink.work(at(15), &mut engine);
        let second = uplink.connection.expect("called anew");
        assert_ne!(second, first);
        let address = "127.0.0.1:9".parse().expect("an address");
        let late = EngineEvent::Refused {
            id: Some(first),
            remote: address,
            fingerprint: None,
            reason: Refusal::ClosedHere,
        };
        uplink.event(at(15), &mut engine, late);
        assert_eq!(uplink.connection, Some(second));
    }
}
