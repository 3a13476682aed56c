//! Why a setup failed, as far as the TLS library's error tells.

use crate::terms::PathTerms;
use crate::wire::MAX_REASON;
use rustls::{AlertDescription, Error};
use skyhaul_identity::{Fingerprint, Refusal};

/// After `error`, where `refused` is the key that this end did not accept.
pub(crate) fn of_error(error: &Error, refused: Option<Fingerprint>, terms: &PathTerms) -> Refusal {
    match (error, refused, terms.expected) {
        (_, Some(_), Some(expected)) => Refusal::WrongKey { expected },
        (_, Some(_), None) => Refusal::UntrustedKey,
        (Error::AlertReceived(AlertDescription::AccessDenied), ..) => {
            Refusal::OwnKeyUntrusted { ours: terms.ours }
        }
        // What a caller says that has no fault to find.
        (
            Error::AlertReceived(AlertDescription::CloseNotify | AlertDescription::UserCanceled),
            _,
            None,
        ) => Refusal::Withdrawn,
        (other, ..) => Refusal::Failed(shortened(&other.to_string())),
    }
}

/// The two ends speak different versions.
pub(crate) fn of_version(terms: &PathTerms, theirs: &str) -> Refusal {
    Refusal::Version { ours: terms.versions.text(), theirs: shortened(theirs) }
}

/// What is kept of a text that the far end may have had a hand in.
pub(crate) fn shortened(text: &str) -> String {
    skyhaul_units::printable(text, MAX_REASON)
}
