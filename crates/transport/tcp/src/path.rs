//! One TLS stream as a [`Path`]: frames to and from the stream, and the timers.

mod carry;

pub use carry::close_to_go_on;

use crate::channel::{Channel, Progress};
use crate::config::TlsPathConfig;
use crate::lifecycle::{End, State, TcpLifecycle};
use crate::pulse::Pulse;
use crate::receiver::Receiver;
use crate::refusal;
use crate::sender::Sender;
use crate::terms::PathTerms;
use crate::tls_stream::TlsStream;
use crate::wire::{CLOSE_GOES_ON, CLOSE_PLAIN, CLOSE_VERSION, TcpFrame};
use bytes::Bytes;
use skyhaul_identity::Refusal;
use skyhaul_transport::{DownReason, Estimate, GOES_ON, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Instant, Probability};
use std::collections::VecDeque;

/// A path on one byte stream, sans-IO: its owner moves the bytes.
///
/// After any call, write what [`TcpPath::poll_transmit`] gives, and call
/// [`TcpPath::handle_timeout`] at [`TcpPath::next_timeout`].
pub struct TcpPath {
    config: TlsPathConfig,
    lifecycle: TcpLifecycle,
    stream: TlsStream,
    receiver: Receiver,
    sender: Sender,
    pulse: Pulse,
    events: VecDeque<PathEvent>,
    counters: TlsPathCounters,
}

/// A path's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlsPathCounters {
    /// Bytes of the stream that were written.
    pub sent: ByteCount,
    /// Bytes of the stream that came.
    pub received: ByteCount,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
}

/// Keying material could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no keying material: the handshake is not complete, or more was requested than TLS provides"
)]
pub struct TcpExportError;

impl TcpPath {
    pub(crate) fn new(
        now: Instant,
        config: TlsPathConfig,
        channel: Channel,
        terms: PathTerms,
    ) -> Self {
        Self {
            config,
            lifecycle: TcpLifecycle::new(now, terms),
            stream: TlsStream::new(channel),
            receiver: Receiver::new(now, config.receive_buffer),
            sender: Sender::new(now, config.payload, config.control_buffer),
            pulse: Pulse::new(now),
            events: VecDeque::new(),
            counters: TlsPathCounters::default(),
        }
    }

    /// Its state, who the far end is, and why it ended.
    pub const fn lifecycle(&self) -> &TcpLifecycle {
        &self.lifecycle
    }

    pub(crate) const fn lifecycle_mut(&mut self) -> &mut TcpLifecycle {
        &mut self.lifecycle
    }

    /// Takes in bytes of the stream; returns how many. Less than all only where received datagrams
    /// wait to be polled: give the rest again afterwards.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.lifecycle.is_over() {
                // The path lingers; bytes that still come are dropped.
                return bytes.len();
            }
            if self.receiver.is_full() {
                break;
            }
            self.pulse.heard(now);
            self.take_in(now, &mut rest);
        }
        let taken = bytes.len() - rest.len();
        self.counters.received += ByteCount::of(taken);
        taken
    }

    /// Whether bytes of the stream are taken now.
    pub fn wants_read(&self) -> bool {
        match self.lifecycle.state() {
            State::Over(over) => !over.is_read_out,
            State::Handshake | State::Greeting | State::Up => !self.receiver.is_full(),
        }
    }

    /// What is to be written to the stream now; report to [`TcpPath::written`] how much was.
    pub fn poll_transmit(&mut self, now: Instant) -> &[u8] {
        while !self.lifecycle.is_over() && self.stream.has_room() {
            self.stream.collect_records();
            if !self.compose(now) {
                break;
            }
        }
        self.stream.collect_records();
        if self.lifecycle.is_up() {
            self.sender.emptied(now, self.stream.unwritten().len());
        }
        self.stream.unwritten()
    }

    /// The stream has taken the first `bytes` of what was last given to be written.
    pub fn written(&mut self, bytes: usize) {
        self.counters.sent += ByteCount::of(self.stream.written(bytes));
    }

    /// The stream has come to its end: the far end writes no more.
    pub fn end_of_stream(&mut self, now: Instant) {
        if !self.lifecycle.is_over() {
            self.end(now, self.lifecycle.end_of_stream(self.counters.received));
        }
        self.lifecycle.stop_reading();
    }

    /// The stream is broken in both directions, or could not be opened at all.
    pub fn stream_failed(&mut self, now: Instant, reason: &str) {
        if !self.lifecycle.is_over() {
            self.end(now, self.lifecycle.stream_failure(self.counters.received, reason));
        }
        self.stream.discard_unwritten();
        self.lifecycle.stop_reading();
    }

    /// When [`TcpPath::handle_timeout`] is due: the end of the time allowed for the setup, of that
    /// allowed for silence, of lingering, or an acknowledgement or a ping to be sent.
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.lifecycle.state() {
            State::Handshake | State::Greeting => Some(self.setup_end()),
            State::Up => {
                let acknowledgement = self.receiver.due().filter(|_| self.stream.has_room());
                // While bytes wait for the stream, a ping would only wait behind them.
                let ping = self
                    .stream
                    .unwritten()
                    .is_empty()
                    .then(|| self.pulse.last_sent() + self.config.keep_alive);
                [self.idle_end(), acknowledgement, ping].into_iter().flatten().min()
            }
            State::Over(over) => (!over.is_read_out || !self.stream.unwritten().is_empty())
                .then(|| over.lingers_until()),
        }
    }

    /// Does what is due. Acknowledgements and pings leave with the next [`TcpPath::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.lifecycle.state() {
            State::Handshake | State::Greeting => {
                if now >= self.setup_end() {
                    self.end(now, self.lifecycle.setup_timeout(self.counters.received));
                }
            }
            State::Up => {
                if self.idle_end().is_some_and(|at| at <= now) {
                    self.stream.close(CLOSE_PLAIN, "idle timeout, nothing received");
                    self.end(now, End::Down(DownReason::TimedOut));
                }
            }
            State::Over(over) => {
                if now >= over.lingers_until() {
                    self.lifecycle.stop_reading();
                    self.stream.discard_unwritten();
                }
            }
        }
    }

    /// Whether nothing more will be written: shut down the writing side of the stream.
    pub fn is_written_out(&self) -> bool {
        self.lifecycle.is_over() && self.stream.unwritten().is_empty()
    }

    /// Whether the stream is of no more use: close it. The path may still have events to poll.
    pub fn is_finished(&self) -> bool {
        let State::Over(over) = self.lifecycle.state() else { return false };
        over.is_read_out && self.stream.unwritten().is_empty()
    }

    /// Counters since the start.
    pub const fn counters(&self) -> TlsPathCounters {
        self.counters
    }

    /// Derives key material bound to this connection (RFC 8446 7.5): both ends get the same for the
    /// same label and context.
    ///
    /// # Errors
    /// The handshake is not complete, or `out` is longer than TLS gives.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TcpExportError> {
        let derived = self.stream.channel().export_keying_material(out, label, context);
        derived.then_some(()).ok_or(TcpExportError)
    }

    fn setup_end(&self) -> Instant {
        self.lifecycle.began() + self.config.setup_timeout
    }

    /// When the far end has been silent for too long. While this end does not read, silence says
    /// nothing about the far end.
    fn idle_end(&self) -> Option<Instant> {
        (!self.receiver.is_full()).then(|| self.pulse.last_heard() + self.config.idle_timeout)
    }

    fn take_in(&mut self, now: Instant, rest: &mut &[u8]) {
        let progress = self.stream.receive(rest);
        if matches!(self.lifecycle.state(), State::Handshake) {
            match &progress {
                Err(error) => return self.tls_failed(now, error),
                Ok(_) if self.stream.channel().is_handshaking() => {}
                Ok(_) => self.established(now),
            }
        }
        while !self.lifecycle.is_over() {
            match self.stream.poll_frame() {
                Ok(Some(frame)) => self.handle(now, frame),
                Ok(None) => break,
                Err(error) => self.fail(now, &error.to_string()),
            }
        }
        match progress {
            _ if self.lifecycle.is_over() => {}
            Ok(Progress::Open) => {}
            Ok(Progress::Ended) => {
                // An end that connected and closes before the path is up has changed its mind.
                if !self.lifecycle.is_up() && self.lifecycle.terms().is_incoming() {
                    self.end(now, End::Refused(Refusal::Withdrawn));
                }
                self.end_of_stream(now);
            }
            Err(error) => self.tls_failed(now, &error),
        }
    }

    /// TLS is set up: the keys are known, the far end's accepted.
    fn established(&mut self, now: Instant) {
        let terms = self.lifecycle.terms();
        if let Some(theirs) = self.stream.channel().other_version() {
            let refusal = refusal::of_version(terms, theirs);
            let ours = terms.versions.text();
            self.stream.close(CLOSE_VERSION, &ours);
            return self.end(now, End::Refused(refusal));
        }
        let agreed = self.stream.channel().alpn();
        let Some(version) = agreed.and_then(|name| terms.versions.of_name(name)) else {
            return self.fail(now, "no application protocol was agreed on");
        };
        self.lifecycle.on_established(version);
        TcpFrame::Greeting { purpose: self.lifecycle.purpose() }.encode(self.stream.clear());
        self.stream.seal();
        self.pulse.sent(now);
        self.pulse.ask();
    }

    fn handle(&mut self, now: Instant, frame: TcpFrame) {
        match (self.lifecycle.state(), frame) {
            (State::Greeting, frame) => self.handle_greeting(now, frame),
            (State::Up, TcpFrame::Datagram(datagram)) => {
                self.counters.datagrams_received += 1;
                self.receiver.datagram(now, datagram);
            }
            (State::Up, TcpFrame::Control(bytes)) => self.receiver.control(bytes),
            (State::Up, TcpFrame::Acknowledgement { count, delay }) => {
                if let Err(wrong) = self.sender.acknowledged(now, count, delay, &mut self.events) {
                    self.fail(now, &wrong.to_string());
                }
            }
            (State::Up, TcpFrame::Ping(number)) => self.pulse.owe(number),
            (State::Up, TcpFrame::Pong(number)) => {
                if let Some(rtt) = self.pulse.answered(now, number) {
                    self.sender.answered(now, rtt);
                }
            }
            (State::Up, TcpFrame::Close { code: CLOSE_GOES_ON, .. }) => {
                self.end(now, End::Down(DownReason::GoesOnElsewhere));
            }
            (State::Up, TcpFrame::Close { reason, .. }) => {
                self.end(now, End::Down(DownReason::ClosedByPeer(reason)));
            }
            (State::Up, TcpFrame::Greeting { .. }) => self.fail(now, "a second greeting"),
            (State::Handshake, _) => self.fail(now, BEFORE_GREETING),
            (State::Over(_), _) => {}
        }
    }

    /// The first frame: a greeting, or a refusal as a close frame.
    fn handle_greeting(&mut self, now: Instant, frame: TcpFrame) {
        let refusal = match frame {
            TcpFrame::Greeting { purpose } => {
                let peer = self.stream.channel().peer();
                self.lifecycle.on_greeting(peer, purpose);
                self.events.push_back(PathEvent::Up { payload: self.config.payload.into() });
                return;
            }
            TcpFrame::Close { code: CLOSE_VERSION, reason } => {
                refusal::of_version(self.lifecycle.terms(), &reason)
            }
            TcpFrame::Close { .. } if self.lifecycle.terms().is_incoming() => Refusal::Withdrawn,
            TcpFrame::Close { code: CLOSE_GOES_ON, .. } => Refusal::Unreachable(GOES_ON.to_owned()),
            TcpFrame::Close { reason, .. } => Refusal::Failed(reason),
            _ => return self.fail(now, BEFORE_GREETING),
        };
        self.end(now, End::Refused(refusal));
    }

    /// Encrypts one record of what is due; `false` where nothing is.
    fn compose(&mut self, now: Instant) -> bool {
        if !matches!(self.lifecycle.state(), State::Greeting | State::Up) {
            return false;
        }
        let clear = self.stream.clear();
        while let Some(frame) = self.pulse.poll(now, self.config.keep_alive) {
            frame.encode(clear);
        }
        if self.lifecycle.is_up() {
            if let Some(frame) = self.receiver.acknowledge(now) {
                frame.encode(clear);
            }
            self.sender.fill(now, clear);
        }
        let is_sealed = self.stream.seal();
        if is_sealed {
            self.pulse.sent(now);
        }
        is_sealed
    }

    /// The far end violated the protocol.
    fn fail(&mut self, now: Instant, what: &str) {
        let reason = format!("protocol error from the far end: {what}");
        self.stream.close(CLOSE_PLAIN, &reason);
        self.end(now, self.lifecycle.failure(reason));
    }

    /// TLS has ended the connection; its alert is on the way.
    fn tls_failed(&mut self, now: Instant, error: &rustls::Error) {
        let refused_key = self.stream.channel().take_refused();
        let end = if self.lifecycle.is_up() {
            End::Down(DownReason::Failed(refusal::shortened(&error.to_string())))
        } else {
            self.lifecycle.on_refused_key(refused_key);
            End::Refused(refusal::of_error(error, refused_key, self.lifecycle.terms()))
        };
        self.end(now, end);
    }

    pub(crate) fn end(&mut self, now: Instant, end: End) {
        self.stream.collect_records();
        self.sender.give_up(&mut self.events);
        self.lifecycle.end(now, end);
    }
}

const BEFORE_GREETING: &str = "a frame before the greeting";

/// Of an IPv4 packet of 1500 bytes, TCP with time stamps leaves 1448, and TLS takes 22 of 16 KiB
/// and a few.
const PACKET: (u64, u64) = (1_500, 1_446);
