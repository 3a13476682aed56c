//! Why a transfer ended before it was complete.

use skyhaul::Session;
use skyhaul_files::TransferRefusal;
use skyhaul_files::wire::WireError;

/// Why a transfer ended before it was complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferEnd {
    /// The far end refuses it.
    Refused(TransferRefusal),
    /// This end cannot do it; the reason.
    Here(TransferRefusal),
    /// The session has ended.
    Lost(String),
    /// Protocol error of the far end.
    Malformed(String),
    /// It was cancelled.
    Cancelled,
}

impl TransferEnd {
    pub(crate) fn lost(link: &Session) -> Self {
        Self::Lost(link.closed().unwrap_or_else(|| "the session has ended".to_owned()))
    }
}

impl From<WireError> for TransferEnd {
    fn from(error: WireError) -> Self {
        Self::Malformed(error.to_string())
    }
}
