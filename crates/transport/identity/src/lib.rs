//! Node identities, and TLS 1.3 between nodes that know each other by their keys. No IO.
//!
//! A node has one Ed25519 key for all its connections. Others know it by the key's [`Fingerprint`];
//! there are no certificates, names or dates. Paths over QUIC and over TCP take their TLS
//! configuration from here, so that both accept and refuse the same keys for the same reasons.
//!
//! ```
//! use skyhaul_identity::Identity;
//!
//! let station = Identity::from_seed(&[1; 32])?;
//! assert!(station.fingerprint().to_string().starts_with("SHA256:"));
//! # Ok::<(), skyhaul_identity::IdentityError>(())
//! ```

mod identity;
mod key_keeper;
mod keying;
mod known_keys;
mod one_way;
mod own_key;
mod refusal;
mod succession;
mod tls;
#[cfg(test)]
mod vectors;

pub use identity::{Fingerprint, FingerprintError, Identity, IdentityError};
pub use key_keeper::{
    KeyBirth, KeyKeeper, KeyNews, KeyOrderError, KeyRecord, KeyStore, Rotation, StoredKeys,
};
pub use keying::{Keying, ProvenBy};
pub use known_keys::{KeyChange, KeyRefusal, KnownKeys, NextKey, Revocation};
pub use one_way::{
    ONE_WAY_SEAL, OneWayKey, OneWayKeyError, OneWaySession, Opened, Opener, Sealer, Unopened,
};
pub use own_key::OwnKey;
pub use refusal::Refusal;
pub use succession::{KeyStage, KeyTalk, KeyTalkError, Succession};
pub use tls::{RefusedKey, Trust, client_config, presented_key, server_config};
