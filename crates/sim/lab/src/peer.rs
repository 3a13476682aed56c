//! The production session manager, its sessions and paths included, as an endpoint of the lab.
//!
//! A [`Peer`] drives its [`SessionManager`] in the order in which the socket driver does, with the
//! virtual clock in place of the real one: what the lab shows holds for the program.

use crate::{EcnMark, NetworkDatagram, NetworkNode};
use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;
use skyhaul_quic::{
    ConfigError, EndpointConfig, Fingerprint, Identity, PathConfig, SessionManager,
};
use skyhaul_sessions::{ReceivedDatagram, SessionManagerEvent, SocketId};
use skyhaul_transport::SessionConfig;
use skyhaul_units::{Instant, Rate};
use std::collections::{BTreeSet, VecDeque};

/// What uses the session manager's sessions: it feeds them, and takes what they give.
pub trait Application {
    /// Something happened.
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent);

    /// Called after events and at every wake-up. Returns when it wants to be called again by
    /// itself.
    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant>;
}

/// How to make a [`Peer`].
#[derive(Debug, Clone)]
pub struct PeerConfig {
    /// Where it is reached, one address for each path; at least one.
    pub addresses: Vec<SocketAddr>,
    /// Its key.
    pub identity: Identity,
    /// Keys of the nodes that may call; where there are none, calls are not taken.
    pub callers: BTreeSet<Fingerprint>,
    /// For the paths at each address; the last one for all further ones.
    pub paths: Vec<PathConfig>,
    /// For every session.
    pub session: SessionConfig,
    /// Decides the state machine's random choices. The same seeds give the same run.
    pub seed: u64,
}

/// A session manager and the application that uses it.
pub struct Peer<A> {
    addresses: Vec<SocketAddr>,
    manager: SessionManager,
    application: A,
    /// When the application wants to be called.
    due: Option<Instant>,
    /// It was changed from outside since it was served.
    touched: bool,
    /// Datagrams of the batch taken from the session manager last.
    batch: VecDeque<NetworkDatagram>,
    scratch: Vec<u8>,
}

impl<A: Application> Peer<A> {
    /// A peer that has not been called yet: its application works first when the network runs.
    ///
    /// # Errors
    /// A datagram size that QUIC does not allow.
    pub fn new(config: PeerConfig, application: A) -> Result<Self, ConfigError> {
        let endpoint = |index: u8, path: PathConfig| {
            let mut endpoint = EndpointConfig::new(config.identity.clone(), path, epoch());
            endpoint.listen = !config.callers.is_empty();
            endpoint.trusted = config.callers.clone();
            let mut seed = [index; 32];
            seed[..8].copy_from_slice(&config.seed.to_be_bytes());
            endpoint.rng_seed = Some(seed);
            skyhaul_quic::QuicEndpoint::new(endpoint)
        };
        let path = |index: usize| config.paths.get(index).or(config.paths.last()).copied();
        let path =
            |index: usize| path(index).unwrap_or_else(|| PathConfig::over(Rate::from_mbps(100)));
        let mut manager = SessionManager::new(endpoint(0, path(0))?, config.session.clone());
        for index in 1..config.addresses.len() {
            manager.add_endpoint(endpoint(index as u8, path(index))?);
        }
        Ok(Self {
            addresses: config.addresses,
            manager,
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

    /// The application, when all is over.
    pub fn into_application(self) -> A {
        self.application
    }

    /// The session manager, for its counters.
    pub const fn manager(&self) -> &SessionManager {
        &self.manager
    }

    /// Both, to act on them at the present instant.
    pub const fn both_mut(&mut self) -> (&mut SessionManager, &mut A) {
        self.touched = true;
        (&mut self.manager, &mut self.application)
    }

    fn serve(&mut self, now: Instant) {
        self.touched = false;
        self.manager.flush(now);
        while let Some(event) = self.manager.poll_event() {
            self.application.event(now, &mut self.manager, event);
        }
        self.due = self.application.work(now, &mut self.manager);
        self.manager.flush(now);
    }
}

impl<A: Application> NetworkNode for Peer<A> {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        let ecn = match datagram.ecn {
            EcnMark::NotCapable => None,
            EcnMark::Ect0 => Some(skyhaul_sessions::Ecn::Ect0),
            EcnMark::Ect1 => Some(skyhaul_sessions::Ecn::Ect1),
            EcnMark::Ce => Some(skyhaul_sessions::Ecn::Ce),
        };
        let payload = BytesMut::from(datagram.payload);
        let socket = self.addresses.iter().position(|address| *address == datagram.to).unwrap_or(0);
        let received = ReceivedDatagram { remote: datagram.from, local_ip: None, ecn, payload };
        self.manager.handle_datagram(now, SocketId(socket), received);
        self.serve(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram> {
        if self.touched {
            self.serve(now);
        }
        if self.batch.is_empty() {
            let (socket, transmit) = self.manager.poll_transmit(now, &mut self.scratch)?;
            let from = self.addresses.get(socket.0).copied()?;
            let contents = Bytes::copy_from_slice(&self.scratch[..transmit.size]);
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            let ecn = match transmit.ecn {
                None => EcnMark::NotCapable,
                Some(skyhaul_sessions::Ecn::Ect0) => EcnMark::Ect0,
                Some(skyhaul_sessions::Ecn::Ect1) => EcnMark::Ect1,
                Some(skyhaul_sessions::Ecn::Ce) => EcnMark::Ce,
            };
            self.batch.extend((0..contents.len()).step_by(size).map(|start| NetworkDatagram {
                from,
                to: transmit.to,
                ecn,
                payload: contents.slice(start..contents.len().min(start + size)),
            }));
        }
        self.batch.pop_front()
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        [self.manager.next_timeout(), self.due].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.manager.handle_timeout(now);
        self.serve(now);
    }
}

/// One fixed reading for all peers: only differences matter.
#[allow(
    clippy::disallowed_methods,
    reason = "the standard library has no other way to make a clock reading"
)]
fn epoch() -> std::time::Instant {
    static EPOCH: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}
