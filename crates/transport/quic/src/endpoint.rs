//! The endpoint: opens and accepts connections, knows each by its id, moves datagrams.

mod admit;
mod handshakes;
mod held;
mod queues;
mod sessions;
mod table;

use crate::clock::Clock;
use crate::config::{EndpointConfig, PAYLOAD_MIN};
use crate::event::{codepoint, refusal, transmit};
use crate::feed::Feed;
use crate::machine::Machine;
use crate::tls;
use crate::{Fingerprint, QuicPath, Refusal};
use handshakes::{Handshakes, other_version};
use held::{HeldConnection, Origin};
use noq_proto::{DatagramEvent, FourTuple, Incoming, RandomConnectionIdGenerator};
use queues::{EventQueue, StatelessAnswers};
use skyhaul_sessions::admission::{Admission, Doorkeeper};
use skyhaul_sessions::{
    ConnectError, ConnectionId, ConnectionPurpose, EndpointEvent, ReceivedDatagram, Transmit,
};
use skyhaul_units::Instant;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use table::{ConnectionTable, MAX_CONNECTIONS};

/// All connections that share one socket.
pub struct QuicEndpoint {
    config: EndpointConfig,
    clock: Clock,
    inner: noq_proto::Endpoint,
    handshakes: Handshakes,
    doorkeeper: Doorkeeper,
    table: ConnectionTable,
    /// Datagrams given out as one batch.
    segments: usize,
    answers: StatelessAnswers,
    events: EventQueue,
    /// The connection that took in datagrams last, and when: their effects are looked at once for
    /// all of them.
    unsettled: Option<(ConnectionId, Instant)>,
    counters: Counters,
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
        let mut inner =
            noq_proto::EndpointConfig::new(Arc::new(tls::reset_key(&config.identity.current())));
        if payload < PAYLOAD_MIN || inner.max_udp_payload_size(payload).is_err() {
            return Err(ConfigError::UdpPayload(payload));
        }
        inner
            .cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::new(CID_BYTES))))
            .rng_seed(config.rng_seed);
        let handshakes = Handshakes::new(&config);
        // The sockets forbid fragments, so that the search for the line's size finds it.
        let inner = noq_proto::Endpoint::new(Arc::new(inner), handshakes.server(), true);
        let seed = config.rng_seed.unwrap_or(*config.identity.fingerprint().as_bytes());
        Ok(Self {
            clock: Clock(config.epoch),
            inner,
            handshakes,
            doorkeeper: Doorkeeper::new(&seed),
            table: ConnectionTable::new(),
            segments: 1,
            answers: StatelessAnswers::default(),
            events: EventQueue::default(),
            unsettled: None,
            counters: Counters::default(),
            config,
        })
    }

    /// As [`QuicEndpoint::connect`], for one more path of a session with that node.
    pub fn join(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<ConnectionId, ConnectError> {
        let id = self.connect(now, remote, expected)?;
        if let Some(held) = self.table.get_mut(id) {
            held.path.set_purpose(ConnectionPurpose::JoinSession);
        }
        Ok(id)
    }

    /// Changes which keys are trusted. Connections that are up stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        self.handshakes.set_trusted(trusted);
    }

    /// Connects to the node at `remote`, which must have the key `expected`. Ends in
    /// [`EndpointEvent::Ready`] or [`EndpointEvent::Refused`].
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
    ) -> Result<ConnectionId, ConnectError> {
        self.settle_pending();
        self.table.sweep();
        if self.table.is_full() {
            return Err(ConnectError::TooMany { max: MAX_CONNECTIONS });
        }
        let feed = Feed::default();
        let client = self.handshakes.client(&self.config, expected, &feed);
        let (handle, conn) =
            self.inner
                .connect(self.clock.std(now), client, remote, SERVER_NAME)
                .map_err(|error| ConnectError::Address { remote, reason: error.to_string() })?;
        let path = self.new_path(now, remote, conn, feed);
        let origin = Origin::Here { expected };
        Ok(self.table.insert(HeldConnection::new(now, handle, remote, path, origin)))
    }

    fn new_path(
        &self,
        now: Instant,
        remote: SocketAddr,
        conn: noq_proto::Connection,
        feed: Feed,
    ) -> QuicPath {
        let memory = self.table.memory_of(remote.ip());
        QuicPath::new(now, Machine::new(conn, self.clock), feed, self.config.path, memory)
    }

    /// Takes in a UDP datagram.
    pub fn handle_datagram(&mut self, now: Instant, received: ReceivedDatagram) {
        self.handshakes.set_time(now);
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
                let Some(id) = self.table.by_handle(handle) else { return };
                if self.unsettled.is_some_and(|(other, _)| other != id) {
                    self.settle_pending();
                }
                let held = self.table.get_mut(id).expect("both maps hold the same connections");
                held.path.heard(now, bytes);
                held.path.connection().handle_event(event);
                self.unsettled = Some((id, now));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.settle_pending();
                self.accept(now, incoming, bytes);
            }
            Some(DatagramEvent::Response(response)) => {
                self.answers.push(transmit(&response), answer);
            }
            None => {}
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle_pending();
        self.table.sweep();
        for id in self.table.due(now) {
            if let Some(held) = self.table.get_mut(id) {
                if held.path.next_timeout().is_some_and(|at| at <= now) {
                    held.path.handle_timeout(now);
                }
                if held.setup_end().is_some_and(|at| at <= now) {
                    self.refuse_slow(now, id);
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
        self.table.next_timeout()
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
        if let Some(transmit) = self.answers.pop(out) {
            return Some(transmit);
        }
        let mut following = self.table.next_turn();
        for _ in 0..self.table.len() {
            let id = following?;
            following = self.table.after(id);
            let held = self.table.get_mut(id)?;
            let next = held.path.poll_transmit(now, self.segments, out);
            self.settle(now, id);
            if let Some(next) = next {
                self.table.had_turn(id);
                return Some(transmit(&next));
            }
        }
        None
    }

    /// The next event, until `None`.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.settle_pending();
        self.events.pop()
    }

    /// A connection's path, until its end has been polled from it.
    pub fn path(&mut self, id: ConnectionId) -> Option<&mut QuicPath> {
        self.settle_pending();
        self.table.get_mut(id).map(|held| &mut held.path)
    }

    /// Counters since the start.
    pub const fn counters(&self) -> Counters {
        Counters {
            answers_dropped: self.answers.dropped(),
            events_dropped: self.events.dropped(),
            ..self.counters
        }
    }

    /// Accepts an incoming connection, asks for a proof of its address, ignores it, or refuses it.
    fn accept(&mut self, now: Instant, incoming: Incoming, bytes: usize) {
        let remote = incoming.remote_address();
        let validated = incoming.remote_address_validated();
        let mut answer = Vec::new();
        if self.table.in_setup().count() >= RETRY_FROM && !validated && incoming.may_retry() {
            self.counters.retried += 1;
            if let Ok(retry) = self.inner.retry(incoming, &mut answer) {
                self.answers.push(transmit(&retry), answer);
            }
            return;
        }
        match self.admit(now, remote) {
            Admission::Overlooked => {
                self.counters.overlooked += 1;
                return self.inner.ignore(incoming);
            }
            Admission::Refused => {
                self.counters.refused_busy += 1;
                let refusal = self.inner.refuse(incoming, &mut answer);
                self.answers.push(transmit(&refusal), answer);
                return self.report_stranger(remote, Refusal::Busy);
            }
            Admission::Taken | Admission::Replaces => {}
        }
        let other_version = other_version(&self.config, &incoming);
        let feed = Feed::default();
        let server = self.handshakes.server_for(&self.config, &feed, other_version.as_deref());
        match self.inner.accept(incoming, self.clock.std(now), &mut answer, server) {
            Ok((handle, conn)) => {
                let mut path = self.new_path(now, remote, conn, feed);
                path.heard(now, bytes);
                if validated {
                    path.validated();
                }
                let origin = Origin::FarEnd { other_version };
                let held = HeldConnection::new(now, handle, remote, path, origin);
                let id = self.table.insert(held);
                self.settle(now, id);
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.answers.push(transmit(&response), answer);
                }
                let ours = self.config.identity.fingerprint();
                let reason = refusal(&error.cause, ours, self.config.versions);
                self.report_stranger(remote, reason);
            }
        }
    }

    /// Reports an incoming connection that was refused before anything was kept of it.
    fn report_stranger(&mut self, remote: SocketAddr, reason: Refusal) {
        self.events.push(EndpointEvent::Refused { id: None, remote, fingerprint: None, reason });
    }

    /// Settles what the latest datagrams changed.
    fn settle_pending(&mut self) {
        if let Some((id, now)) = self.unsettled.take() {
            self.settle(now, id);
        }
    }

    /// After any change of a connection: carries its messages to the state machine's endpoint and
    /// back, and reports the results.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        loop {
            let Some(held) = self.table.get_mut(id) else { return };
            let mut moved = false;
            while let Some(event) = held.path.connection().poll_endpoint_events() {
                moved = true;
                held.drained |= event.is_drained();
                if let Some(event) = self.inner.handle_event(held.handle, event) {
                    held.path.connection().handle_event(event);
                }
            }
            for notice in held.path.drive(now) {
                moved = true;
                let refused_key = self.handshakes.take_refused();
                if let Some(event) = held.on_notice(now, notice, refused_key, &self.config) {
                    self.events.push(event);
                }
            }
            if !moved {
                break;
            }
        }
        let Some(held) = self.table.get_mut(id) else { return };
        if let Some(event) = held.on_closed_by_owner(&self.config) {
            self.events.push(event);
        }
        if held.drained {
            self.table.forget_handle(id);
            self.table.sweep();
        }
    }
}

/// Not sent (no server name indication), but the TLS library wants one.
const SERVER_NAME: &str = "skyhaul";

/// 4 bytes: leaves 1,438 bytes of 1,472 for a symbol; unique among the 13 ids each of 1,024
/// connections has.
const CID_BYTES: usize = 4;

/// From so many incoming handshakes on, the far end must prove its address first.
const RETRY_FROM: usize = 16;
