//! The keys that the centre may show.

use skyhaul_quic::Fingerprint;
use std::collections::VecDeque;

/// The keys of the centre: each is expected in turn, until one is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CentreKeys(VecDeque<Fingerprint>);

impl CentreKeys {
    /// At least one.
    pub fn new(keys: impl Iterator<Item = Fingerprint>) -> Self {
        Self(keys.collect())
    }

    /// The one that is expected.
    pub fn current(&self) -> Fingerprint {
        *self.0.front().expect("a configuration has at least one")
    }

    /// The far end refused, or showed another key: the next one is expected.
    pub(super) fn refused(&mut self) {
        self.0.rotate_left(self.0.len().min(1));
    }
}
