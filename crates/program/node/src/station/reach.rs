//! Tests once whether the centre can be reached with this configuration, for the operator who sets
//! up a station.
//!
//! The test covers everything: address, keys, version, names. Nothing is captured or sent. The
//! centre keeps the newest connection of a station, so a running station of the same name is
//! interrupted for a second.

use super::line_plan::contact_of;
use super::opening::LineOpening;
use super::sockets::resolve;
use super::uplink::CentreContact;
use crate::fault::Fault;
use crate::guests::ProgramBlocks;
use crate::services;
use skyhaul_config::{Destination, StationConfig};
use skyhaul_net::SessionManager;
use skyhaul_net::{Clock, Service};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{CloseReason, Event, Opening};
use skyhaul_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest wait for an answer: six round trips of a long line with retransmissions.
const ANSWER: Duration = Duration::from_secs(10);
/// A refusal may follow the centre's greeting a round trip later; without one after this time, the
/// centre has accepted.
const SETTLE: Duration = Duration::from_millis(200);

/// Connects to a destination once, and returns the round-trip time.
///
/// # Errors
/// The key cannot be read, the address is not found, or the centre refuses or does not answer
/// within 10 s.
pub fn reach(config: &StationConfig, destination: &Destination) -> Result<Duration, Fault> {
    let clock = Clock::start();
    let mut centre = contact_of(destination);
    let known = crate::keys::known_keys(&config.node.state)?;
    centre.keys.refresh(|listed| known.accepted(listed));
    let key = centre.keys.current().ok_or_else(|| {
        let help = "write its present key there, or take the revocation back with `skyhaul key \
                    allow`";
        Fault::configuration("all keys of the centre are revoked here", "`fingerprints`", help)
    })?;
    let address = resolve(&centre.address).map_err(|what| {
        Fault::configuration(
            what,
            "[[peer]]",
            "correct `addresses`, or check the host's name service",
        )
    })?;
    let identity = services::identity(&config.node)?.into();
    let opening = LineOpening::of(config, identity, clock, ProgramBlocks::Unserved);
    let (mut driver, _) = opening.open(config, std::slice::from_ref(destination))?;
    let stop = AtomicBool::new(false);
    let mut attempt = ReachAttempt {
        name: config.node.name.to_string(),
        centre,
        address,
        key,
        stop: &stop,
        connection: None,
        greeted: None,
        outcome: None,
    };
    driver.run(&mut attempt, &stop).map_err(|error| {
        Fault::environment(format!("the socket failed ({error})"), address, "try again")
    })?;
    attempt.outcome.expect("the driver runs until there is an outcome")
}

/// One connection attempt.
struct ReachAttempt<'a> {
    name: String,
    centre: CentreContact,
    address: SocketAddr,
    key: Fingerprint,
    stop: &'a AtomicBool,
    connection: Option<SessionId>,
    /// When the centre's greeting came, and the round trip until then.
    greeted: Option<(Instant, Duration)>,
    outcome: Option<Result<Duration, Fault>>,
}

impl ReachAttempt<'_> {
    fn end(&mut self, outcome: Result<Duration, Fault>) {
        self.outcome.get_or_insert(outcome);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn refused(&mut self, sentence: &str) {
        let (what, help) = sentence.rsplit_once(": ").unwrap_or((sentence, HELP));
        self.end(Err(Fault::peer(what, self.address, help)));
    }

    fn session(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        event: &Event,
    ) {
        match event {
            Event::Greeted { name, .. } if *name != self.centre.name => self.refused(&format!(
                "the centre is named `{name}`, not `{}`: correct `name` in one of the two \
                configurations",
                self.centre.name
            )),
            Event::Greeted { .. } => {
                let rtt = manager.estimate(id).unwrap_or_default().min_rtt;
                self.greeted = Some((now, rtt));
            }
            Event::Closed(CloseReason::Path(reason)) => self.refused(&reason.to_string()),
            Event::Closed(reason) => self.refused(&reason.to_string()),
            Event::Block(_) | Event::Custody { .. } | Event::Settled { .. } | Event::PathUp(_) => {}
            Event::Application { .. } => {}
            Event::PathStalled(_)
            | Event::PathBack(_)
            | Event::PathDown(..)
            | Event::PathResized(_) => {}
        }
    }
}

impl Service for ReachAttempt<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                if let Some(session) = manager.session(id) {
                    session.open(Opening { name: self.name.clone(), ..Opening::default() });
                }
            }
            SessionManagerEvent::Session { id, event } => self.session(now, manager, id, &event),
            SessionManagerEvent::Refused { reason: Refusal::Failed(text), .. } => {
                let what = format!("the handshake failed ({text})");
                self.end(Err(Fault::peer(what, self.address, HELP)));
            }
            SessionManagerEvent::Refused { reason, .. } => self.refused(&reason.to_string()),
            SessionManagerEvent::Disconnected { reason, .. } => self.refused(&reason.to_string()),
            SessionManagerEvent::PathRefused { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if self.connection.is_none() && self.outcome.is_none() {
            match manager.connect(now, self.address, self.key) {
                Ok(id) => self.connection = Some(id),
                Err(error) => self.refused(&error.to_string()),
            }
        }
        let due = match self.greeted {
            Some((at, rtt)) => at + rtt + SETTLE,
            None => Instant::ZERO + ANSWER,
        };
        if now >= due {
            match self.greeted {
                Some((_, rtt)) => self.end(Ok(rtt)),
                None => self.refused(&Refusal::NoAnswer.to_string()),
            }
        }
        Some(due)
    }
}

const HELP: &str = "compare the keys, names and releases of both ends";
