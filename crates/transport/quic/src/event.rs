//! Translation of the state machine's errors and datagrams to this program's types.

use crate::Refusal;
use noq_proto::{ConnectionError, EcnCodepoint};
use skyhaul_identity::Fingerprint;
use skyhaul_sessions::{Ecn, Transmit};
use skyhaul_transport::{DownReason, GOES_ON, ProtocolVersions};
use skyhaul_units::printable;

/// The codepoint that the state machine knows.
pub(crate) const fn codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

/// What the state machine wants sent.
pub(crate) fn transmit(transmit: &noq_proto::Transmit) -> Transmit {
    let ecn = transmit.ecn.map(|ecn| match ecn {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    });
    Transmit {
        to: transmit.destination,
        size: transmit.size,
        segment_size: transmit.segment_size,
        ecn,
        src_ip: transmit.src_ip,
    }
}

/// TLS alert 49, access_denied (RFC 8446 6.2), as a QUIC error code (RFC 9001 4.8).
const ACCESS_DENIED: u64 = 0x131;

/// Application close code: the reason names the protocol versions that the closing end speaks.
pub(crate) const CLOSE_VERSION: u32 = 1;

/// Application close code: the node goes on in another process, which takes calls at once.
pub(crate) const CLOSE_GOES_ON: u32 = 2;

/// Why a handshake failed, as far as the error of the state machine tells.
pub(crate) fn refusal(
    error: &ConnectionError,
    ours: Fingerprint,
    versions: ProtocolVersions,
) -> Refusal {
    let text = |bytes: &[u8]| shortened(&String::from_utf8_lossy(bytes));
    match error {
        ConnectionError::ConnectionClosed(close)
            if u64::from(close.error_code) == ACCESS_DENIED =>
        {
            Refusal::OwnKeyUntrusted { ours }
        }
        ConnectionError::ConnectionClosed(close)
            if close.error_code == noq_proto::TransportErrorCode::CONNECTION_REFUSED =>
        {
            Refusal::Busy
        }
        ConnectionError::ApplicationClosed(close) if close.error_code == CLOSE_VERSION.into() => {
            Refusal::Version { ours: versions.text(), theirs: text(&close.reason) }
        }
        ConnectionError::ApplicationClosed(close) if close.error_code == CLOSE_GOES_ON.into() => {
            Refusal::Unreachable(GOES_ON.to_owned())
        }
        ConnectionError::TimedOut => Refusal::NoAnswer,
        ConnectionError::LocallyClosed => Refusal::ClosedHere,
        other => Refusal::Failed(text(other.to_string().as_bytes())),
    }
}

/// What is kept of a text that the far end may have had a hand in.
fn shortened(text: &str) -> String {
    printable(text, MAX_REASON)
}

/// Whether the far end, which called, has closed before the path was up, finding no fault.
pub(crate) fn is_withdrawn(error: &ConnectionError) -> bool {
    match error {
        // What it says before it may speak as an application (RFC 9000 10.2.3).
        ConnectionError::ConnectionClosed(close) => {
            close.error_code == noq_proto::TransportErrorCode::APPLICATION_ERROR
        }
        ConnectionError::ApplicationClosed(_) => true,
        _ => false,
    }
}

/// Why a path ended, from the error of the state machine.
pub(crate) fn down_reason(error: &ConnectionError) -> DownReason {
    match error {
        ConnectionError::TimedOut => DownReason::TimedOut,
        ConnectionError::LocallyClosed => DownReason::ClosedHere,
        ConnectionError::ApplicationClosed(close) if close.error_code == CLOSE_GOES_ON.into() => {
            DownReason::GoesOnElsewhere
        }
        ConnectionError::ApplicationClosed(close) => {
            DownReason::ClosedByPeer(shortened(&String::from_utf8_lossy(&close.reason)))
        }
        ConnectionError::Reset => DownReason::Failed("the far end restarted".to_owned()),
        other => DownReason::Failed(shortened(&other.to_string())),
    }
}

/// Characters of a far end's reason that are kept.
const MAX_REASON: usize = 200;
