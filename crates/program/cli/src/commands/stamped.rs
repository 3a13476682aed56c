//! Lines that a long-running command prints beside its result, each with its time (UTC).

use skyhaul_net::Clock;
use skyhaul_node::log;
use skyhaul_units::Utc;
use std::io::Write;

/// Prints it to standard error, which may be closed; the command goes on.
pub fn say(text: &str) {
    let _ = log::errors().write_all(now(text).as_bytes());
}

/// The same lines, for standard output.
pub fn now(text: &str) -> String {
    stamped(Clock::start().utc(), text)
}

/// Each line of the text with a time before it.
fn stamped(at: Utc, text: &str) -> String {
    let at = at.to_string();
    // To the millisecond.
    let stamp = at.get(..23).unwrap_or(&at);
    text.lines().map(|line| format!("{stamp}Z {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_begins_with_its_time() {
        let said = stamped(Utc::from_micros(1_733_507_806_012_345), "one\n  two\n");
        assert_eq!(said, "2024-12-06T17:56:46.012Z one\n2024-12-06T17:56:46.012Z   two\n");
    }
}
