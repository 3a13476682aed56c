//! What a node brings to a handshake, and what a path keeps of it to explain a refusal.

use skyhaul_identity::{Fingerprint, OwnKey, Trust};
use skyhaul_transport::ProtocolVersions;
use std::sync::Arc;

/// This node's side of every handshake.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) identity: OwnKey,
    pub(crate) trust: Arc<Trust>,
    /// The versions spoken here.
    pub(crate) versions: ProtocolVersions,
}

impl Terms {
    /// For one path. `expected` is the key that the far end must have, on connections opened here.
    pub(crate) fn of_path(&self, expected: Option<Fingerprint>) -> PathTerms {
        PathTerms { ours: self.identity.fingerprint(), expected, versions: self.versions }
    }
}

/// What a path must know to say why it was refused.
#[derive(Debug)]
pub(crate) struct PathTerms {
    pub(crate) ours: Fingerprint,
    /// The key that the far end must have, on connections opened here.
    pub(crate) expected: Option<Fingerprint>,
    pub(crate) versions: ProtocolVersions,
}

impl PathTerms {
    /// Whether the far end opened the connection.
    pub(crate) const fn is_incoming(&self) -> bool {
        self.expected.is_none()
    }
}
