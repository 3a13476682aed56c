//! Why a handshake failed, in words that say who must act.

use crate::Fingerprint;

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A caller's key is not trusted here.
    #[error(
        "the caller's key is not trusted: if it should be, add its fingerprint to the trusted peers"
    )]
    UntrustedKey,
    /// The node called has another key than expected.
    #[error("the far end's key is not the expected {expected}: check its address and fingerprint")]
    WrongKey {
        /// The key that was expected.
        expected: Fingerprint,
    },
    /// The node called does not trust our key.
    #[error("the far end does not trust our key: add {ours} to its trusted peers")]
    OwnKeyUntrusted {
        /// Our key.
        ours: Fingerprint,
    },
    /// The two nodes use different versions of the protocol.
    #[error("this node uses {ours}, the far end {theirs}: install the same release on both")]
    Version {
        /// The protocol name this node offers.
        ours: String,
        /// The protocol name the far end offers.
        theirs: String,
    },
    /// More handshakes are in progress than are allowed at a time.
    #[error("too many handshakes at a time: try again later")]
    Busy,
    /// The connecting node withdrew during the handshake, without an error: another of its attempts
    /// succeeded first, or it only tested the connection.
    #[error("the caller withdrew the connection during the handshake")]
    Withdrawn,
    /// The handshake took longer than allowed.
    #[error(
        "the handshake took too long: the caller is too slow, or the line loses nearly all packets"
    )]
    TooSlow,
    /// No answer arrived.
    #[error(
        "no answer from the far end: check its address, that it runs, and that no firewall blocks \
        UDP (TCP for a TLS path)"
    )]
    NoAnswer,
    /// The system found no route, or nothing listens there.
    #[error(
        "the far end cannot be reached ({0}): check its address, that it runs, and that no \
        firewall blocks TCP"
    )]
    Unreachable(String),
    /// It was closed here during the handshake.
    #[error("closed here during the handshake")]
    ClosedHere,
    /// Anything else, in the words of the state machine.
    #[error("the handshake failed: {0}")]
    Failed(String),
}
