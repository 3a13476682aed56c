//! Why an SFTP server refused a request.

use crate::failure::{failed, words};
use russh_sftp::client::error::Error;
use russh_sftp::protocol::StatusCode;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};

/// The failure that an answer without success is.
pub fn refused(place: &str, doing: &str, error: &Error) -> DeliveryFailure {
    let Error::Status(status) = error else {
        let what = match error {
            Error::Timeout => format!("{doing}: no answer in time"),
            other => format!("{doing}: the connection broke: {}", words(&other.to_string())),
        };
        return failed(FailureKind::Line, place, what);
    };
    let said = words(&status.error_message);
    let kind = match status.status_code {
        // Missing folders and rights are for an operator.
        StatusCode::PermissionDenied | StatusCode::NoSuchFile => FailureKind::Access,
        StatusCode::OpUnsupported | StatusCode::BadMessage => FailureKind::Refused,
        StatusCode::Failure if is_full(&said) => FailureKind::Full,
        _ => FailureKind::Line,
    };
    failed(kind, place, format!("{doing}: {}: {said}", status.status_code))
}

/// Whether a server says in words that there is no room: version 3 has no code for it.
fn is_full(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    ["no space", "quota", "disk full"].iter().any(|word| said.contains(word))
}

/// Whether the server says that there is no such file.
pub fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Status(status) if status.status_code == StatusCode::NoSuchFile)
}
