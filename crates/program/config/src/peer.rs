//! The key that the other end must show.

use crate::name::from_text;
use skyhaul_quic::{Fingerprint, FingerprintError};
use std::str::FromStr;

/// The fingerprint of the other end's public key.
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
