//! The station's end of the line: keeps a session to the centre, feeds it from the spool, frees what is in custody.

use super::shared::Shared;
use crate::custody::{FeedError, Feeder};
use crate::status::{LineState, LineStatus};
use skyhaul_net::{Clock, Service};
use skyhaul_quic::{ConnectionId, Engine, EngineEvent, Fingerprint, Refusal};
use skyhaul_transport::{Event, Resume};
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
    connection: Option<ConnectionId>,
    feeder: Feeder,
    retry_at: Instant,
    update_at: Instant,
    free_at: Instant,
    status: LineStatus,
}

/// Between two attempts to reach the centre.
const RETRY: Duration = Duration::from_secs(1);
/// Between two looks at the figures.
const UPDATE: Duration = Duration::from_millis(200);
/// Between two looks for segments to free.
const FREE: Duration = Duration::from_secs(1);

impl Uplink {
    /// An uplink of the station `name` to `centre`, not connected yet.
    pub fn new(name: String, centre: Centre, shared: Arc<Shared>, clock: Clock) -> Self {
        let status = LineStatus { peer: centre.address.clone(), ..LineStatus::default() };
        Self {
            name,
            centre,
            shared,
            clock,
            connection: None,
            feeder: Feeder::default(),
            retry_at: Instant::ZERO,
            update_at: Instant::ZERO,
            free_at: Instant::ZERO,
            status,
        }
    }

    fn connect(&mut self, now: Instant, engine: &mut Engine) {
        self.retry_at = now + RETRY;
        let outcome = resolve(&self.centre.address).and_then(|address| {
            engine.connect(now, address, self.centre.fingerprint).map_err(|error| error.to_string())
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
                tracing::warn!(flow = received.block.flow.0, "{refusal}");
                if let Some(session) = self.connection.and_then(|id| engine.session(id)) {
                    session.refuse(refusal);
                }
            }
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
    fn feed(&mut self, engine: &mut Engine) {
        let Some(session) = self.connection.and_then(|id| engine.session(id)) else { return };
        let (shared, taken) = (&self.shared, self.clock.utc());
        match self.feeder.feed(|reader| shared.spool().read(reader), session, taken) {
            Ok(()) => {}
            Err(FeedError::Spool(error)) => {
                self.shared.life.alarm("the spool cannot be read", &error.to_string());
            }
            Err(FeedError::Session(error)) => {
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
        }
        self.shared.line(self.status.clone());
    }
}

impl Service for Uplink {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, .. } if Some(id) == self.connection => {
                if let Some(session) = engine.session(id) {
                    session.open(&self.name, Resume::default());
                }
            }
            EngineEvent::Session { id, event } if Some(id) == self.connection => {
                self.session_event(now, engine, event);
            }
            EngineEvent::Disconnected { id, reason } if Some(id) == self.connection => {
                self.down(LineState::Down, reason.to_string());
            }
            EngineEvent::Refused { reason: Refusal::NoAnswer, .. } if !self.feeder.is_feeding() => {
                self.down(LineState::Down, Refusal::NoAnswer.to_string());
            }
            EngineEvent::Refused { reason, .. } if !self.feeder.is_feeding() => {
                self.down(LineState::Refused, reason.to_string());
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        if self.connection.is_none() && now >= self.retry_at {
            self.connect(now, engine);
        }
        self.feed(engine);
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
