//! One connection to a far node, to learn its key and the round trip.

use super::ip::any_port;
use super::perf;
use super::perf::keys::Accepted;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::{
    AnyEndpoint, Clock, Driver, Service, SessionManager, TcpConfig, TcpEndpoint, UdpEndpoint,
};
use skyhaul_quic::{EndpointConfig, Fingerprint, Identity, PathConfig, QuicEndpoint, Refusal};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{Event, Opening, SessionConfig};
use skyhaul_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnockOver {
    /// QUIC over UDP.
    Udp,
    /// TLS over TCP.
    Tcp,
}

/// Whom to connect to, and as whom.
#[derive(Debug, Clone, Copy)]
pub struct KnockTarget<'a> {
    pub own: &'a Identity,
    pub path: PathConfig,
    pub remote: SocketAddr,
    pub over: KnockOver,
    pub expected: Fingerprint,
    /// How long an answer is awaited.
    pub patience: Duration,
}

/// How the far node answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnockAnswer {
    /// It has the expected key, and accepts this node's.
    Open {
        /// The shortest round trip.
        round_trip: Duration,
    },
    /// There is no session with it.
    Refused {
        /// The key that it showed, if it did.
        shown: Option<Fingerprint>,
        /// Why.
        reason: Refusal,
    },
}

/// Connects once, and closes.
///
/// # Errors
/// This host has no socket for it.
pub fn knock(target: KnockTarget<'_>) -> Result<KnockAnswer, Failure> {
    let clock = Clock::start();
    let endpoint: AnyEndpoint = match target.over {
        KnockOver::Udp => {
            let own = target.own.clone();
            let config = EndpointConfig::new(own, target.path, clock.std_start());
            let quic = QuicEndpoint::new(config)
                .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
            UdpEndpoint::new(quic, perf::bind(any_port(target.remote))?).into()
        }
        KnockOver::Tcp => {
            let own = TcpConfig::new(target.own.clone());
            let config = TcpConfig { udp_payload: target.path.udp_payload, ..own };
            TcpEndpoint::open(config).map_err(|source| failed(target.remote, source))?.into()
        }
    };
    let manager = SessionManager::new(endpoint, SessionConfig::default());
    let mut driver = Driver::new(manager, clock).map_err(|source| failed(target.remote, source))?;
    let stop = AtomicBool::new(false);
    let mut knocking = Knocking {
        target,
        stop: &stop,
        session: None,
        gives_up: None,
        greeted: None,
        answer: None,
    };
    driver.run(&mut knocking, &stop).map_err(|source| failed(target.remote, source))?;
    Ok(knocking.answer.unwrap_or(KnockAnswer::Refused { shown: None, reason: Refusal::NoAnswer }))
}

/// The one of the accepted keys that the node at `remote` shows; the first, if there is one only or
/// the node shows none of them.
///
/// # Errors
/// This host has no socket for it.
pub fn shown_key(
    accepted: &Accepted,
    path: PathConfig,
    remote: SocketAddr,
) -> Result<Fingerprint, Failure> {
    let first = *accepted.peers.first().expect("there is one, as it was read");
    if accepted.peers.len() == 1 {
        return Ok(first);
    }
    let over = KnockOver::Udp;
    let own = &accepted.own;
    let answer =
        knock(KnockTarget { own, path, remote, over, expected: first, patience: PATIENCE })?;
    Ok(match answer {
        KnockAnswer::Refused { shown: Some(shown), .. } if accepted.peers.contains(&shown) => shown,
        _ => first,
    })
}

fn failed(remote: SocketAddr, source: std::io::Error) -> Failure {
    let help = "check that a route to it exists";
    Failure::io("a socket failed", &remote.to_string(), help, source)
}

struct Knocking<'a> {
    target: KnockTarget<'a>,
    stop: &'a AtomicBool,
    session: Option<SessionId>,
    /// There is no answer by then.
    gives_up: Option<Instant>,
    /// The far end has the right key; by then it greets or refuses.
    greeted: Option<Instant>,
    answer: Option<KnockAnswer>,
}

impl Knocking<'_> {
    fn end(&mut self, answer: KnockAnswer) {
        self.answer.get_or_insert(answer);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn open(&mut self, manager: &mut SessionManager) {
        let estimate = self.session.and_then(|id| manager.estimate(id)).unwrap_or_default();
        self.end(KnockAnswer::Open { round_trip: estimate.min_rtt });
    }
}

impl Service for Knocking<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                self.greeted = Some(now + GREETING);
                if let Some(session) = manager.session(id) {
                    session.open(Opening { name: NAME.to_owned(), ..Opening::default() });
                }
            }
            SessionManagerEvent::Refused { fingerprint, reason, .. } => {
                self.end(KnockAnswer::Refused { shown: fingerprint, reason });
            }
            SessionManagerEvent::Disconnected { reason, .. } => {
                let reason = Refusal::Failed(reason.to_string());
                self.end(KnockAnswer::Refused { shown: Some(self.target.expected), reason });
            }
            SessionManagerEvent::Session { event: Event::Greeted { .. }, .. } => self.open(manager),
            SessionManagerEvent::Session { .. } | SessionManagerEvent::PathRefused { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        let gives_up = *self.gives_up.get_or_insert(now + self.target.patience);
        if self.session.is_none() && self.answer.is_none() {
            match manager.connect(now, self.target.remote, self.target.expected) {
                Ok(id) => self.session = Some(id),
                Err(error) => {
                    let reason = Refusal::Unreachable(error.to_string());
                    self.end(KnockAnswer::Refused { shown: None, reason });
                }
            }
        }
        match self.greeted {
            Some(greeted) if greeted <= now => self.open(manager),
            None if gives_up <= now => {
                self.end(KnockAnswer::Refused { shown: None, reason: Refusal::NoAnswer });
            }
            _ => {}
        }
        Some(self.greeted.unwrap_or(gives_up))
    }
}

/// A node that does not greet within this time has not refused either: three round trips of 660 ms.
const GREETING: Duration = Duration::from_secs(2);

/// A handshake takes two round trips; at 660 ms and 10 % loss, 3 s.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// This end's name, in the far end's log.
const NAME: &str = "test";
