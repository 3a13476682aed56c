//! The session's messages: symbols and reports in datagrams, the rest on the control stream.
//!
//! Integers are big-endian; "varint" is the variable-length integer of RFC 9000 section 16. Reading
//! never panics: every parser returns [`WireError`] with the field it stopped at.
//! `docs/reference/wire.md` shows every field.

mod control;
mod datagram;
mod report;
mod varint;
mod version;

pub(crate) use control::MESSAGE_MAX;
pub use control::{
    APPLICATION_MAX, Control, ControlReader, Custody, RefusalCause, Resume, SPOOLS_MAX,
};
pub use datagram::{
    Datagram, HEAD_INFO, Head, PROTECTION, Symbol, SymbolHeader, encode_protected, encode_repair,
    padding,
};
pub use report::{
    AbandonedNotice, DONE_MAX, FlowReport, MISSING_MAX, NOTICE_MAX, RECOVERED_MAX, Recovered,
    Report,
};
pub(crate) use varint::{Reader, put_varint};
pub use version::{PROTOCOL_VERSION, ProtocolVersions};

/// Why a message was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends inside a field.
    #[error("the message ends inside `{0}`")]
    Truncated(&'static str),
    /// A field has a value it cannot have.
    #[error("`{0}` has a value it cannot have")]
    Invalid(&'static str),
    /// The type byte is not one of this version's.
    #[error("message type {0:#04x} is not known")]
    UnknownType(u8),
    /// The greeting is of another version than the handshake agreed on; nothing after the version
    /// number was read.
    #[error(
        "the far end speaks version {0} of the session protocol, and the handshake agreed on \
        another one; install the same release on both"
    )]
    OtherVersion(u16),
}
