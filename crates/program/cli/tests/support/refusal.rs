//! How the program refuses: an exit code, and one sentence that says what, where and what to do.

use super::process::text;
use std::process::Output;

/// Asserts that the program ended with `exit`, printed nothing, and said nothing but one sentence
/// with all `parts`.
#[track_caller]
pub fn assert_refused(output: &Output, exit: i32, parts: &[&str]) {
    assert_alone(output, exit, parts);
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

/// The same, for a program that may have printed something before. Returns the sentence.
#[track_caller]
pub fn assert_alone(output: &Output, exit: i32, parts: &[&str]) -> String {
    let sentence = assert_told(output, exit, parts);
    assert_eq!(beside_warning(&text(&output.stderr)).trim_end(), sentence, "nothing else is said");
    sentence
}

/// The same, for a program that may have written messages before.
#[track_caller]
pub fn assert_told(output: &Output, exit: i32, parts: &[&str]) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    let sentence = said.lines().last().unwrap_or_default();
    assert!(sentence.starts_with("error: ") && sentence.contains("; help: "), "{said}");
    assert_holds(sentence, parts);
    sentence.to_owned()
}

/// Asserts that a command line was refused with all `parts`, by the parser or by the command.
#[track_caller]
pub fn assert_misused(output: &Output, parts: &[&str]) {
    let said = beside_warning(&text(&output.stderr)).to_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty() && said.starts_with("error: "), "{said}");
    assert_holds(&said, parts);
}

/// What is written after the warning that a key is a test key.
fn beside_warning(said: &str) -> &str {
    let rest = said.strip_prefix("warning: --insecure-test: ");
    rest.and_then(|rest| rest.split_once('\n')).map_or(said, |(_, behind)| behind)
}

#[track_caller]
fn assert_holds(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}
