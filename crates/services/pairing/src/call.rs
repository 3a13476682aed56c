//! The connecting end of an exchange.
//!
//! ```text
//!   Hello ─► AwaitingReply ─ Reply ─► Proof ─► AwaitingAnswer ─ Answer, proved ─► Done, paired
//!   Refuse, a wrong proof, no message, the end of the connection or of the time: failed
//! ```

use crate::card::PairingCard;
use crate::code::PairingCode;
use crate::key::{PairingKey, PairingProofBy, PairingRandom, PairingStart};
use crate::message::{PairingInbox, PairingMessage, PairingRefusal, PairingWireError};
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// One attempt to pair with a waiting node.
pub struct PairingCall {
    state: CallState,
    own: PairingCard,
    /// All messages so far, as they were sent.
    transcript: Vec<u8>,
    inbox: PairingInbox,
    until: Instant,
    steps: VecDeque<PairingStep>,
}

/// What the caller has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairingStep {
    /// Send these bytes.
    Send(Vec<u8>),
    /// The other node has the code: keep its card. Close when all is sent.
    Paired(PairingCard),
    /// Give up.
    Failed(PairingFailure),
}

/// Why there is no pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingFailure {
    /// The other end refused.
    #[error(transparent)]
    Refused(#[from] PairingRefusal),
    /// It sent something else.
    #[error(
        "the other end is no waiting `skyhaul pair` ({0}); compare the address, and install \
             the same release at both ends"
    )]
    Malformed(#[from] PairingWireError),
    /// It does not have the code.
    #[error(
        "the other end does not know the code; another machine may have answered in its \
             place: let it draw a new code, and compare the address"
    )]
    WrongAnswer,
    /// It has this node's key.
    #[error("the other end has the same key as this one; give each machine a key of its own")]
    SameKey,
    /// It does not go on.
    #[error("the other end does not answer; check that `skyhaul pair` still waits there")]
    TooSlow,
    /// It closed the connection.
    #[error("the other end closed the connection; check that `skyhaul pair` still waits there")]
    Closed,
}

enum CallState {
    AwaitingReply(PairingStart),
    AwaitingAnswer(PairingKey),
    Over,
}

impl PairingCall {
    /// Begins at `now` with 32 random bytes from the system; connect before, and send what
    /// [`Self::poll`] gives.
    pub fn new(now: Instant, code: &PairingCode, own: PairingCard, seed: [u8; 32]) -> Self {
        let random = PairingRandom::new(seed).draw();
        let (start, share) = PairingStart::connecting(code, random);
        let hello = PairingMessage::Hello { number: code.number(), share }.to_bytes();
        Self {
            state: CallState::AwaitingReply(start),
            own,
            transcript: hello.clone(),
            inbox: PairingInbox::default(),
            until: now + ANSWER,
            steps: VecDeque::from([PairingStep::Send(hello)]),
        }
    }

    /// Takes what arrived.
    pub fn handle(&mut self, now: Instant, bytes: &[u8]) {
        if let Err(error) = self.inbox.take(bytes) {
            self.fail(error.into());
        }
        while !self.is_over() {
            match self.inbox.next() {
                Ok(None) => return,
                Ok(Some((message, bytes))) => {
                    self.until = now + ANSWER;
                    self.message(message, &bytes);
                }
                Err(error) => self.fail(error.into()),
            }
        }
    }

    /// The other end closed the connection.
    pub fn handle_closed(&mut self) {
        self.fail(PairingFailure::Closed);
    }

    /// Looks whether the other end is too slow.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.until {
            self.fail(PairingFailure::TooSlow);
        }
    }

    /// When the other end is too slow; `None` once the attempt is over.
    pub fn next_timeout(&self) -> Option<Instant> {
        (!self.is_over()).then_some(self.until)
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<PairingStep> {
        self.steps.pop_front()
    }

    const fn is_over(&self) -> bool {
        matches!(self.state, CallState::Over)
    }

    fn fail(&mut self, failure: PairingFailure) {
        if !self.is_over() {
            self.state = CallState::Over;
            self.steps.push_back(PairingStep::Failed(failure));
        }
    }

    fn message(&mut self, message: PairingMessage, bytes: &[u8]) {
        match (std::mem::replace(&mut self.state, CallState::Over), message) {
            (_, PairingMessage::Refuse(reason)) => {
                self.steps.push_back(PairingStep::Failed(reason.into()));
            }
            (CallState::AwaitingReply(start), PairingMessage::Reply { share }) => {
                self.transcript.extend_from_slice(bytes);
                match start.finish(&share) {
                    Some(key) => self.prove(key),
                    None => self.give_up(PairingWireError::Kind.into()),
                }
            }
            (CallState::AwaitingAnswer(key), PairingMessage::Answer { card, proof }) => {
                let by = PairingProofBy::Listening;
                if !key.is_proved(by, &with_card(&self.transcript, &card), &proof) {
                    self.give_up(PairingFailure::WrongAnswer);
                } else if card.fingerprint() == self.own.fingerprint() {
                    self.give_up(PairingFailure::SameKey);
                } else {
                    self.transcript.extend_from_slice(bytes);
                    let proof = key.prove(PairingProofBy::Done, &self.transcript);
                    let done = PairingMessage::Done { proof }.to_bytes();
                    self.steps.push_back(PairingStep::Send(done));
                    self.steps.push_back(PairingStep::Paired(card));
                }
            }
            _ => self.give_up(PairingWireError::Kind.into()),
        }
    }

    fn prove(&mut self, key: PairingKey) {
        let card = self.own.clone();
        let proof = key.prove(PairingProofBy::Connecting, &with_card(&self.transcript, &card));
        let bytes = PairingMessage::Proof { card, proof }.to_bytes();
        self.transcript.extend_from_slice(&bytes);
        self.steps.push_back(PairingStep::Send(bytes));
        self.state = CallState::AwaitingAnswer(key);
    }

    /// The state is over already.
    fn give_up(&mut self, failure: PairingFailure) {
        self.steps.push_back(PairingStep::Failed(failure));
    }
}

/// What a proof that comes with a card is over.
pub(crate) fn with_card(transcript: &[u8], card: &PairingCard) -> Vec<u8> {
    let mut all = transcript.to_vec();
    card.write(&mut all);
    all
}

/// For an answer: several round trips of 660 ms, and a listening end that is busy.
const ANSWER: Duration = Duration::from_secs(10);
