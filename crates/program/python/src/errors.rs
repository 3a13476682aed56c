//! The package's exceptions, for the errors of Rust that they mirror.

use pyo3::PyErr;
use skyhaul::{HintError, LocalError, SessionError, StartError};

pyo3::import_exception!(skyhaul.errors, BlockError);
pyo3::import_exception!(skyhaul.errors, ClosedError);
pyo3::import_exception!(skyhaul.errors, ConfigError);
pyo3::import_exception!(skyhaul.errors, DataError);
pyo3::import_exception!(skyhaul.errors, HintRefused);
pyo3::import_exception!(skyhaul.errors, IdentityError);
pyo3::import_exception!(skyhaul.errors, SocketError);

/// A session that cannot be used.
pub fn of_session(error: SessionError) -> PyErr {
    match error {
        SessionError::Closed(reason) => ClosedError::new_err(reason),
        SessionError::Block(what) => BlockError::new_err(what),
    }
}

/// A hint that is not taken.
pub fn of_hint(error: HintError) -> PyErr {
    match error {
        HintError::Closed => ClosedError::new_err(error.to_string()),
        HintError::NoPath(_)
        | HintError::TooMany(_)
        | HintError::OutOfRange(_)
        | HintError::Refused(_) => HintRefused::new_err(error.to_string()),
    }
}

/// A node that did not start.
pub fn of_start(error: StartError) -> PyErr {
    let sentence = error.to_string();
    match error {
        StartError::Socket(source) => match source.raw_os_error() {
            Some(number) => SocketError::new_err((number, sentence)),
            None => SocketError::new_err(sentence),
        },
        StartError::Config(_) => ConfigError::new_err(sentence),
    }
}

/// The block service cannot be used.
pub fn of_local(error: LocalError) -> PyErr {
    let sentence = error.to_string();
    match error {
        LocalError::Socket { error, .. } | LocalError::Thread(error) => {
            match error.raw_os_error() {
                Some(number) => SocketError::new_err((number, sentence)),
                None => SocketError::new_err(sentence),
            }
        }
        LocalError::Refused(_) => ClosedError::new_err(sentence),
        LocalError::Name(_) => ConfigError::new_err(sentence),
    }
}

/// A file with wrong content: its place, the fault, the remedy.
pub fn of_data(place: &str, reason: &str, help: &str) -> PyErr {
    DataError::new_err((place.to_owned(), reason.to_owned(), help.to_owned()))
}
