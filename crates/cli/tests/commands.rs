//! The program as a user runs it: results, the one error sentence, exit codes, help.

mod support;

use std::path::Path;
use support::process::{run as skyhaul, text};
use support::refusal::assert_refused;

#[test]
fn the_documentation_holds_every_configuration_key() {
    let output = skyhaul(&["config", "keys"], Path::new("."));
    assert!(output.status.success());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let keys = text(&output.stdout);
    assert!(
        page.contains(&keys),
        "docs/configuration.md must hold what `skyhaul config keys` prints:\n{keys}"
    );
}

#[test]
fn a_wrong_configuration_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("node.toml"), "[listen]\nbind = \"0.0.0.0:1\"\nport = 3\n").unwrap();
    let unknown = skyhaul(&["config", "check", "node.toml"], folder.path());
    assert_refused(&unknown, 2, &["unknown key `port`", "node.toml:3", "`bind`"]);
    let absent = skyhaul(&["config", "check", "absent.toml"], folder.path());
    assert_refused(&absent, 2, &["cannot be read", "absent.toml", "existing file"]);
    std::fs::write(folder.path().join("empty.toml"), "").unwrap();
    assert_refused(&skyhaul(&["config", "check", "empty.toml"], folder.path()), 2, &["neither", "[listen]"]);
}

#[test]
fn a_key_is_made_once_shown_again_and_kept_from_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let made = skyhaul(&["keygen", "node.key"], folder.path());
    assert!(made.status.success());
    let fingerprint = text(&made.stdout);
    assert!(fingerprint.starts_with("SHA256:") && fingerprint.trim().len() == 71, "{fingerprint}");
    assert_eq!(text(&skyhaul(&["keygen", "node.key", "--show"], folder.path()).stdout), fingerprint);
    let mode = std::fs::metadata(folder.path().join("node.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let again = skyhaul(&["keygen", "node.key"], folder.path());
    assert_refused(&again, 3, &["cannot be written", "exists", "node.key", "--show"]);
    assert_refused(&skyhaul(&["keygen", "absent/node.key"], folder.path()), 3, &["existing folder"]);
    assert_refused(&skyhaul(&["keygen", "absent.key", "--show"], folder.path()), 3, &["cannot be read"]);
    std::fs::write(folder.path().join("no.key"), "not a key").unwrap();
    assert_refused(
        &skyhaul(&["keygen", "no.key", "--show"], folder.path()),
        2,
        &["no.key", "help: make a key"],
    );
}

#[test]
fn a_wrong_command_line_ends_with_two() {
    for arguments in [&["confg"][..], &[], &["config", "check"], &["config", "keys", "--no-such-flag"]] {
        let output = skyhaul(arguments, Path::new("."));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn every_command_shows_an_example_and_the_program_its_exit_codes() {
    assert!(text(&skyhaul(&["--help"], Path::new(".")).stdout).contains("Exit codes:"));
    for words in leaf_commands(&[]) {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = text(&skyhaul(&arguments, Path::new(".")).stdout);
        let example = format!("skyhaul {}", words.join(" "));
        assert!(help.contains("Example:") && help.contains(&example), "{words:?} shows no example:\n{help}");
    }
}

/// Every subcommand that has none below it, as `--help` lists them.
fn leaf_commands(above: &[String]) -> Vec<Vec<String>> {
    let arguments: Vec<&str> = above.iter().map(String::as_str).chain(["--help"]).collect();
    let help = text(&skyhaul(&arguments, Path::new(".")).stdout);
    let Some((_, list)) = help.split_once("Commands:\n") else { return vec![above.to_vec()] };
    list.lines()
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .flat_map(|name| leaf_commands(&[above, &[name.to_owned()]].concat()))
        .collect()
}
