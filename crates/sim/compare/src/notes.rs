//! Lines for the user while a comparison runs.

use std::io::Write;

/// Prints a line to standard error. It may be closed; the result comes all the same.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
