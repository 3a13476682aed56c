//! One connection as a [`Path`].
//!
//! ```text
//!            handshake confirmed, and the far end's greeting has come
//!   Setup ─────────────────────────────────────────────────────────► Up
//!     │                                                               │
//!     └──────────────► Over ◄── closed here or there, timed out ◄─────┘
//! ```

use crate::clock::Clock;
use crate::closing::Closing;
use crate::config::PathConfig;
use crate::control::Control;
use crate::event::{CLOSE_VERSION, down_reason};
use crate::feed::{Feed, News};
use crate::sender::{Reading, Sender};
use crate::setup::Setup;
use bytes::Bytes;
use noq_proto::{
    Connection, ConnectionError, Dir, Event, PathId, SendDatagramError, StreamEvent, VarInt,
};
use skyhaul_congestion::{Memory, Status};
use skyhaul_transport::{DownReason, Estimate, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

/// A path on one QUIC connection; its [`crate::QuicEndpoint`] moves its datagrams.
pub struct QuicPath {
    conn: Connection,
    clock: Clock,
    config: PathConfig,
    state: State,
    setup: Setup,
    sender: Sender,
    control: Control,
    feed: Feed,
    news: Vec<News>,
    events: VecDeque<PathEvent>,
    /// The largest datagram of the session that goes into a packet now; zero before it is up.
    payload: usize,
    confirmed: bool,
    heard: Instant,
    pinged: Instant,
    counts: Counts,
}

#[derive(Debug)]
enum State {
    Setup,
    Up,
    Over {
        /// `Some` until the end has been polled.
        reason: Option<DownReason>,
        closing: Closing,
    },
}

/// What has been counted so far, to see changes in the state machine's counters.
#[derive(Debug, Default)]
struct Counts {
    datagrams_sent: u64,
    ack_frequency_sent: u64,
    datagrams_polled: u64,
    overflowed: u64,
}

/// What an endpoint must know of its paths.
#[derive(Debug)]
pub(crate) enum Notice {
    Connected,
    Up,
    Over(ConnectionError),
}

/// A path's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathCounters {
    /// UDP datagrams sent, copies of the set-up left out, and their payload.
    pub sent: (u64, ByteCount),
    /// UDP datagrams received, and their payload.
    pub received: (u64, ByteCount),
    /// QUIC packets considered lost.
    pub lost: u64,
    /// Datagrams that came and were dropped, because they were not polled in time.
    pub overflowed: u64,
}

/// Keying material could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no keying material: the handshake is not complete, or more was requested than TLS provides"
)]
pub struct ExportError;

impl QuicPath {
    pub(crate) fn new(
        now: Instant,
        conn: Connection,
        feed: Feed,
        (clock, config, memory): (Clock, PathConfig, Option<Memory>),
    ) -> Self {
        let remote = conn.network_path(PathId::ZERO).map(|path| path.remote());
        let headers =
            ByteCount::new(if remote.is_ok_and(|remote| remote.is_ipv6()) { 48 } else { 28 });
        let setup = Setup::towards(conn.side().is_client());
        Self {
            conn,
            clock,
            config,
            state: State::Setup,
            setup,
            sender: Sender::new(now, &config, headers, memory),
            control: Control::default(),
            feed,
            news: Vec::new(),
            events: VecDeque::new(),
            payload: 0,
            confirmed: false,
            heard: now,
            pinged: now,
            counts: Counts::default(),
        }
    }

    /// Derives key material bound to this connection (RFC 8446 7.5): both ends get the same for the
    /// same label and context.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportError> {
        self.conn
            .crypto_session()
            .export_keying_material(out, label, context)
            .map_err(|_| ExportError)
    }

    /// The far end's address now.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.conn.network_path(PathId::ZERO).ok().map(|path| path.remote())
    }

    /// What the congestion controller does now.
    pub fn congestion(&self) -> Status {
        self.sender.status()
    }

    /// This end calls to join a session.
    pub(crate) const fn join(&mut self) {
        self.control.joins = true;
    }

    /// Whether the connection is for one more path of a session that stands, as the calling end
    /// said.
    pub(crate) const fn joins(&self) -> bool {
        self.control.joins || self.control.peer_joins
    }

    /// What should be remembered of the path when it is used again.
    pub fn memory(&self) -> Option<Memory> {
        self.sender.memory()
    }

    /// Counters since the start.
    pub fn counters(&mut self) -> PathCounters {
        let stats = self.conn.stats();
        PathCounters {
            sent: (stats.udp_tx.datagrams, ByteCount::new(stats.udp_tx.bytes)),
            received: (stats.udp_rx.datagrams, ByteCount::new(stats.udp_rx.bytes)),
            lost: stats.lost_packets,
            overflowed: self.counts.overflowed,
        }
    }

    pub(crate) const fn connection(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// A datagram of `bytes` for this connection was handed to the state machine.
    pub(crate) fn heard(&mut self, now: Instant, bytes: usize) {
        self.heard = now;
        self.setup.received(bytes);
    }

    /// The far end's address has proven itself by a Retry token.
    pub(crate) const fn validated(&mut self) {
        self.setup.validated = true;
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Over { .. })
    }

    /// Whether closing datagrams are still to be sent.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(&self.state, State::Over { closing, .. } if closing.is_pending())
    }

    /// Whether nothing is left to poll after the end.
    pub(crate) const fn is_read_out(&self) -> bool {
        matches!(self.state, State::Over { reason: None, .. })
    }

    /// Closes because the far end speaks another version; `alpn` is ours.
    pub(crate) fn close_for_version(&mut self, now: Instant, alpn: Vec<u8>) {
        self.conn.close(self.clock.std(now), CLOSE_VERSION.into(), alpn.into());
        self.end(DownReason::ClosedHere, Closing::Unsent);
    }

    /// Takes in what the state machine has to say; gives what the endpoint must know.
    pub(crate) fn drive(&mut self, now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.absorb(now);
        self.resize();
        while let Some(event) = self.conn.poll() {
            match event {
                Event::Connected => {
                    self.setup.validated = true;
                    notices.push(Notice::Connected);
                }
                Event::HandshakeConfirmed => self.confirmed = true,
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.control.opened(&mut self.conn);
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.control.readable(),
                Event::ConnectionLost { reason } => {
                    self.end(down_reason(&reason), Closing::Done);
                    notices.push(Notice::Over(reason));
                }
                _ => {}
            }
        }
        if self.is_closing() && self.frames_received().connection_close > 0 {
            self.far_end_closed();
        }
        // The endpoint may want to end what has just connected before it comes up; it drives again
        // after a notice.
        if matches!(self.state, State::Setup) && notices.is_empty() {
            self.advance_setup(now, &mut notices);
        }
        notices
    }

    fn advance_setup(&mut self, now: Instant, notices: &mut Vec<Notice>) {
        if !self.conn.is_handshaking() && self.frames_received().ack_frequency > 0 {
            self.control.greet(&mut self.conn);
        }
        match self.control.greeted(&mut self.conn) {
            Err(broken) => self.fail(now, &broken.to_string(), notices),
            Ok(greeted) if greeted && self.confirmed => match self.conn.datagrams().max_size() {
                Some(payload) => {
                    self.payload = payload;
                    self.state = State::Up;
                    self.sender.up = true;
                    self.setup.up(now, self.sender.meter().smoothed());
                    self.events.push_back(PathEvent::Up { payload });
                    notices.push(Notice::Up);
                }
                None => self.fail(now, "the far end does not support DATAGRAM frames", notices),
            },
            Ok(_) => {}
        }
    }

    /// The line carries datagrams of another size than so far: larger ones alone were lost, or one
    /// arrived.
    fn resize(&mut self) {
        let payload = self.conn.datagrams().max_size().filter(|_| matches!(self.state, State::Up));
        let Some(payload) = payload.filter(|payload| *payload != self.payload) else { return };
        if payload < self.payload {
            // The state machine has dropped those that it held.
            self.sender.drop_oversized(payload, &mut self.events);
        }
        self.payload = payload;
        self.events.push_back(PathEvent::Up { payload });
    }

    fn frames_received(&mut self) -> noq_proto::FrameStats {
        self.conn.path_stats(PathId::ZERO).unwrap_or_default().frame_rx
    }

    fn fail(&mut self, now: Instant, reason: &str, notices: &mut Vec<Notice>) {
        self.conn.close(
            self.clock.std(now),
            VarInt::from_u32(0),
            Bytes::copy_from_slice(reason.as_bytes()),
        );
        self.end(DownReason::Failed(reason.to_owned()), Closing::Unsent);
        notices.push(Notice::Over(ConnectionError::LocallyClosed));
    }

    fn end(&mut self, reason: DownReason, closing: Closing) {
        if self.is_over() {
            return;
        }
        // Copies would exceed what may be sent to an address that is not validated (RFC 9000 8.1).
        let closing = if self.setup.validated { closing } else { Closing::Done };
        self.sender.give_up(&mut self.events);
        self.state = State::Over { reason: Some(reason), closing };
    }

    /// The far end has closed too, so no copy needs to tell it.
    fn far_end_closed(&mut self) {
        if let State::Over { closing, .. } = &mut self.state {
            *closing = Closing::Done;
        }
    }

    fn absorb(&mut self, now: Instant) {
        self.feed.drain_into(&mut self.news);
        if !self.is_over() {
            let largest = u64::from(self.conn.current_mtu());
            self.sender.absorb(
                Reading { now, clock: self.clock, largest },
                &self.news,
                &mut self.events,
            );
        }
    }

    /// The next UDP datagram, or up to `limit` of one size, into `out`, which must be empty. Those
    /// that only acknowledge are not paid for (RFC 9002 7.7): an end that only answers would wait
    /// to say what has arrived.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Option<noq_proto::Transmit> {
        if let Some(copy) = self.setup.next_copy() {
            return self.copy_out(now, &copy, out);
        }
        let copy = match &mut self.state {
            State::Over { closing, .. } => closing.next_copy(now),
            State::Setup | State::Up => None,
        };
        if let Some(copy) = copy {
            return self.copy_out(now, &copy, out);
        }
        // What is to be repeated is looked at one by one.
        let limit = if self.setup.is_on(now) || self.is_over() {
            NonZeroUsize::MIN
        } else {
            batch_limit(&self.config, limit)
        };
        self.feed_datagrams(limit.get());
        let transmit = self.conn.poll_transmit(self.clock.std(now), limit, out)?;
        self.absorb(now);
        if let State::Over { closing, .. } = &mut self.state {
            closing.sent(now, out, self.sender.meter().smoothed());
        }
        if matches!(self.state, State::Setup) && !self.setup.may_send(out.len()) {
            out.clear();
            return None;
        }
        if self.news.iter().any(|item| matches!(item, News::Sent { .. })) {
            let count = transmit.segment_size.map_or(1, |segment| out.len().div_ceil(segment));
            self.sender.transmitted(now, out.len(), count);
        }
        let stats = self.conn.path_stats(PathId::ZERO).unwrap_or_default().frame_tx;
        if stats.datagram > self.counts.datagrams_sent {
            let carried = stats.datagram - self.counts.datagrams_sent;
            self.counts.datagrams_sent = stats.datagram;
            self.sender.carried(carried, &self.news, &mut self.events);
        } else if self.setup.is_on(now) {
            self.setup.transmitted(out, self.config.setup_copies);
        }
        if stats.ack_frequency > self.counts.ack_frequency_sent {
            self.counts.ack_frequency_sent = stats.ack_frequency;
            if matches!(self.state, State::Setup) {
                self.setup.keep_repeating(now, out, self.sender.meter().smoothed());
            }
        }
        Some(transmit)
    }

    fn copy_out(
        &mut self,
        now: Instant,
        copy: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<noq_proto::Transmit> {
        let path = self.conn.network_path(PathId::ZERO).ok()?;
        out.extend_from_slice(copy);
        self.sender.transmitted(now, copy.len(), 1);
        let (destination, src_ip) = (path.remote(), path.local_ip());
        Some(noq_proto::Transmit {
            destination,
            ecn: None,
            size: copy.len(),
            segment_size: None,
            src_ip,
        })
    }

    /// Keeps up to `limit` datagrams ready in the state machine.
    fn feed_datagrams(&mut self, limit: usize) {
        let payload = usize::from(self.conn.current_mtu());
        while let Some(datagram) = self.sender.hand_over(limit, payload) {
            match self.conn.datagrams().send(datagram, false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(_) | SendDatagramError::TooLarge)
                | Err(SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled) => {
                    let refused = self.sender.refused();
                    self.events.extend(refused.map(PathEvent::Lost));
                }
            }
        }
    }

    /// When [`QuicPath::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let state_machine = self.conn.poll_timeout().map(|at| self.clock.ours(at));
        let ours = match self.state {
            State::Setup => [self.setup.repeat_at(), None],
            State::Up => [self.sender.wake(), self.ping_at()],
            State::Over { ref closing, .. } => [closing.due(), None],
        };
        [state_machine].into_iter().chain(ours).flatten().min()
    }

    /// When to look for the line again: the state machine's own probes come ever more seldom, up to
    /// every two seconds, and each may be lost.
    fn ping_at(&self) -> Option<Instant> {
        let silence = self.sender.answer_within().max(PING);
        self.sender.expects_answer().then(|| (self.heard + silence).max(self.pinged + PING))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.conn.poll_timeout().is_some_and(|at| self.clock.ours(at) <= now) {
            self.conn.handle_timeout(self.clock.std(now));
        }
        match &mut self.state {
            State::Setup => self.setup.on_timeout(now, self.sender.meter().smoothed()),
            State::Up => {
                if self.sender.wake().is_some_and(|at| at <= now) {
                    self.sender.woken(now);
                }
                if self.ping_at().is_some_and(|at| at <= now) {
                    self.pinged = now;
                    self.conn.ping();
                }
            }
            State::Over { closing, .. } => closing.on_timeout(now),
        }
    }

    fn poll_datagram(&mut self) -> Option<Bytes> {
        if let Some(datagram) = self.conn.datagrams().recv() {
            self.counts.datagrams_polled += 1;
            return Some(datagram);
        }
        // Nothing is held back now, so what came and was not polled was dropped.
        let came = self.frames_received().datagram;
        self.counts.overflowed = came.saturating_sub(self.counts.datagrams_polled);
        None
    }
}

impl Path for QuicPath {
    fn room(&mut self, now: Instant) -> usize {
        match self.state {
            State::Up => self.sender.room(now),
            State::Setup | State::Over { .. } => 0,
        }
    }

    fn send(&mut self, _now: Instant, token: Option<Token>, datagram: Bytes) {
        let refused = match self.state {
            State::Up => self.sender.push(token, datagram).err(),
            State::Setup | State::Over { .. } => Some((token, datagram)),
        };
        self.events.extend(refused.and_then(|(token, _)| token).map(PathEvent::Lost));
    }

    fn send_control(&mut self, _now: Instant, bytes: &[u8]) -> usize {
        match self.state {
            State::Up => self.control.write(&mut self.conn, bytes),
            State::Setup | State::Over { .. } => 0,
        }
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if matches!(self.state, State::Setup) {
            return None;
        }
        if let Some(datagram) = self.poll_datagram() {
            return Some(PathEvent::Datagram(datagram));
        }
        match (self.control.read(&mut self.conn), self.is_over()) {
            (Ok(Some(bytes)), _) => return Some(PathEvent::Control(bytes)),
            (Err(broken), false) => self.fail(now, &broken.to_string(), &mut Vec::new()),
            (Ok(None), _) | (Err(_), true) => {}
        }
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        match &mut self.state {
            State::Over { reason, .. } => reason.take().map(PathEvent::Down),
            State::Setup | State::Up => None,
        }
    }

    fn estimate(&self) -> Estimate {
        let meter = self.sender.meter();
        Estimate {
            rtt: meter.smoothed(),
            min_rtt: meter.least(),
            rtt_variation: meter.variation(),
            rate: self.sender.status().rate,
            loss: meter.loss(),
            answered: self.sender.answered(),
        }
    }

    fn close(&mut self, now: Instant, reason: &str) {
        if self.is_over() {
            return;
        }
        self.conn.close(
            self.clock.std(now),
            VarInt::from_u32(0),
            Bytes::copy_from_slice(reason.as_bytes()),
        );
        self.end(DownReason::ClosedHere, Closing::Unsent);
    }
}

/// Datagrams of `config`'s size that may leave as one batch, `limit` at most.
fn batch_limit(config: &PathConfig, limit: usize) -> NonZeroUsize {
    let fit = MAX_BATCH / usize::from(config.udp_payload);
    NonZeroUsize::new(limit.min(fit)).unwrap_or(NonZeroUsize::MIN)
}

/// What the kernel takes as one batch: less than the largest UDP payload.
const MAX_BATCH: usize = 65_000;

/// How often a silent line is tried: data flows again half a second and a round trip after it is
/// back.
const PING: Duration = Duration::from_millis(500);
