//! One connection as a [`Path`].

use crate::closing::Closing;
use crate::config::PathConfig;
use crate::control::Control;
use crate::event::{CLOSE_GOES_ON, CLOSE_VERSION, down_reason};
use crate::feed::{Feed, News};
use crate::machine::Machine;
use crate::sender::{Reading, Sender};
use crate::setup::Setup;
use crate::silence::SilenceProbe;
use crate::state::PathState;
use bytes::Bytes;
use noq_proto::{Connection, ConnectionError, Dir, Event, SendDatagramError, StreamEvent};
use skyhaul_congestion::Memory;
use skyhaul_sessions::ConnectionPurpose;
use skyhaul_transport::{DownReason, Estimate, GOES_ON, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

/// A path on one QUIC connection; its [`crate::QuicEndpoint`] moves its datagrams.
pub struct QuicPath {
    machine: Machine,
    config: PathConfig,
    state: PathState,
    setup: Setup,
    sender: Sender,
    control: Control,
    feed: Feed,
    news: Vec<News>,
    events: VecDeque<PathEvent>,
    /// The largest datagram of the session that goes into a packet now; zero before it is up.
    payload: usize,
    confirmed: bool,
    silence: SilenceProbe,
    counts: Counts,
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
        mut machine: Machine,
        feed: Feed,
        config: PathConfig,
        memory: Option<Memory>,
    ) -> Self {
        let is_ipv6 = machine.remote().is_some_and(|remote| remote.is_ipv6());
        let headers = ByteCount::new(if is_ipv6 { 48 } else { 28 });
        let setup = Setup::of(machine.connection().side());
        Self {
            machine,
            config,
            state: PathState::Setup,
            setup,
            sender: Sender::new(now, &config, headers, memory),
            control: Control::default(),
            feed,
            news: Vec::new(),
            events: VecDeque::new(),
            payload: 0,
            confirmed: false,
            silence: SilenceProbe::new(now),
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
        self.machine.export_keying_material(out, label, context).then_some(()).ok_or(ExportError)
    }

    /// The far end's address now.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.machine.remote()
    }

    /// What this end connects for.
    pub(crate) const fn set_purpose(&mut self, purpose: ConnectionPurpose) {
        self.control.purpose = purpose;
    }

    /// What the connection is for, as the end that connected said.
    pub(crate) const fn purpose(&self) -> ConnectionPurpose {
        self.control.agreed_purpose()
    }

    /// Where it is between setup and end.
    pub(crate) const fn state(&self) -> &PathState {
        &self.state
    }

    /// What should be remembered of the path when it is used again.
    pub fn memory(&self) -> Option<Memory> {
        self.sender.memory()
    }

    /// Counters since the start.
    pub fn counters(&mut self) -> PathCounters {
        let stats = self.machine.connection().stats();
        PathCounters {
            sent: (stats.udp_tx.datagrams, ByteCount::new(stats.udp_tx.bytes)),
            received: (stats.udp_rx.datagrams, ByteCount::new(stats.udp_rx.bytes)),
            lost: stats.lost_packets,
            overflowed: self.counts.overflowed,
        }
    }

    pub(crate) const fn connection(&mut self) -> &mut Connection {
        self.machine.connection()
    }

    /// A datagram of `bytes` for this connection was handed to the state machine.
    pub(crate) fn heard(&mut self, now: Instant, bytes: usize) {
        self.silence.heard(now);
        self.setup.received(bytes);
    }

    /// The far end's address has proven itself by a Retry token.
    pub(crate) const fn validated(&mut self) {
        self.setup.validated = true;
    }

    /// Closes because the far end speaks none of the versions `ours`.
    pub(crate) fn close_for_version(&mut self, now: Instant, ours: &[u8]) {
        self.machine.close(now, CLOSE_VERSION, ours);
        self.end(DownReason::ClosedHere, Closing::Unsent);
    }

    /// Closes because this node goes on in another process.
    pub(crate) fn close_to_go_on(&mut self, now: Instant) {
        if !self.state.is_over() {
            self.machine.close(now, CLOSE_GOES_ON, GOES_ON.as_bytes());
            self.end(DownReason::ClosedHere, Closing::Unsent);
        }
    }

    /// Handles the state machine's events; gives what the endpoint must know.
    pub(crate) fn drive(&mut self, now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.absorb(now);
        self.resize();
        while let Some(event) = self.machine.connection().poll() {
            match event {
                Event::Connected => {
                    self.setup.validated = true;
                    notices.push(Notice::Connected);
                }
                Event::HandshakeConfirmed => self.confirmed = true,
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.control.opened(self.machine.connection());
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.control.readable(),
                Event::ConnectionLost { reason } => {
                    self.end(down_reason(&reason), Closing::Done);
                    notices.push(Notice::Over(reason));
                }
                _ => {}
            }
        }
        if self.state.is_closing()
            && self.machine.frames_received().connection_close > 0
            && let Some(closing) = self.state.closing()
        {
            // The far end has closed too, so no copy needs to tell it.
            *closing = Closing::Done;
        }
        // The endpoint may want to end what has just connected before it comes up; it drives again
        // after a notice.
        if self.state.is_setup() && notices.is_empty() {
            self.advance_setup(now, &mut notices);
        }
        notices
    }

    fn advance_setup(&mut self, now: Instant, notices: &mut Vec<Notice>) {
        if !self.machine.connection().is_handshaking()
            && self.machine.frames_received().ack_frequency > 0
        {
            self.control.greet(self.machine.connection());
        }
        match self.control.greeted(self.machine.connection()) {
            Err(broken) => self.fail(now, &broken.to_string(), notices),
            Ok(greeted) if greeted && self.confirmed => match self.machine.max_datagram() {
                Some(payload) => {
                    self.payload = payload;
                    self.state = PathState::Up;
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
        let payload = self.machine.max_datagram().filter(|_| self.state.is_up());
        let Some(payload) = payload.filter(|payload| *payload != self.payload) else { return };
        if payload < self.payload {
            // The state machine has dropped those that it held.
            self.sender.drop_oversized(payload, &mut self.events);
        }
        self.payload = payload;
        self.events.push_back(PathEvent::Up { payload });
    }

    fn fail(&mut self, now: Instant, reason: &str, notices: &mut Vec<Notice>) {
        self.machine.close(now, 0, reason.as_bytes());
        self.end(DownReason::Failed(reason.to_owned()), Closing::Unsent);
        notices.push(Notice::Over(ConnectionError::LocallyClosed));
    }

    fn end(&mut self, reason: DownReason, closing: Closing) {
        if self.state.is_over() {
            return;
        }
        // Copies would exceed what may be sent to an address that is not validated (RFC 9000 8.1).
        let closing = if self.setup.validated { closing } else { Closing::Done };
        self.sender.give_up(&mut self.events);
        self.state = PathState::Over { reason: Some(reason), closing };
    }

    fn absorb(&mut self, now: Instant) {
        self.feed.drain_into(&mut self.news);
        if !self.state.is_over() {
            let largest = u64::from(self.machine.full_payload());
            self.sender.absorb(
                Reading { now, clock: self.machine.clock(), largest },
                &self.news,
                &mut self.events,
            );
        }
    }

    /// The next UDP datagram, or up to `limit` of one size, into `out`, which must be empty.
    /// Datagrams that only acknowledge are not paced (RFC 9002 7.7): a receiver would otherwise
    /// delay its acknowledgements.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Option<noq_proto::Transmit> {
        if let Some(copy) = self.setup.next_copy() {
            return self.copy_out(now, &copy, out);
        }
        if let Some(copy) = self.state.closing().and_then(|closing| closing.next_copy(now)) {
            return self.copy_out(now, &copy, out);
        }
        // What is to be repeated is looked at one by one.
        let limit = if self.setup.is_on(now) || self.state.is_over() {
            NonZeroUsize::MIN
        } else {
            batch_limit(&self.config, limit)
        };
        self.feed_datagrams(limit.get());
        let transmit = self.machine.poll_transmit(now, limit, out)?;
        self.absorb(now);
        if let Some(closing) = self.state.closing() {
            closing.sent(now, out, self.sender.meter().smoothed());
        }
        if self.state.is_setup() && !self.setup.may_send(out.len()) {
            out.clear();
            return None;
        }
        if self.news.iter().any(|item| matches!(item, News::Sent { .. })) {
            let count = transmit.segment_size.map_or(1, |segment| out.len().div_ceil(segment));
            self.sender.transmitted(now, out.len(), count);
        }
        let stats = self.machine.frames_sent();
        if stats.datagram > self.counts.datagrams_sent {
            let carried = stats.datagram - self.counts.datagrams_sent;
            self.counts.datagrams_sent = stats.datagram;
            self.sender.carried(carried, &self.news, &mut self.events);
        } else if self.setup.is_on(now) {
            self.setup.transmitted(out, self.config.setup_copies);
        }
        if stats.ack_frequency > self.counts.ack_frequency_sent {
            self.counts.ack_frequency_sent = stats.ack_frequency;
            if self.state.is_setup() {
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
        let transmit = self.machine.copy_transmit(copy.len())?;
        out.extend_from_slice(copy);
        self.sender.transmitted(now, copy.len(), 1);
        Some(transmit)
    }

    /// Keeps up to `limit` datagrams ready in the state machine.
    fn feed_datagrams(&mut self, limit: usize) {
        let payload = usize::from(self.machine.full_payload());
        while let Some(datagram) = self.sender.hand_over(limit, payload) {
            match self.machine.connection().datagrams().send(datagram, false) {
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
        let ours = match self.state {
            PathState::Setup => [self.setup.repeat_at(), None],
            PathState::Up => [self.sender.wake(), self.silence.due(self.sender.answer_within())],
            PathState::Over { ref closing, .. } => [closing.due(), None],
        };
        [self.machine.next_timeout()].into_iter().chain(ours).flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        match &mut self.state {
            PathState::Setup => self.setup.on_timeout(now, self.sender.meter().smoothed()),
            PathState::Up => {
                if self.sender.wake().is_some_and(|at| at <= now) {
                    self.sender.woken(now);
                }
                if self.silence.poll(now, self.sender.answer_within()) {
                    self.machine.connection().ping();
                }
            }
            PathState::Over { closing, .. } => closing.on_timeout(now),
        }
    }

    fn poll_datagram(&mut self) -> Option<Bytes> {
        if let Some(datagram) = self.machine.connection().datagrams().recv() {
            self.counts.datagrams_polled += 1;
            return Some(datagram);
        }
        // Nothing is held back now, so what came and was not polled was dropped.
        let came = self.machine.frames_received().datagram;
        self.counts.overflowed = came.saturating_sub(self.counts.datagrams_polled);
        None
    }
}

impl Path for QuicPath {
    fn room(&mut self, now: Instant) -> usize {
        match self.state {
            PathState::Up => self.sender.room(now),
            PathState::Setup | PathState::Over { .. } => 0,
        }
    }

    fn send(&mut self, _now: Instant, token: Option<Token>, datagram: Bytes) {
        let refused = match self.state {
            PathState::Up => self.sender.push(token, datagram).err(),
            PathState::Setup | PathState::Over { .. } => Some((token, datagram)),
        };
        self.events.extend(refused.and_then(|(token, _)| token).map(PathEvent::Lost));
    }

    fn send_control(&mut self, _now: Instant, bytes: &[u8]) -> usize {
        match self.state {
            PathState::Up => self.control.write(self.machine.connection(), bytes),
            PathState::Setup | PathState::Over { .. } => 0,
        }
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.state.is_setup() {
            return None;
        }
        if let Some(datagram) = self.poll_datagram() {
            return Some(PathEvent::Datagram(datagram));
        }
        match (self.control.read(self.machine.connection()), self.state.is_over()) {
            (Ok(Some(bytes)), _) => return Some(PathEvent::Control(bytes)),
            (Err(broken), false) => self.fail(now, &broken.to_string(), &mut Vec::new()),
            (Ok(None), _) | (Err(_), true) => {}
        }
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.state.poll_end().map(PathEvent::Down)
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
            sent: self.sender.transmitted_so_far(),
        }
    }

    fn close(&mut self, now: Instant, reason: &str) {
        if self.state.is_over() {
            return;
        }
        self.machine.close(now, 0, reason.as_bytes());
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
