//! The messages of an exchange, each with its kind and length before it.
//!
//! Reading is bounded: a length beyond that of the longest message is refused before its bytes
//! come.

use crate::card::{CARD_MAX, PairingCard, PairingCardError};
use crate::key::{PROOF, PairingShare, SHARE};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairingMessage {
    /// The connecting end begins.
    Hello {
        /// The number of the code that it was given.
        number: u8,
        /// Its share of the key.
        share: PairingShare,
    },
    /// The listening end's share.
    Reply {
        /// Its share of the key.
        share: PairingShare,
    },
    /// The connecting end's card, and the proof that it has the code.
    Proof {
        /// Who it is.
        card: PairingCard,
        /// Over all messages and the card.
        proof: [u8; PROOF],
    },
    /// The same of the listening end.
    Answer {
        /// Who it is.
        card: PairingCard,
        /// Over all messages and the card.
        proof: [u8; PROOF],
    },
    /// The connecting end has accepted the other.
    Done {
        /// Over all messages.
        proof: [u8; PROOF],
    },
    /// The listening end does not pair with this one.
    Refuse(PairingRefusal),
}

/// Why the listening end refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingRefusal {
    /// The proof is not that of the code.
    #[error("the code is wrong; the other end shows a new one")]
    WrongCode,
    /// The code of this number is not the current one.
    #[error("the code was used, replaced or has expired; type the one that the other end shows")]
    OldCode,
    /// A message was not as the protocol has it.
    #[error("the other end did not understand; install the same release at both ends")]
    Malformed,
    /// The other node has the same key.
    #[error("both ends have the same key; give each machine a key of its own")]
    SameKey,
}

/// Why bytes are no message. The connection is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingWireError {
    /// The kind is unknown: another protocol or version.
    #[error("this is not the pairing protocol of this release")]
    Kind,
    /// The length is not one that the kind has.
    #[error("a message has a wrong length")]
    Length,
    /// The card cannot be used.
    #[error(transparent)]
    Card(#[from] PairingCardError),
}

/// The longest message with its head, in bytes.
pub const PAIRING_MESSAGE_MAX: usize = HEAD + CARD_MAX + PROOF;

/// Kind and length.
const HEAD: usize = 3;
/// The first message begins with this, so that another protocol is told apart at once.
const MAGIC: &[u8; 7] = b"skypair";
const VERSION: u8 = 1;

const HELLO: u8 = 1;
const REPLY: u8 = 2;
const PROVE: u8 = 3;
const ANSWER: u8 = 4;
const DONE: u8 = 5;
const REFUSE: u8 = 6;

impl PairingMessage {
    /// The bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Hello { number, share } => {
                body.extend_from_slice(MAGIC);
                body.extend_from_slice(&[VERSION, *number]);
                body.extend_from_slice(share);
                HELLO
            }
            Self::Reply { share } => {
                body.extend_from_slice(share);
                REPLY
            }
            Self::Proof { card, proof } | Self::Answer { card, proof } => {
                body.extend_from_slice(proof);
                card.write(&mut body);
                if matches!(self, Self::Proof { .. }) { PROVE } else { ANSWER }
            }
            Self::Done { proof } => {
                body.extend_from_slice(proof);
                DONE
            }
            Self::Refuse(reason) => {
                body.push(refusal_code(*reason));
                REFUSE
            }
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The message at the beginning of `bytes` and its length; `None` until it is complete.
    ///
    /// # Errors
    /// There is no message, whatever follows.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, PairingWireError> {
        let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
        if !(HELLO..=REFUSE).contains(kind) {
            return Err(PairingWireError::Kind);
        }
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        let fits = match *kind {
            HELLO => length == MAGIC.len() + 2 + SHARE,
            REPLY => length == SHARE,
            PROVE | ANSWER => (PROOF + 1..=PROOF + CARD_MAX).contains(&length),
            DONE => length == PROOF,
            _ => length == 1,
        };
        if !fits {
            return Err(PairingWireError::Length);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        Ok(Some((Self::of(*kind, body)?, HEAD + length)))
    }

    fn of(kind: u8, body: &[u8]) -> Result<Self, PairingWireError> {
        let proof = || body.first_chunk().copied().ok_or(PairingWireError::Length);
        let card = || PairingCard::read(body.get(PROOF..).unwrap_or_default());
        Ok(match kind {
            HELLO => {
                let rest = body.strip_prefix(MAGIC).ok_or(PairingWireError::Kind)?;
                let [VERSION, number, share @ ..] = rest else {
                    return Err(PairingWireError::Kind);
                };
                let share = share.try_into().map_err(|_| PairingWireError::Length)?;
                Self::Hello { number: *number, share }
            }
            REPLY => Self::Reply { share: body.try_into().map_err(|_| PairingWireError::Length)? },
            PROVE => Self::Proof { card: card()?, proof: proof()? },
            ANSWER => Self::Answer { card: card()?, proof: proof()? },
            DONE => Self::Done { proof: proof()? },
            _ => Self::Refuse(refusal_of(body.first().copied())?),
        })
    }
}

const fn refusal_code(reason: PairingRefusal) -> u8 {
    match reason {
        PairingRefusal::WrongCode => 1,
        PairingRefusal::OldCode => 2,
        PairingRefusal::Malformed => 3,
        PairingRefusal::SameKey => 4,
    }
}

const fn refusal_of(code: Option<u8>) -> Result<PairingRefusal, PairingWireError> {
    Ok(match code {
        Some(1) => PairingRefusal::WrongCode,
        Some(2) => PairingRefusal::OldCode,
        Some(3) => PairingRefusal::Malformed,
        Some(4) => PairingRefusal::SameKey,
        _ => return Err(PairingWireError::Kind),
    })
}

/// What has arrived of the next message.
#[derive(Debug, Default)]
pub struct PairingInbox {
    bytes: Vec<u8>,
}

impl PairingInbox {
    /// Takes what arrived.
    ///
    /// # Errors
    /// It is more than a message, which no end sends without an answer.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), PairingWireError> {
        if self.bytes.len() + bytes.len() > PAIRING_MESSAGE_MAX {
            return Err(PairingWireError::Length);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next message with its bytes.
    ///
    /// # Errors
    /// What arrived is none.
    pub fn next(&mut self) -> Result<Option<(PairingMessage, Vec<u8>)>, PairingWireError> {
        let Some((message, length)) = PairingMessage::read(&self.bytes)? else { return Ok(None) };
        let rest = self.bytes.split_off(length);
        Ok(Some((message, std::mem::replace(&mut self.bytes, rest))))
    }
}
