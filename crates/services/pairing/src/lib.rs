//! First contact of two nodes that do not know each other's keys. No IO.
//!
//! One end draws a [`PairingCode`] and waits ([`PairingDesk`]); the other is told the code by a
//! person and connects ([`PairingCall`]). SPAKE2 turns the code into a key that only holders of the
//! same code share; who does not know the code learns nothing from the exchange, and can test one
//! guess by it. Each end then proves the key over both nodes' cards (name, fingerprint, addresses)
//! and all earlier messages. docs/reference/wire.md has the messages.
//!
//! A code has 24 bits beside its number. It is void after one wrong proof, and a desk ends after
//! [`TRIES_MAX`] of them: a guesser succeeds once in more than three million attempts of a desk.
//! That is why a short code is enough.
//!
//! ```
//! use skyhaul_identity::Identity;
//! use skyhaul_pairing::{PairingCall, PairingCard, PairingDesk, PairingEvent, PairingStep};
//! use skyhaul_units::Instant;
//!
//! let card = |name: &str, seed| -> Result<PairingCard, Box<dyn std::error::Error>> {
//!     Ok(PairingCard::new(name, Identity::from_seed(&[seed; 32])?.fingerprint(), [])?)
//! };
//! let now = Instant::ZERO;
//! let mut desk = PairingDesk::new(now, card("far", 1)?, [7; 32]);
//! let mut call = PairingCall::new(now, desk.code(), card("near", 2)?, [8; 32]);
//! desk.enter(now, 0);
//! let mut known = Vec::new();
//! while known.len() < 2 {
//!     while let Some(step) = call.poll() {
//!         match step {
//!             PairingStep::Send(bytes) => desk.handle(now, 0, &bytes),
//!             PairingStep::Paired(card) => known.push(card.name().to_owned()),
//!             PairingStep::Failed(failure) => return Err(failure.into()),
//!         }
//!     }
//!     while let Some(event) = desk.poll() {
//!         match event {
//!             PairingEvent::Send { bytes, .. } => call.handle(now, &bytes),
//!             PairingEvent::Paired(card) => known.push(card.name().to_owned()),
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(known, ["far", "near"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod card;
mod code;
mod desk;
mod key;
mod message;
mod words;

pub use call::{PairingCall, PairingFailure, PairingStep};
pub use card::{PairingCard, PairingCardError};
pub use code::{PairingCode, PairingCodeError};
pub use desk::{
    CODE_LIFE, PairingDesk, PairingEnd, PairingEvent, PairingVisitor, TRIES_MAX, VISITORS_MAX,
};
pub use message::{PAIRING_MESSAGE_MAX, PairingMessage, PairingRefusal, PairingWireError};
