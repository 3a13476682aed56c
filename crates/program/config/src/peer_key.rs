//! The keys of another node.

use crate::name::from_text;
use skyhaul_quic::{Fingerprint, FingerprintError};
use std::collections::BTreeSet;
use std::str::FromStr;

/// The fingerprint of another node's public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(Fingerprint);

impl PeerKey {
    /// As the path's set-up takes it.
    pub const fn fingerprint(self) -> Fingerprint {
        self.0
    }
}

impl FromStr for PeerKey {
    type Err = FingerprintError;
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        text.parse().map(Self)
    }
}
impl std::fmt::Display for PeerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

from_text!(PeerKey);

/// The keys of a node, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerKeys(Vec<Fingerprint>);

impl PeerKeys {
    /// Of these, without repetition.
    ///
    /// # Errors
    /// There is none, or there are more than 8.
    pub fn new(keys: Vec<Fingerprint>) -> Result<Self, String> {
        let mut known = BTreeSet::new();
        let unique: Vec<Fingerprint> = keys.into_iter().filter(|key| known.insert(*key)).collect();
        match unique.len() {
            0 => Err("there is no fingerprint; write the one that `skyhaul keygen FILE --show` \
                      prints at that node"
                .to_owned()),
            1..=KEYS_MAX => Ok(Self(unique)),
            many => Err(format!("there are {many} fingerprints; write at most {KEYS_MAX}")),
        }
    }

    /// In the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Fingerprint> {
        self.0.iter().copied()
    }
}

impl<'de> serde::Deserialize<'de> for PeerKeys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys: Vec<PeerKey> = <Vec<_> as serde::Deserialize>::deserialize(deserializer)?;
        let keys = keys.into_iter().map(PeerKey::fingerprint).collect();
        Self::new(keys).map_err(serde::de::Error::custom)
    }
}

/// The current key, the next, and some that were not removed.
const KEYS_MAX: usize = 8;
