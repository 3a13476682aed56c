//! One stream as a [`Path`].
//!
//! ```text
//!             TLS is set up here        the far end's greeting has come
//!   Handshake ──────────────────► Greeting ──────────────────────────► Up
//!     │                             │                                  │
//!     └─────────────────────────────┴──► Over ◄── closed, failed ◄─────┘
//! ```
//!
//! A caller's TLS is complete before the called end has looked at its key, so only the greeting,
//! which is sent when TLS is complete, shows that the key was accepted. After the end the stream
//! lingers until what is left to say has been read.

mod carry;

use crate::channel::{Channel, Progress};
use crate::config::TlsPathConfig;
use crate::endpoint::PathTerms;
use crate::pulse::Pulse;
use crate::receiver::Receiver;
use crate::refusal;
use crate::sender::Sender;
use crate::wire::{CLOSE_PLAIN, CLOSE_VERSION, FrameReader, TcpFrame};
use bytes::{Buf as _, Bytes, BytesMut};
use skyhaul_identity::{Fingerprint, Refusal};
use skyhaul_transport::{DownReason, Estimate, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant, Probability};
use std::collections::VecDeque;
use std::sync::Arc;

/// A path on one byte stream, sans-IO: its owner moves the bytes.
///
/// After any call, write what [`TcpPath::poll_transmit`] gives, and call
/// [`TcpPath::handle_timeout`] at
/// [`TcpPath::next_timeout`].
pub struct TcpPath {
    config: TlsPathConfig,
    terms: PathTerms,
    state: State,
    channel: Channel,
    reader: FrameReader,
    receiver: Receiver,
    sender: Sender,
    pulse: Pulse,
    /// Encrypted, for the stream. Bounded by [`MOST_UNWRITTEN`] and a record.
    unwritten: BytesMut,
    /// In clear, on its way to be encrypted; empty between calls.
    clear: Vec<u8>,
    events: VecDeque<PathEvent>,
    began: Instant,
    counters: TlsPathCounters,
    peer: Option<Fingerprint>,
    refusal: Option<Refusal>,
    /// Held during a called end's set-up.
    setup: Option<Arc<()>>,
    /// One of the two ends calls for one more path of a session.
    joins: bool,
}

#[derive(Debug)]
enum State {
    Handshake,
    Greeting,
    Up,
    Over(Over),
}

/// What is left to do after the end.
#[derive(Debug)]
struct Over {
    reason: DownReason,
    /// The end has been polled.
    told: bool,
    since: Instant,
    /// Nothing more comes from the stream.
    read_out: bool,
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
            terms,
            state: State::Handshake,
            channel,
            reader: FrameReader::default(),
            receiver: Receiver::new(now, config.receive_buffer),
            sender: Sender::new(now, config.payload, config.control_buffer),
            pulse: Pulse::new(now),
            unwritten: BytesMut::new(),
            clear: Vec::new(),
            events: VecDeque::new(),
            began: now,
            counters: TlsPathCounters::default(),
            peer: None,
            refusal: None,
            setup: None,
            joins: false,
            config,
        }
    }

    /// This end calls for one more path of a session that stands. Before the set-up has begun.
    pub(crate) const fn join(&mut self) {
        self.joins = true;
    }

    /// Since when it is being set up.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// It takes too long to be set up.
    pub(crate) fn turn_out(&mut self, now: Instant) {
        self.refuse(now, Refusal::TooSlow);
    }

    pub(crate) fn occupy(&mut self, setup: Arc<()>) {
        self.setup = Some(setup);
    }

    /// Takes in bytes of the stream; returns how many. Less than all only where received datagrams
    /// wait to be polled: give the rest again afterwards.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.is_over() {
                // It lingers; what still comes means nothing.
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
        match &self.state {
            State::Over(over) => !over.read_out,
            State::Handshake | State::Greeting | State::Up => !self.receiver.is_full(),
        }
    }

    /// What is to be written to the stream now; tell with [`TcpPath::written`] how much was.
    pub fn poll_transmit(&mut self, now: Instant) -> &[u8] {
        while !self.is_over() && self.unwritten.len() < MOST_UNWRITTEN {
            self.channel.take(&mut self.unwritten);
            if !self.compose(now) {
                break;
            }
        }
        self.channel.take(&mut self.unwritten);
        if matches!(self.state, State::Up) {
            self.sender.emptied(now, self.unwritten.len());
        }
        &self.unwritten
    }

    /// The stream has taken the first `bytes` of what was last given to be written.
    pub fn written(&mut self, bytes: usize) {
        let bytes = bytes.min(self.unwritten.len());
        self.counters.sent += ByteCount::of(bytes);
        self.unwritten.advance(bytes);
    }

    /// The stream has come to its end: the far end writes no more.
    pub fn end_of_stream(&mut self, now: Instant) {
        if self.is_over() {
            return self.read_out();
        }
        if matches!(self.state, State::Up) {
            self.end(
                now,
                DownReason::Failed("the stream ended without a close message".to_owned()),
            );
        } else {
            let is_unheard = self.counters.received == ByteCount::ZERO;
            let is_called = self.terms.expected.is_none();
            self.refuse(
                now,
                match (is_unheard, is_called) {
                    (true, true) => Refusal::Withdrawn,
                    (true, false) => Refusal::Unreachable(WORDLESS.to_owned()),
                    (false, _) => Refusal::Failed(EARLY.to_owned()),
                },
            );
        }
        self.read_out();
    }

    /// The far end has taken its leave.
    fn farewell_came(&mut self, now: Instant) {
        if matches!(self.state, State::Handshake | State::Greeting) && self.terms.expected.is_none()
        {
            self.refuse(now, Refusal::Withdrawn);
        }
        self.end_of_stream(now);
    }

    /// The stream is broken in both directions, or could not be had at all.
    pub fn stream_failed(&mut self, now: Instant, reason: &str) {
        if !self.is_over() {
            let reason = refusal::shortened(reason);
            if matches!(self.state, State::Up) {
                self.end(now, DownReason::Failed(reason));
            } else {
                // Before the far end has said a word, it is the way there that fails.
                let is_unheard = self.counters.received == ByteCount::ZERO;
                self.refuse(
                    now,
                    match is_unheard {
                        true if self.terms.expected.is_none() => Refusal::Withdrawn,
                        true => Refusal::Unreachable(reason),
                        false => Refusal::Failed(reason),
                    },
                );
            }
        }
        self.unwritten.clear();
        self.read_out();
    }

    /// When [`TcpPath::handle_timeout`] is due: the end of the time allowed for the set-up, of that
    /// allowed for silence, of lingering, or an acknowledgement or a sign of life to be sent.
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Handshake | State::Greeting => Some(self.began + self.config.setup_timeout),
            State::Up => {
                let may_seal = self.unwritten.len() < MOST_UNWRITTEN;
                let acknowledgement = self.receiver.due().filter(|_| may_seal);
                // While bytes wait for the stream there is nothing to add to them.
                let ping = self
                    .unwritten
                    .is_empty()
                    .then(|| self.pulse.last_sent() + self.config.keep_alive);
                [self.idle_end(), acknowledgement, ping].into_iter().flatten().min()
            }
            State::Over(over) => {
                (!over.read_out || !self.unwritten.is_empty()).then(|| over.since + LINGER)
            }
        }
    }

    /// Does what is due. Acknowledgements and signs of life leave with the next
    /// [`TcpPath::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Handshake | State::Greeting => {
                if now >= self.began + self.config.setup_timeout {
                    let is_caller =
                        self.terms.expected.is_none() && self.counters.received > ByteCount::ZERO;
                    self.refuse(now, if is_caller { Refusal::TooSlow } else { Refusal::NoAnswer });
                }
            }
            State::Up => {
                if self.idle_end().is_some_and(|at| at <= now) {
                    self.farewell(CLOSE_PLAIN, "idle timeout, nothing received");
                    self.end(now, DownReason::TimedOut);
                }
            }
            State::Over(over) => {
                if now >= over.since + LINGER {
                    over.read_out = true;
                    self.unwritten.clear();
                }
            }
        }
    }

    /// Whether nothing more will be written: shut down the writing side of the stream.
    pub fn is_written_out(&self) -> bool {
        self.is_over() && self.unwritten.is_empty()
    }

    /// Whether the stream is of no more use: close it. The path may still have events to poll.
    pub fn is_finished(&self) -> bool {
        let State::Over(over) = &self.state else { return false };
        over.read_out && self.unwritten.is_empty()
    }

    /// The far end's key: proven where the path came up, shown and refused where it did not.
    pub const fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// Whether it is up.
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// Whether it is for one more path of a session that stands, as the calling end said. Known
    /// once it is up.
    pub const fn joins(&self) -> bool {
        self.joins
    }

    /// Why it has ended, once it has.
    pub const fn end_reason(&self) -> Option<&DownReason> {
        match &self.state {
            State::Over(over) => Some(&over.reason),
            State::Handshake | State::Greeting | State::Up => None,
        }
    }

    /// Whether the end has been polled, so that there is nothing more to poll.
    pub const fn is_read_out(&self) -> bool {
        matches!(&self.state, State::Over(Over { told: true, .. }))
    }

    /// Why the path never came up, where it did not.
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
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
        let derived = self.channel.export_keying_material(out, label, context);
        derived.then_some(()).ok_or(TcpExportError)
    }

    const fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    const fn read_out(&mut self) {
        if let State::Over(over) = &mut self.state {
            over.read_out = true;
        }
    }

    /// When the far end has been silent for too long. While we do not read, its silence is ours.
    fn idle_end(&self) -> Option<Instant> {
        (!self.receiver.is_full()).then(|| self.pulse.last_heard() + self.config.idle_timeout)
    }

    fn take_in(&mut self, now: Instant, rest: &mut &[u8]) {
        let progress = self.channel.receive(rest, &mut self.reader, &mut self.unwritten);
        if matches!(self.state, State::Handshake) {
            match &progress {
                Err(error) => return self.broken(now, error),
                Ok(_) if self.channel.is_handshaking() => {}
                Ok(_) => self.established(now),
            }
        }
        while !self.is_over() {
            match self.reader.poll() {
                Ok(Some(frame)) => self.handle(now, frame),
                Ok(None) => break,
                Err(error) => self.fail(now, &error.to_string()),
            }
        }
        match progress {
            _ if self.is_over() => {}
            Ok(Progress::Open) => {}
            Ok(Progress::Ended) => self.farewell_came(now),
            Err(error) => self.broken(now, &error),
        }
    }

    /// TLS is set up: the keys are known, the far end's accepted.
    fn established(&mut self, now: Instant) {
        if let Some(theirs) = self.channel.other_version() {
            let reason = refusal::of_version(&self.terms, theirs);
            self.farewell(CLOSE_VERSION, &refusal::name(&self.terms.alpn));
            return self.refuse(now, reason);
        }
        if self.channel.alpn() != Some(&self.terms.alpn) {
            return self.fail(now, "no application protocol was agreed on");
        }
        self.state = State::Greeting;
        TcpFrame::Greeting { joins: self.joins }.encode(&mut self.clear);
        self.seal(now);
        self.pulse.ask();
    }

    fn handle(&mut self, now: Instant, frame: TcpFrame) {
        match (&self.state, frame) {
            (State::Greeting, TcpFrame::Greeting { joins }) => {
                self.state = State::Up;
                // What the call is for, the calling end says.
                self.joins |= joins && self.terms.expected.is_none();
                self.setup = None;
                self.peer = self.channel.peer();
                self.events.push_back(PathEvent::Up { payload: self.config.payload.into() });
            }
            (State::Greeting, TcpFrame::Close { code: CLOSE_VERSION, reason }) => {
                self.refuse(now, refusal::of_version(&self.terms, &reason));
            }
            (State::Greeting, TcpFrame::Close { .. }) if self.terms.expected.is_none() => {
                self.refuse(now, Refusal::Withdrawn);
            }
            (State::Greeting, TcpFrame::Close { reason, .. }) => {
                self.refuse(now, Refusal::Failed(reason));
            }
            (State::Up, TcpFrame::Datagram(datagram)) => {
                self.counters.datagrams_received += 1;
                self.receiver.datagram(now, datagram);
            }
            (State::Up, TcpFrame::Control(bytes)) => self.receiver.control(bytes),
            (State::Up, TcpFrame::Acknowledgement { count, delay }) => {
                if let Err(wrong) = self.sender.acknowledged(now, (count, delay), &mut self.events)
                {
                    self.fail(now, &wrong.to_string());
                }
            }
            (State::Up, TcpFrame::Ping(number)) => self.pulse.owe(number),
            (State::Up, TcpFrame::Pong(number)) => {
                if let Some(rtt) = self.pulse.answered(now, number) {
                    self.sender.answered(now, rtt);
                }
            }
            (State::Up, TcpFrame::Close { reason, .. }) => {
                self.end(now, DownReason::ClosedByPeer(reason));
            }
            (State::Up, TcpFrame::Greeting { .. }) => self.fail(now, "a second greeting"),
            (State::Handshake | State::Greeting, _) => {
                self.fail(now, "a frame before the greeting");
            }
            (State::Over(_), _) => {}
        }
    }

    /// Encrypts one record of what is due; `false` where nothing is.
    fn compose(&mut self, now: Instant) -> bool {
        if !matches!(self.state, State::Greeting | State::Up) {
            return false;
        }
        let silence = self.config.keep_alive;
        while let Some(frame) = self.pulse.poll(now, silence) {
            frame.encode(&mut self.clear);
        }
        if matches!(self.state, State::Up) {
            self.receiver
                .acknowledge(now)
                .into_iter()
                .for_each(|frame| frame.encode(&mut self.clear));
            self.sender.fill(now, &mut self.clear);
        }
        self.seal(now)
    }

    /// Encrypts what is in `clear`; `false` where there is nothing.
    fn seal(&mut self, now: Instant) -> bool {
        if self.clear.is_empty() {
            return false;
        }
        self.channel.seal(&self.clear);
        self.clear.clear();
        self.pulse.sent(now);
        true
    }

    /// The far end does not keep to what is agreed.
    fn fail(&mut self, now: Instant, what: &str) {
        let reason = format!("protocol error from the far end: {what}");
        self.farewell(CLOSE_PLAIN, &reason);
        match self.state {
            State::Up => self.end(now, DownReason::Failed(reason)),
            _ => self.refuse(now, Refusal::Failed(reason)),
        }
    }

    /// TLS has ended the connection; its alert is on the way.
    fn broken(&mut self, now: Instant, error: &rustls::Error) {
        let refused = self.channel.take_refused();
        if matches!(self.state, State::Up) {
            return self.end(now, DownReason::Failed(refusal::shortened(&error.to_string())));
        }
        self.peer = refused;
        self.refuse(now, refusal::of_error(error, refused, &self.terms));
    }

    /// The path never came up.
    fn refuse(&mut self, now: Instant, refusal: Refusal) {
        let reason = match &refusal {
            Refusal::NoAnswer => DownReason::TimedOut,
            Refusal::ClosedHere => DownReason::ClosedHere,
            other => DownReason::Failed(other.to_string()),
        };
        self.refusal = Some(refusal);
        self.end(now, reason);
    }

    /// The last words, once TLS is set up.
    fn farewell(&mut self, code: u8, reason: &str) {
        if !self.channel.is_handshaking() {
            TcpFrame::Close { code, reason: reason.to_owned() }.encode(&mut self.clear);
            self.channel.seal(&self.clear);
            self.clear.clear();
        }
        self.channel.say_farewell();
    }

    fn end(&mut self, now: Instant, reason: DownReason) {
        self.channel.take(&mut self.unwritten);
        self.sender.give_up(&mut self.events);
        self.setup = None;
        self.state = State::Over(Over { reason, told: false, since: now, read_out: false });
    }
}

/// What a node does that has no place for a call.
const WORDLESS: &str =
    "the far end closed the stream without a reason, as a node does that has too many handshakes";
/// It began to speak.
const EARLY: &str = "the far end closed the stream during the handshake";

/// Encrypted bytes kept for the stream: four times what one system call takes. At the bound nothing
/// more is encrypted.
const MOST_UNWRITTEN: usize = 256 * 1024;

/// How long the last words may take to be read by the far end. A stream closed at once, with bytes
/// unread, may take them back (RFC 9293 3.6.1).
const LINGER: Duration = Duration::from_secs(3);

/// Of an IPv4 packet of 1500 bytes, TCP with time stamps leaves 1448, and TLS takes 22 of 16 KiB
/// and a few.
const PACKET: (u64, u64) = (1_500, 1_446);
