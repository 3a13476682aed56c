//! Failures with the name of the place and the other side's own words.

use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::printable;
use std::fmt::Display;
use std::io;

/// A failure of a place.
pub fn failed(kind: FailureKind, place: &str, what: impl Display) -> DeliveryFailure {
    DeliveryFailure::new(kind, format!("{place}: {what}"))
}

/// The published file here cannot be sent as it is.
pub fn source(path: &std::path::Path, what: impl Display) -> DeliveryFailure {
    let path = path.display();
    DeliveryFailure::new(FailureKind::Source, format!("the published file {path} {what}"))
}

/// A file of other content has the final name.
pub fn differs(place: &str, name: &str) -> DeliveryFailure {
    let what = format!(
        "a file {name} with other content is there, and stays untouched; remove it there, or \
         deliver under another name"
    );
    failed(FailureKind::Differs, place, what)
}

/// The digest of what was read back is another one.
pub fn read_back_differs(place: &str, name: &str) -> DeliveryFailure {
    failed(FailureKind::Line, place, format!("{name}, read back, has other content than was sent"))
}

/// The other side took too long.
pub fn stalled(place: &str, doing: &str, stall: std::time::Duration) -> DeliveryFailure {
    let what = format!("nothing moved for {} s while {doing}", stall.as_secs_f64());
    failed(FailureKind::Line, place, what)
}

/// The other side's words, as they may stand in a log.
pub fn words(text: &str) -> String {
    printable(text.trim(), MOST_WORDS)
}

/// A failure of a file system.
pub fn of_disk(place: &str, what: &str, error: &io::Error) -> DeliveryFailure {
    failed(kind_of_disk(error), place, format!("{what}: {error}"))
}

fn kind_of_disk(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::Full,
        // A missing folder is often a disk that is not mounted: an operator must look.
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory => FailureKind::Access,
        io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::FileTooLarge => FailureKind::Refused,
        _ => FailureKind::Line,
    }
}

/// A few lines of a terminal.
const MOST_WORDS: usize = 300;
