//! The waiting end: codes, the time that they are valid, and all connections to it.
//!
//! ```text
//!   enters ─ Hello ─► Reply ─► Greeted ─ Proof ─► Answer ─► Proved ─ Done ─► paired
//!                             │ wrong: the code is void, a new one is drawn
//!   A Hello or Proof for a code that is not current: refused, and no try
//! ```
//!
//! Several visitors may be here at a time, so that one that says nothing is in nobody's way. A code
//! is for one proof: the first that comes uses it up, right or wrong.

use crate::call::with_card;
use crate::card::PairingCard;
use crate::code::{NUMBER_MAX, PairingCode, WORDS_IN_CODE};
use crate::key::{PairingKey, PairingProofBy, PairingRandom, PairingStart};
use crate::message::{PairingInbox, PairingMessage, PairingRefusal, PairingWireError};
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Names a connection to the desk; the caller chooses it.
pub type PairingVisitor = u64;

/// Waits for the node that has the code.
pub struct PairingDesk {
    own: PairingCard,
    random: PairingRandom,
    code: PairingCode,
    /// Whether a proof has used the code up.
    is_used: bool,
    /// When the desk closes.
    until: Instant,
    tries: u32,
    visits: Vec<Visit>,
    events: VecDeque<PairingEvent>,
    is_over: bool,
}

/// What the owner of the desk has to do, or learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairingEvent {
    /// Send these bytes.
    Send {
        /// To this visitor.
        visitor: PairingVisitor,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Close the connection, when what was to be sent is sent.
    Close {
        /// This visitor's.
        visitor: PairingVisitor,
    },
    /// A visitor did not have the code; [`PairingDesk::code`] is a new one.
    WrongCode {
        /// Who.
        visitor: PairingVisitor,
        /// Codes that are still drawn.
        left: u32,
    },
    /// A visitor with the right code vanished before it accepted; the code is a new one.
    Vanished {
        /// Who.
        visitor: PairingVisitor,
    },
    /// A node has proved the code and accepted this one: keep its card. The desk is over.
    Paired(PairingCard),
    /// The desk is over.
    Over(PairingEnd),
}

/// Why a desk closed without a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingEnd {
    /// Nobody came in time.
    #[error("no node was paired within {} minutes; start it again", CODE_LIFE.as_millis() / 60_000)]
    Expired,
    /// Too many wrong codes.
    #[error(
        "{TRIES_MAX} wrong codes were tried; if that was not you, somebody else reaches this \
             address: close it, then start again"
    )]
    TooManyTries,
}

struct Visit {
    visitor: PairingVisitor,
    /// By then its next message is complete.
    until: Instant,
    inbox: PairingInbox,
    transcript: Vec<u8>,
    state: VisitState,
}

enum VisitState {
    Entered,
    Greeted { key: PairingKey, number: u8 },
    Proved { key: PairingKey, card: PairingCard },
}

/// What becomes of a visit.
enum Verdict {
    Stays(VisitState),
    Refused(PairingRefusal),
    /// It had its one try.
    Wrong,
    /// It has the right code, and this one does not want it.
    SameKey,
    Paired(PairingCard),
}

impl PairingDesk {
    /// Opens the desk at `now` with 32 random bytes from the system.
    pub fn new(now: Instant, own: PairingCard, seed: [u8; 32]) -> Self {
        let mut random = PairingRandom::new(seed);
        let number = random.draw()[0] % NUMBER_MAX + 1;
        let code = drawn(&mut random, number);
        Self {
            own,
            random,
            code,
            is_used: false,
            until: now + CODE_LIFE,
            tries: 0,
            visits: Vec::new(),
            events: VecDeque::new(),
            is_over: false,
        }
    }

    /// The current code.
    pub const fn code(&self) -> &PairingCode {
        &self.code
    }

    /// A connection arrived. If there are too many, the one that has waited longest without a
    /// message leaves.
    pub fn enter(&mut self, now: Instant, visitor: PairingVisitor) {
        if self.is_over {
            self.events.push_back(PairingEvent::Close { visitor });
            return;
        }
        if self.visits.len() >= VISITORS_MAX {
            let silent = |visit: &Visit| matches!(visit.state, VisitState::Entered);
            let oldest = self.visits.iter().position(silent).unwrap_or(0);
            let visit = self.visits.remove(oldest);
            self.left(visit);
        }
        self.visits.push(Visit {
            visitor,
            until: now + MESSAGE,
            inbox: PairingInbox::default(),
            transcript: Vec::new(),
            state: VisitState::Entered,
        });
    }

    /// Takes what arrived of a visitor.
    pub fn handle(&mut self, now: Instant, visitor: PairingVisitor, bytes: &[u8]) {
        let Some(place) = self.visits.iter().position(|visit| visit.visitor == visitor) else {
            return;
        };
        let mut visit = self.visits.remove(place);
        let mut outcome = visit.inbox.take(bytes);
        while let Ok(()) = outcome {
            match visit.inbox.next() {
                Ok(None) => return self.visits.insert(place, visit),
                Ok(Some((message, bytes))) => match self.message(&mut visit, message, &bytes) {
                    Some(state) => {
                        visit.until = now + MESSAGE;
                        visit.state = state;
                    }
                    None => return,
                },
                Err(error) => outcome = Err(error),
            }
        }
        if outcome == Err(PairingWireError::Kind) && visit.transcript.is_empty() {
            // Something else than this protocol, which would not understand a refusal.
            self.left(visit);
        } else {
            self.refuse(&visit, PairingRefusal::Malformed);
            self.left(visit);
        }
    }

    /// A visitor's connection ended.
    pub fn handle_closed(&mut self, visitor: PairingVisitor) {
        if let Some(place) = self.visits.iter().position(|visit| visit.visitor == visitor) {
            let visit = self.visits.remove(place);
            self.left(visit);
        }
    }

    /// Sends those away that are too slow, and closes the desk when its time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(place) = self.visits.iter().position(|visit| visit.until <= now) {
            let visit = self.visits.remove(place);
            self.left(visit);
        }
        // Who has proved the code in time may accept.
        if now >= self.until && !self.is_used {
            self.end(PairingEvent::Over(PairingEnd::Expired));
        }
    }

    /// When to call [`Self::handle_timeout`]; `None` once the desk is over.
    pub fn next_timeout(&self) -> Option<Instant> {
        let visits = self.visits.iter().map(|visit| visit.until);
        (!self.is_over).then(|| visits.chain((!self.is_used).then_some(self.until)).min()).flatten()
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<PairingEvent> {
        self.events.pop_front()
    }

    /// The state after a message; `None` if the visit is over.
    fn message(
        &mut self,
        visit: &mut Visit,
        message: PairingMessage,
        bytes: &[u8],
    ) -> Option<VisitState> {
        let state = std::mem::replace(&mut visit.state, VisitState::Entered);
        let has_proved = matches!(state, VisitState::Proved { .. });
        let verdict = match (state, message) {
            (VisitState::Entered, PairingMessage::Hello { number, share }) => {
                visit.transcript.extend_from_slice(bytes);
                self.greet(visit, number, &share)
            }
            (VisitState::Greeted { key, number }, PairingMessage::Proof { card, proof }) => {
                if self.is_used || number != self.code.number() {
                    Verdict::Refused(PairingRefusal::OldCode)
                } else {
                    self.is_used = true;
                    let proved = with_card(&visit.transcript, &card);
                    match key.is_proved(PairingProofBy::Connecting, &proved, &proof) {
                        false => Verdict::Wrong,
                        true if card.fingerprint() == self.own.fingerprint() => Verdict::SameKey,
                        true => {
                            visit.transcript.extend_from_slice(bytes);
                            self.answer(visit, key, card)
                        }
                    }
                }
            }
            (VisitState::Proved { key, card }, PairingMessage::Done { proof }) => {
                match key.is_proved(PairingProofBy::Done, &visit.transcript, &proof) {
                    true => Verdict::Paired(card),
                    false => Verdict::Wrong,
                }
            }
            _ if has_proved => Verdict::Wrong,
            _ => Verdict::Refused(PairingRefusal::Malformed),
        };
        self.carry_out(visit, verdict)
    }

    fn carry_out(&mut self, visit: &Visit, verdict: Verdict) -> Option<VisitState> {
        let visitor = visit.visitor;
        match verdict {
            Verdict::Stays(state) => return Some(state),
            Verdict::Refused(reason) => {
                self.refuse(visit, reason);
                self.events.push_back(PairingEvent::Close { visitor });
            }
            Verdict::Wrong => {
                self.refuse(visit, PairingRefusal::WrongCode);
                self.events.push_back(PairingEvent::Close { visitor });
                self.tries += 1;
                if self.tries >= TRIES_MAX {
                    self.end(PairingEvent::Over(PairingEnd::TooManyTries));
                } else {
                    self.renew();
                    let left = TRIES_MAX - self.tries;
                    self.events.push_back(PairingEvent::WrongCode { visitor, left });
                }
            }
            Verdict::SameKey => {
                self.refuse(visit, PairingRefusal::SameKey);
                self.events.push_back(PairingEvent::Close { visitor });
                self.renew();
                self.events.push_back(PairingEvent::Vanished { visitor });
            }
            Verdict::Paired(card) => {
                self.events.push_back(PairingEvent::Close { visitor });
                self.end(PairingEvent::Paired(card));
            }
        }
        None
    }

    /// The share of the current code, for one who was given a code of this number.
    fn greet(&mut self, visit: &mut Visit, number: u8, theirs: &[u8; 33]) -> Verdict {
        if self.is_used || number != self.code.number() {
            return Verdict::Refused(PairingRefusal::OldCode);
        }
        let (start, share) = PairingStart::listening(&self.code, self.random.draw());
        let Some(key) = start.finish(theirs) else {
            return Verdict::Refused(PairingRefusal::Malformed);
        };
        let bytes = PairingMessage::Reply { share }.to_bytes();
        visit.transcript.extend_from_slice(&bytes);
        self.events.push_back(PairingEvent::Send { visitor: visit.visitor, bytes });
        Verdict::Stays(VisitState::Greeted { key, number })
    }

    fn answer(&mut self, visit: &mut Visit, key: PairingKey, theirs: PairingCard) -> Verdict {
        let card = self.own.clone();
        let proof = key.prove(PairingProofBy::Listening, &with_card(&visit.transcript, &card));
        let bytes = PairingMessage::Answer { card, proof }.to_bytes();
        visit.transcript.extend_from_slice(&bytes);
        self.events.push_back(PairingEvent::Send { visitor: visit.visitor, bytes });
        Verdict::Stays(VisitState::Proved { key, card: theirs })
    }

    fn refuse(&mut self, visit: &Visit, reason: PairingRefusal) {
        let bytes = PairingMessage::Refuse(reason).to_bytes();
        self.events.push_back(PairingEvent::Send { visitor: visit.visitor, bytes });
    }

    /// A visit that is taken out ends.
    fn left(&mut self, visit: Visit) {
        let visitor = visit.visitor;
        self.events.push_back(PairingEvent::Close { visitor });
        if matches!(visit.state, VisitState::Proved { .. }) {
            self.renew();
            self.events.push_back(PairingEvent::Vanished { visitor });
        }
    }

    /// The code is void; the next has another number.
    fn renew(&mut self) {
        let number = self.code.number() % NUMBER_MAX + 1;
        self.code = drawn(&mut self.random, number);
        self.is_used = false;
    }

    fn end(&mut self, last: PairingEvent) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        for visit in self.visits.drain(..) {
            self.events.push_back(PairingEvent::Close { visitor: visit.visitor });
        }
        self.events.push_back(last);
    }
}

fn drawn(random: &mut PairingRandom, number: u8) -> PairingCode {
    let mut words = [0; WORDS_IN_CODE];
    words.copy_from_slice(&random.draw()[..WORDS_IN_CODE]);
    PairingCode::new(number, words)
}

/// How long a desk waits: two people on the telephone.
pub const CODE_LIFE: Duration = Duration::from_secs(600);
/// Wrong codes until a desk closes: a person mistypes once or twice.
pub const TRIES_MAX: u32 = 5;
/// Connections at a time; each holds at most two messages.
pub const VISITORS_MAX: usize = 16;
/// For each message: three round trips of 660 ms with losses. Who says nothing leaves then.
const MESSAGE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
