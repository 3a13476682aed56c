//! Where a path is between the beginning of its setup and its end.
//!
//! ```text
//!             TLS is set up here        the far end's greeting has come
//!   Handshake ──────────────────► Greeting ──────────────────────────► Up
//!     │                             │                                  │
//!     └─────────────────────────────┴──► Over ◄── closed, failed ◄─────┘
//! ```
//!
//! The TLS of the end that connects is complete before the far end has checked its key, so only the
//! greeting, which is sent when TLS is complete, shows that the key was accepted. After its end the
//! path lingers until its last bytes have been read.

use crate::refusal;
use crate::terms::PathTerms;
use skyhaul_identity::{Fingerprint, Refusal};
use skyhaul_sessions::ConnectionPurpose;
use skyhaul_transport::DownReason;
use skyhaul_units::{ByteCount, Duration, Instant};
use std::sync::Arc;

/// A path's state, who the far end is, and why the path ended.
#[derive(Debug)]
pub struct TcpLifecycle {
    state: State,
    terms: PathTerms,
    began: Instant,
    peer: Option<Fingerprint>,
    refusal: Option<Refusal>,
    /// Held while an incoming connection is being set up: the endpoint counts the references.
    setup: Option<Arc<()>>,
    purpose: ConnectionPurpose,
    version: Option<u16>,
}

#[derive(Debug)]
pub(crate) enum State {
    Handshake,
    Greeting,
    Up,
    Over(Over),
}

/// What is left to do after the end.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) reason: DownReason,
    pub(crate) since: Instant,
    /// Nothing more comes from the stream.
    pub(crate) is_read_out: bool,
    /// The end has been polled.
    is_polled: bool,
}

/// How a path ends.
#[derive(Debug)]
pub(crate) enum End {
    /// It never came up.
    Refused(Refusal),
    /// It was up.
    Down(DownReason),
}

impl TcpLifecycle {
    pub(crate) const fn new(now: Instant, terms: PathTerms) -> Self {
        Self {
            state: State::Handshake,
            terms,
            began: now,
            peer: None,
            refusal: None,
            setup: None,
            purpose: ConnectionPurpose::NewSession,
            version: None,
        }
    }

    /// The far end's key: proven where the path came up, shown and refused where it did not.
    pub const fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// Whether the path is up.
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// What the connection is for, as the end that connected said. Known once the path is up.
    pub const fn purpose(&self) -> ConnectionPurpose {
        self.purpose
    }

    /// Why the path has ended, once it has.
    pub const fn end_reason(&self) -> Option<&DownReason> {
        match &self.state {
            State::Over(over) => Some(&over.reason),
            State::Handshake | State::Greeting | State::Up => None,
        }
    }

    /// Whether the end has been polled, so that there is nothing more to poll.
    pub const fn is_polled_out(&self) -> bool {
        matches!(&self.state, State::Over(Over { is_polled: true, .. }))
    }

    /// Why the path never came up, where it did not.
    pub const fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// When the setup began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) const fn terms(&self) -> &PathTerms {
        &self.terms
    }

    /// What this end connects for. Call it before the setup begins.
    pub(crate) const fn set_purpose(&mut self, purpose: ConnectionPurpose) {
        self.purpose = purpose;
    }

    /// Holds one of the endpoint's references during the setup.
    pub(crate) fn occupy(&mut self, setup: Arc<()>) {
        self.setup = Some(setup);
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// TLS is set up, and this protocol version agreed on.
    pub(crate) fn on_established(&mut self, version: u16) {
        self.state = State::Greeting;
        self.version = Some(version);
    }

    /// The protocol version that both ends speak, once TLS is set up.
    pub const fn version(&self) -> Option<u16> {
        self.version
    }

    /// The greeting of `peer` came. Only the end that connects decides what the path is for.
    pub(crate) fn on_greeting(&mut self, peer: Option<Fingerprint>, purpose: ConnectionPurpose) {
        self.state = State::Up;
        if self.terms.is_incoming() {
            self.purpose = purpose;
        }
        self.setup = None;
        self.peer = peer;
    }

    /// The key that this end refused.
    pub(crate) const fn on_refused_key(&mut self, key: Option<Fingerprint>) {
        self.peer = key;
    }

    /// The path has ended.
    pub(crate) fn end(&mut self, now: Instant, end: End) {
        let reason = match end {
            End::Down(reason) => reason,
            End::Refused(refusal) => {
                let reason = match &refusal {
                    Refusal::NoAnswer => DownReason::TimedOut,
                    Refusal::ClosedHere => DownReason::ClosedHere,
                    other => DownReason::Failed(other.to_string()),
                };
                self.refusal = Some(refusal);
                reason
            }
        };
        self.setup = None;
        self.state = State::Over(Over { reason, since: now, is_read_out: false, is_polled: false });
    }

    /// Nothing more comes from the stream.
    pub(crate) const fn stop_reading(&mut self) {
        if let State::Over(over) = &mut self.state {
            over.is_read_out = true;
        }
    }

    /// The end, once.
    pub(crate) fn poll_end(&mut self) -> Option<DownReason> {
        let State::Over(over) = &mut self.state else { return None };
        let was_polled = core::mem::replace(&mut over.is_polled, true);
        (!was_polled).then(|| over.reason.clone())
    }

    /// How the path ends where this end found a fault.
    pub(crate) fn failure(&self, reason: String) -> End {
        if self.is_up() {
            End::Down(DownReason::Failed(reason))
        } else {
            End::Refused(Refusal::Failed(reason))
        }
    }

    /// How the path ends where this end closes it.
    pub(crate) const fn closure(&self) -> End {
        if self.is_up() {
            End::Down(DownReason::ClosedHere)
        } else {
            End::Refused(Refusal::ClosedHere)
        }
    }

    /// How the path ends where the stream ends after `received` bytes.
    pub(crate) fn end_of_stream(&self, received: ByteCount) -> End {
        if self.is_up() {
            let reason = "the stream ended without a close message".to_owned();
            return End::Down(DownReason::Failed(reason));
        }
        End::Refused(match (received, self.terms.is_incoming()) {
            (ByteCount::ZERO, true) => Refusal::Withdrawn,
            (ByteCount::ZERO, false) => Refusal::Unreachable(CLOSED_UNHEARD.to_owned()),
            _ => Refusal::Failed(CLOSED_EARLY.to_owned()),
        })
    }

    /// How the path ends where the stream breaks after `received` bytes.
    pub(crate) fn stream_failure(&self, received: ByteCount, reason: &str) -> End {
        let reason = refusal::shortened(reason);
        if self.is_up() {
            return End::Down(DownReason::Failed(reason));
        }
        // Before the far end has sent anything, the fault is on the way there.
        End::Refused(match received {
            ByteCount::ZERO if self.terms.is_incoming() => Refusal::Withdrawn,
            ByteCount::ZERO => Refusal::Unreachable(reason),
            _ => Refusal::Failed(reason),
        })
    }

    /// How the path ends where its setup takes too long and `received` bytes came.
    pub(crate) fn setup_timeout(&self, received: ByteCount) -> End {
        let is_slow = self.terms.is_incoming() && received > ByteCount::ZERO;
        End::Refused(if is_slow { Refusal::TooSlow } else { Refusal::NoAnswer })
    }
}

impl Over {
    /// When the path stops lingering.
    pub(crate) fn lingers_until(&self) -> Instant {
        self.since + LINGER
    }
}

/// What a node does that has no room for the connection.
const CLOSED_UNHEARD: &str =
    "the far end closed the stream without a reason, as a node does that has too many handshakes";
/// The far end had begun the handshake.
const CLOSED_EARLY: &str = "the far end closed the stream during the handshake";

/// How long the far end may take to read the last bytes. A stream closed at once, with bytes
/// unread, may take them back (RFC 9293 3.6.1).
const LINGER: Duration = Duration::from_secs(3);
