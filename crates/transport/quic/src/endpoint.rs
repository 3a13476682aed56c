//! The endpoint: takes and makes calls, knows each connection by its id, moves datagrams.

mod admit;
mod notices;
mod sessions;

use crate::clock::{Clock, TokenClock};
use crate::config::{ALPN_PREFIX, EndpointConfig, PAYLOAD_MIN};
use crate::event::{codepoint, down_reason, is_withdrawn, refusal, transmit};
use crate::feed::Feed;
use crate::memories::Memories;
use crate::path::Notice;
use crate::tls;
use crate::{Fingerprint, QuicPath, Refusal};
use noq_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, FourTuple, Incoming,
    RandomConnectionIdGenerator, ServerConfig, ValidationTokenConfig,
};
use skyhaul_identity::{Keying, RefusedKey, Trust};
use skyhaul_sessions::admission::{Admission, CALLS_MAX, Doorkeeper, SETUP_MAX};
use skyhaul_sessions::{ConnectError, ConnectionId, EndpointEvent, ReceivedDatagram, Transmit};
use skyhaul_transport::DownReason;
use skyhaul_units::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// All connections that share one socket.
pub struct QuicEndpoint {
    config: EndpointConfig,
    clock: Clock,
    inner: noq_proto::Endpoint,
    trust: Arc<Trust>,
    refused: Arc<RefusedKey>,
    doorkeeper: Doorkeeper,
    /// For calls taken; each gets a copy with its own transport parameters.
    server: Option<ServerConfig>,
    token_clock: Arc<TokenClock>,
    connections: BTreeMap<ConnectionId, Held>,
    by_handle: BTreeMap<usize, ConnectionId>,
    next_id: u64,
    /// The connection polled for datagrams last: the next one has its turn first.
    turn: ConnectionId,
    /// Datagrams given out as one batch.
    segments: usize,
    /// Answers outside connections, and what they are.
    answers: VecDeque<(Transmit, Vec<u8>)>,
    /// The connection that took in datagrams last, and when: what came of them is looked at once
    /// for all of them.
    unsettled: Option<(ConnectionId, Instant)>,
    events: VecDeque<EndpointEvent>,
    counters: Counters,
    memories: Memories,
}

/// A connection and what the endpoint knows of it.
struct Held {
    path: QuicPath,
    handle: ConnectionHandle,
    remote: SocketAddr,
    incoming: bool,
    began: Instant,
    /// The key that must be found, on calls made here.
    expected: Option<Fingerprint>,
    stage: Stage,
    /// Protocol name of a caller that speaks another version.
    other_version: Option<String>,
    drained: bool,
    /// Reported as ready, so somebody reads it to its end.
    shown: bool,
}

impl Held {
    const fn is_done(&self) -> bool {
        self.drained && (!self.shown || self.path.is_read_out())
    }

    /// Until when a call taken here must be up.
    fn setup_ends(&self) -> Option<Instant> {
        (self.incoming && self.stage == Stage::Handshake).then(|| self.began + SETUP_MAX)
    }

    /// When something is due.
    fn due(&self) -> Option<Instant> {
        [self.path.next_timeout(), self.setup_ends()].into_iter().flatten().min()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Handshake,
    Ready,
    Over,
}

/// What an endpoint counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Calls refused because too many handshakes or connections were there.
    pub refused_busy: u64,
    /// Calls overlooked by chance, because many were being set up; their callers repeat them.
    pub overlooked: u64,
    /// Callers asked to prove their address before anything is kept for them (RFC 9000 8.1.2).
    pub retried: u64,
    /// Answers outside connections that were not sent, because too many waited.
    pub answers_dropped: u64,
    /// Events lost, because the owner did not poll.
    pub events_dropped: u64,
}

/// The endpoint's configuration can't work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A datagram size QUIC doesn't allow (RFC 9000 14).
    #[error("a UDP payload of {0} bytes is not possible: give 1200 to 65527, such as 1472")]
    UdpPayload(u16),
}

impl QuicEndpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Result<Self, ConfigError> {
        let payload = config.path.udp_payload;
        let mut inner = noq_proto::EndpointConfig::new(Arc::new(tls::reset_key(&config.identity)));
        if payload < PAYLOAD_MIN || inner.max_udp_payload_size(payload).is_err() {
            return Err(ConfigError::UdpPayload(payload));
        }
        inner
            .cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::new(CID_BYTES))))
            .rng_seed(config.rng_seed);
        let trust = Arc::new(Trust::default());
        trust.accept(config.trusted.clone());
        let mut endpoint = Self {
            clock: Clock(config.epoch),
            // The sockets forbid fragments, so that the search for the line's size finds it.
            inner: noq_proto::Endpoint::new(Arc::new(inner), None, true),
            trust,
            refused: Arc::default(),
            doorkeeper: Doorkeeper::new(
                &config.rng_seed.unwrap_or(*config.identity.fingerprint().as_bytes()),
            ),
            server: None,
            token_clock: Arc::default(),
            connections: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            next_id: 0,
            turn: ConnectionId(0),
            segments: 1,
            answers: VecDeque::new(),
            unsettled: None,
            events: VecDeque::new(),
            counters: Counters::default(),
            memories: Memories::default(),
            config,
        };
        if endpoint.config.listen {
            let server = endpoint.server_config();
            endpoint.inner.set_server_config(Some(Arc::new(server.clone())));
            endpoint.server = Some(server);
        }
        Ok(endpoint)
    }

    /// As [`QuicEndpoint::connect`], for one more path of a session with that node.
    pub fn join(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<ConnectionId, ConnectError> {
        let id = self.connect(now, remote, expected)?;
        if let Some(held) = self.connections.get_mut(&id) {
            held.path.join();
        }
        Ok(id)
    }

    /// Changes whose calls are taken. Connections that are up stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        self.trust.accept(trusted);
    }

    /// Calls the node at `remote`, which must have the key `expected`. Ends in
    /// [`EndpointEvent::Ready`] or
    /// [`EndpointEvent::Refused`].
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<ConnectionId, ConnectError> {
        self.settle_pending();
        self.sweep();
        if self.connections.len() >= MAX_CONNECTIONS {
            return Err(ConnectError::TooMany { max: MAX_CONNECTIONS });
        }
        let crypto =
            tls::client(&self.config.identity, expected, &self.refused, &self.config.alpn());
        let mut client = ClientConfig::new(Arc::new(crypto));
        let feed = Feed::default();
        client.transport_config(self.config.path.transport(&feed));
        let (handle, conn) =
            self.inner
                .connect(self.clock.std(now), client, remote, SERVER_NAME)
                .map_err(|error| ConnectError::Address { remote, reason: error.to_string() })?;
        let memory = self.memories.of(remote.ip());
        let path = QuicPath::new(now, conn, feed, (self.clock, self.config.path, memory));
        let held = Held {
            path,
            handle,
            remote,
            incoming: false,
            began: now,
            expected: Some(expected),
            stage: Stage::Handshake,
            other_version: None,
            drained: false,
            shown: false,
        };
        Ok(self.hold(held))
    }

    /// Takes in a UDP datagram.
    pub fn handle_datagram(&mut self, now: Instant, received: ReceivedDatagram) {
        self.token_clock.set(now);
        let network_path = FourTuple::new(received.remote, received.local_ip);
        let bytes = received.payload.len();
        let mut answer = Vec::new();
        let ecn = received.ecn.map(codepoint);
        match self.inner.handle(
            self.clock.std(now),
            network_path,
            ecn,
            received.payload,
            &mut answer,
        ) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(id) = self.by_handle.get(&handle.0).copied() else { return };
                if self.unsettled.is_some_and(|(other, _)| other != id) {
                    self.settle_pending();
                }
                let held =
                    self.connections.get_mut(&id).expect("both maps hold the same connections");
                held.path.heard(now, bytes);
                held.path.connection().handle_event(event);
                self.unsettled = Some((id, now));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.settle_pending();
                self.called(now, incoming, bytes);
            }
            Some(DatagramEvent::Response(response)) => self.answer(transmit(&response), answer),
            None => {}
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle_pending();
        self.sweep();
        let due: Vec<ConnectionId> = self
            .connections
            .iter()
            .filter(|(_, held)| held.due().is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            if let Some(held) = self.connections.get_mut(&id) {
                if held.path.next_timeout().is_some_and(|at| at <= now) {
                    held.path.handle_timeout(now);
                }
                let is_late = held.setup_ends().is_some_and(|at| at <= now);
                if is_late {
                    self.turn_out(now, id);
                }
            }
            self.settle(now, id);
        }
    }

    /// When [`QuicEndpoint::handle_timeout`] is due: a timer of a connection, the pacer's next tick
    /// for a path that wants to send, or the next try of a silent line.
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some((_, at)) = self.unsettled {
            return Some(at);
        }
        self.connections.values().filter_map(Held::due).min()
    }

    /// From now on up to `segments` datagrams of one size are given out as one batch, which the
    /// system cuts apart ([`Transmit::segment_size`]); one by one before.
    pub fn batch(&mut self, segments: usize) {
        self.segments = segments;
    }

    /// The next datagram to be sent, or a batch of them to one address, into `out`, which is
    /// emptied first.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        self.settle_pending();
        if let Some((transmit, bytes)) = self.answers.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(transmit);
        }
        let mut following = self.after(self.turn);
        for _ in 0..self.connections.len() {
            let id = following?;
            following = self.after(id);
            let held = self.connections.get_mut(&id)?;
            let next = held.path.poll_transmit(now, self.segments, out);
            self.settle(now, id);
            if let Some(next) = next {
                self.turn = id;
                return Some(transmit(&next));
            }
        }
        None
    }

    /// The connection whose turn is after that of `id`, round and round.
    fn after(&self, id: ConnectionId) -> Option<ConnectionId> {
        let later = self.connections.range(ConnectionId(id.0 + 1)..).next();
        later.or_else(|| self.connections.first_key_value()).map(|(id, _)| *id)
    }

    /// The next event, until `None`.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.settle_pending();
        self.events.pop_front()
    }

    /// A connection's path, until its end has been polled from it.
    pub fn path(&mut self, id: ConnectionId) -> Option<&mut QuicPath> {
        self.settle_pending();
        self.connections.get_mut(&id).map(|held| &mut held.path)
    }

    /// Counters since the start.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Somebody calls.
    fn called(&mut self, now: Instant, incoming: Incoming, bytes: usize) {
        let remote = incoming.remote_address();
        let handshakes =
            self.connections.values().filter(|held| held.setup_ends().is_some()).count();
        let mut answer = Vec::new();
        if handshakes >= RETRY_FROM && !incoming.remote_address_validated() && incoming.may_retry()
        {
            self.counters.retried += 1;
            if let Ok(retry) = self.inner.retry(incoming, &mut answer) {
                self.answer(transmit(&retry), answer);
            }
            return;
        }
        let admission = self.admit(now, remote);
        if admission == Admission::Overlooked {
            self.counters.overlooked += 1;
            return self.inner.ignore(incoming);
        }
        if admission == Admission::Refused {
            self.counters.refused_busy += 1;
            let refusal = self.inner.refuse(incoming, &mut answer);
            self.answer(transmit(&refusal), answer);
            self.report(EndpointEvent::Refused {
                id: None,
                remote,
                fingerprint: None,
                reason: Refusal::Busy,
            });
            return;
        }
        let validated = incoming.remote_address_validated();
        let other_version = self.other_version(&incoming);
        let feed = Feed::default();
        let server = self.server_for(&feed, other_version.as_deref());
        match self.inner.accept(incoming, self.clock.std(now), &mut answer, server) {
            Ok((handle, conn)) => {
                let memory = self.memories.of(remote.ip());
                let mut path =
                    QuicPath::new(now, conn, feed, (self.clock, self.config.path, memory));
                path.heard(now, bytes);
                if validated {
                    path.validated();
                }
                let stage = Stage::Handshake;
                let held = Held {
                    path,
                    handle,
                    remote,
                    incoming: true,
                    began: now,
                    expected: None,
                    stage,
                    other_version,
                    drained: false,
                    shown: false,
                };
                let id = self.hold(held);
                self.settle(now, id);
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.answer(transmit(&response), answer);
                }
                let reason =
                    refusal(&error.cause, self.config.identity.fingerprint(), &self.config.alpn());
                self.report(EndpointEvent::Refused { id: None, remote, fingerprint: None, reason });
            }
        }
    }

    /// A caller that speaks another version is let in as far as the handshake goes, because only
    /// then can it be told which version is spoken here (RFC 9001 4.8: an alert says no more than
    /// "no common protocol").
    fn other_version(&self, incoming: &Incoming) -> Option<String> {
        let hello = incoming.decrypt()?;
        let offered: Vec<_> = hello.alpns()?.filter_map(Result::ok).collect();
        if offered.iter().any(|name| name[..] == self.config.alpn()[..]) {
            return None;
        }
        let name = offered.iter().find(|name| name.starts_with(ALPN_PREFIX.as_bytes()))?;
        core::str::from_utf8(name).map(|name| skyhaul_units::printable(name, name.len())).ok()
    }

    fn server_config(&self) -> ServerConfig {
        let crypto =
            tls::server(&self.config.identity, &self.trust, &self.refused, &self.config.alpn());
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut no_tokens = ValidationTokenConfig::default();
        no_tokens.sent(0);
        server
            .validation_token_config(no_tokens)
            .time_source(Arc::clone(&self.token_clock) as Arc<dyn noq_proto::TimeSource>)
            .max_incoming(CALLS_MAX)
            .incoming_buffer_size(INCOMING_BYTES)
            .incoming_buffer_size_total(INCOMING_BYTES * 4);
        server
    }

    /// For one call.
    fn server_for(&self, feed: &Feed, other_version: Option<&str>) -> Option<Arc<ServerConfig>> {
        let mut server = self.server.clone()?;
        server.transport_config(self.config.path.transport(feed));
        if let Some(alpn) = other_version {
            let crypto =
                tls::server(&self.config.identity, &self.trust, &self.refused, alpn.as_bytes());
            server.crypto = Arc::new(crypto);
        }
        Some(Arc::new(server))
    }

    fn hold(&mut self, held: Held) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.by_handle.insert(held.handle.0, id);
        self.connections.insert(id, held);
        id
    }

    /// Settles what the latest datagrams changed.
    fn settle_pending(&mut self) {
        if let Some((id, now)) = self.unsettled.take() {
            self.settle(now, id);
        }
    }

    /// After any change of a connection: carries its messages to the state machine's endpoint and
    /// back, and reports what came of it.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        loop {
            let Some(held) = self.connections.get_mut(&id) else { return };
            let mut moved = false;
            while let Some(event) = held.path.connection().poll_endpoint_events() {
                moved = true;
                held.drained |= event.is_drained();
                if let Some(event) = self.inner.handle_event(held.handle, event) {
                    held.path.connection().handle_event(event);
                }
            }
            let notices = held.path.drive(now);
            moved |= !notices.is_empty();
            for notice in notices {
                self.note(now, id, notice);
            }
            if !moved {
                break;
            }
        }
        self.close_unnoticed(id);
        if self.connections.get(&id).is_some_and(|held| held.drained) {
            self.by_handle.retain(|_, other| *other != id);
            self.sweep();
        }
    }

    /// Forgets connections that nobody needs any more.
    fn sweep(&mut self) {
        for held in self.connections.values().filter(|held| held.is_done()) {
            if let Some(memory) = held.path.memory() {
                self.memories.keep(held.remote.ip(), memory);
            }
        }
        self.connections.retain(|_, held| !held.is_done());
    }

    fn report(&mut self, event: EndpointEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    fn answer(&mut self, transmit: Transmit, bytes: Vec<u8>) {
        if self.answers.len() >= MAX_ANSWERS {
            self.counters.answers_dropped += 1;
            return;
        }
        self.answers.push_back((transmit, bytes));
    }
}

/// Not sent (no server name indication), but the TLS library wants one.
const SERVER_NAME: &str = "skyhaul";

/// 4 bytes: leaves 1,438 bytes of 1,472 for a symbol; unique among the 13 ids each of 1,024
/// connections has.
const CID_BYTES: usize = 4;

/// Connections open at a time, those in handshake included. More calls are refused, and counted.
const MAX_CONNECTIONS: usize = 1_024;

/// From so many handshakes on, a caller must prove its address first.
const RETRY_FROM: usize = 16;

/// Datagrams of callers kept before the call is taken, which happens at once.
const INCOMING_BYTES: u64 = 64 * 1024;

/// Events kept for the owner. At the bound the oldest goes, and is counted.
const MAX_EVENTS: usize = 4_096;

/// Answers outside connections that may wait to be sent. More are dropped, and counted.
const MAX_ANSWERS: usize = 64;
