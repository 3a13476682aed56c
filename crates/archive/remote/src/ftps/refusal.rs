//! Why an FTP server refused a request.

use crate::failure::{failed, words};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use suppaftp::{FtpError, Status};

/// The failure that an answer without success is (RFC 959 4.2.2).
pub fn refused(place: &str, doing: &str, error: &FtpError) -> DeliveryFailure {
    let FtpError::UnexpectedResponse(response) = error else {
        return failed(FailureKind::Line, place, format!("{doing}: {}", words(&error.to_string())));
    };
    let said = words(&String::from_utf8_lossy(&response.body));
    let kind = match response.status {
        Status::RequestedActionNotTaken | Status::ExceededStorage => FailureKind::Full,
        _ if is_full(&said) => FailureKind::Full,
        Status::InvalidCredentials
        | Status::NotLoggedIn
        | Status::StoringNeedAccount
        | Status::FileUnavailable => FailureKind::Access,
        status if (400..500).contains(&status.code()) => FailureKind::Line,
        _ => FailureKind::Refused,
    };
    failed(kind, place, format!("{doing}: {said}"))
}

/// Servers have their own codes for a full disk.
fn is_full(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    ["no space", "quota", "disk full"].iter().any(|word| said.contains(word))
}

/// Whether there is no such file.
pub fn is_absent(error: &FtpError) -> bool {
    matches!(error, FtpError::UnexpectedResponse(response)
        if response.status == Status::FileUnavailable)
}
