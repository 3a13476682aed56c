//! Why an attempt to deliver ended without a delivery.

use serde::{Deserialize, Serialize};

/// What kind of failure it was: it decides what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The way there: it is tried again.
    Line,
    /// The destination has no room: it is tried again, for as long as it takes.
    Full,
    /// Login, host key or certificate: it is tried again, and an operator is told.
    Access,
    /// The published file here cannot be read, or has changed: nothing is sent.
    Source,
    /// A file of this name is there with other content: it is not touched.
    Differs,
    /// The destination does not take this name or this product: sending again changes nothing.
    Refused,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{sentence}")]
pub struct DeliveryFailure {
    /// What kind.
    pub kind: FailureKind,
    /// What was wrong, where, and what to do; with the other side's own words.
    pub sentence: String,
}

impl DeliveryFailure {
    /// Of a kind and a sentence.
    pub fn new(kind: FailureKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }
}

impl FailureKind {
    /// Whether the destination as a whole is at fault, so that no other delivery there is begun
    /// before its pause is over.
    pub const fn is_of_destination(self) -> bool {
        matches!(self, Self::Line | Self::Full | Self::Access)
    }
}
