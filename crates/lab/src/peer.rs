//! The production engine, its sessions and paths included, as an endpoint of the lab.
//!
//! A [`Peer`] drives its [`Engine`] in the order in which the socket driver does, with the virtual clock in place of
//! the real one: what the lab shows holds for the program.

use crate::{Datagram, Ecn, Endpoint};
use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;
use skyhaul_quic::{
    ConfigError, EndpointConfig, Engine, EngineEvent, Fingerprint, Identity, PathConfig, Received,
};
use skyhaul_transport::SessionConfig;
use skyhaul_units::Instant;
use std::collections::{BTreeSet, VecDeque};

/// What uses the engine's sessions: it feeds them, and takes what they give.
pub trait Application {
    /// Something happened.
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent);

    /// Called after events and at every wake-up. Returns when it wants to be called again by itself.
    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant>;
}

/// How to make a [`Peer`].
#[derive(Debug, Clone)]
pub struct PeerConfig {
    /// Where it is reached.
    pub address: SocketAddr,
    /// Its key.
    pub identity: Identity,
    /// Keys of the nodes that may call; where there are none, calls are not taken.
    pub callers: BTreeSet<Fingerprint>,
    /// For every path.
    pub path: PathConfig,
    /// For every session.
    pub session: SessionConfig,
    /// Decides the state machine's random choices. The same seeds give the same run.
    pub seed: u64,
}

/// An engine and the application that uses it.
pub struct Peer<A> {
    address: SocketAddr,
    engine: Engine,
    application: A,
    /// When the application wants to be called.
    due: Option<Instant>,
    /// It was changed from outside since it was served.
    touched: bool,
    /// Datagrams of the batch taken from the engine last.
    batch: VecDeque<Datagram>,
    scratch: Vec<u8>,
}

impl<A: Application> Peer<A> {
    /// A peer that has not been called yet: its application works first when the network runs.
    ///
    /// # Errors
    /// A datagram size that QUIC does not allow.
    pub fn new(config: PeerConfig, application: A) -> Result<Self, ConfigError> {
        let mut endpoint = EndpointConfig::new(config.identity, config.path, epoch());
        endpoint.listen = !config.callers.is_empty();
        endpoint.trusted = config.callers;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&config.seed.to_be_bytes());
        endpoint.rng_seed = Some(seed);
        Ok(Self {
            address: config.address,
            engine: Engine::new(skyhaul_quic::Endpoint::new(endpoint)?, config.session),
            application,
            due: None,
            touched: true,
            batch: VecDeque::new(),
            scratch: Vec::new(),
        })
    }

    /// The application.
    pub const fn application(&self) -> &A {
        &self.application
    }

    /// The engine, for its counters.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Both, to act on them at the present instant.
    pub const fn both_mut(&mut self) -> (&mut Engine, &mut A) {
        self.touched = true;
        (&mut self.engine, &mut self.application)
    }

    fn serve(&mut self, now: Instant) {
        self.touched = false;
        self.engine.flush(now);
        while let Some(event) = self.engine.poll_event() {
            self.application.event(now, &mut self.engine, event);
        }
        self.due = self.application.work(now, &mut self.engine);
        self.engine.flush(now);
    }
}

impl<A: Application> Endpoint for Peer<A> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        let ecn = match datagram.ecn {
            Ecn::NotCapable => None,
            Ecn::Ect0 => Some(skyhaul_quic::Ecn::Ect0),
            Ecn::Ect1 => Some(skyhaul_quic::Ecn::Ect1),
            Ecn::Ce => Some(skyhaul_quic::Ecn::Ce),
        };
        let payload = BytesMut::from(datagram.payload);
        self.engine.handle_datagram(now, Received { remote: datagram.from, local_ip: None, ecn, payload });
        self.serve(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if self.touched {
            self.serve(now);
        }
        if self.batch.is_empty() {
            let transmit = self.engine.poll_transmit(now, &mut self.scratch)?;
            let contents = Bytes::copy_from_slice(&self.scratch[..transmit.size]);
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            let ecn = match transmit.ecn {
                None => Ecn::NotCapable,
                Some(skyhaul_quic::Ecn::Ect0) => Ecn::Ect0,
                Some(skyhaul_quic::Ecn::Ect1) => Ecn::Ect1,
                Some(skyhaul_quic::Ecn::Ce) => Ecn::Ce,
            };
            self.batch.extend((0..contents.len()).step_by(size).map(|start| Datagram {
                from: self.address,
                to: transmit.to,
                ecn,
                payload: contents.slice(start..contents.len().min(start + size)),
            }));
        }
        self.batch.pop_front()
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        [self.engine.next_timeout(), self.due].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.serve(now);
    }
}

/// One fixed reading for all peers: only differences matter.
#[allow(clippy::disallowed_methods, reason = "the standard library has no other way to make a clock reading")]
fn epoch() -> std::time::Instant {
    static EPOCH: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}
