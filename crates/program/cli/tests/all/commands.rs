//! The program as a user runs it: results, the one error sentence, exit codes, help.

use crate::support::help::listed_commands;
use crate::support::process::{run as skyhaul, text};
use crate::support::refusal::assert_refused;
use std::path::Path;

#[test]
fn the_documentation_holds_every_configuration_key() {
    let output = skyhaul(&["config", "keys"], Path::new("."));
    assert!(output.status.success());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let keys = text(&output.stdout);
    assert!(
        page.contains(&keys),
        "docs/reference/configuration.md must hold what `skyhaul config keys` prints:\n{keys}"
    );
}

#[test]
fn a_wrong_configuration_is_reported_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("node.toml"), "[[listen]]\nbind = \"0.0.0.0:1\"\nport = 3\n")
        .unwrap();
    let unknown = skyhaul(&["config", "check", "node.toml"], folder.path());
    assert_refused(&unknown, 2, &["unknown key `port`", "node.toml:3", "`bind`"]);
    let absent = skyhaul(&["config", "check", "absent.toml"], folder.path());
    assert_refused(&absent, 2, &["cannot be read", "absent.toml", "existing file"]);
    let idle = "[node]\nname = \"n\"\nkey = \"n.key\"\nstate = \"state\"\n";
    std::fs::write(folder.path().join("idle.toml"), idle).unwrap();
    assert_refused(
        &skyhaul(&["config", "check", "idle.toml"], folder.path()),
        2,
        &["neither", "[[listen]]"],
    );
}

#[test]
fn config_check_warns_of_what_would_stop_a_node_and_refuses_it_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let check =
        |arguments: &[&str]| skyhaul(&[&["config", "check"], arguments].concat(), folder.path());
    // As the pages of the documentation show it.
    let example = format!("SHA256:{}", "0123456789abcdef".repeat(4));
    let station = |key: &str, state: &str, fingerprint: &str| {
        format!(
            "[node]\nname = \"s\"\nkey = \"{key}\"\nstate = \"{state}\"\n[[destination]]\n\
            to = \"node:c\"\n[[peer]]\nname = \"c\"\n\
             addresses = [\"c:4700\"]\nfingerprints = [\"{fingerprint}\"]\n[line]\n\
             rate = \"9 Mbit/s\"\n\
             [[channel]]\nname = \"x\"\ninput = \"stdin\"\n[[subscription]]\n\
             of = \"contacts\"\ndeadline = \"3600 s\"\n"
        )
    };
    let made =
        |name: &str| text(&skyhaul(&["keygen", name], folder.path()).stdout).trim().to_owned();
    let (own, other) = (made("s.key"), made("c.key"));
    write("file", "");
    write("bad.toml", &station("absent.key", "file/state", &example));
    write("own.toml", &station("s.key", "state", &own));
    write("good.toml", &station("s.key", "new/state", &other));

    let bad = check(&["bad.toml"]);
    assert_eq!(bad.status.code(), Some(0));
    let said = text(&bad.stderr);
    assert_eq!(said.lines().filter(|line| line.starts_with("warning: ")).count(), 3, "{said}");
    for part in ["there is no key in absent.key", "of c is from an example", "file is not a folder"]
    {
        assert!(said.contains(part), "{said}");
    }
    let strict = check(&["--strict", "bad.toml"]);
    assert_eq!((strict.status.code(), strict.stdout), (Some(2), bad.stdout.clone()));
    assert!(
        text(&strict.stderr).contains("error: the configuration has 3 warnings, bad.toml; help: ")
    );
    assert!(text(&check(&["own.toml"]).stderr).contains("of c is that of this node's own key"));
    let good = check(&["--strict", "good.toml"]);
    assert_eq!((good.status.code(), text(&good.stderr)), (Some(0), String::new()));

    let shown = text(&bad.stdout);
    for part in ["freed with custody", "due within 1 hour", "closed after 2 s of silence"] {
        assert!(shown.contains(part) && !shown.contains(" ns"), "{shown}");
    }
    write(
        "centre.toml",
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[[listen]]\nbind = \
        \"[::]:4700\"\n[products]\n\
         dir = \"file\"\n[[destination]]\nname = \"d\"\nto = \"folder:file/out\"\n\
         [[destination]]\nname = \"e\"\nto = \"https://u@e.example.org/in\"\npassword = \
         \"exposed\"\nca = \"absent.pem\"\n",
    );
    write("exposed", "geheim\n");
    let centre = check(&["centre.toml"]);
    assert!(text(&centre.stdout).contains("to disk every 10 ms, kept 7 days after the products"));
    let said = text(&centre.stderr);
    assert!(
        said.contains("the products' folder file cannot be written to: file is not a folder"),
        "{said}"
    );
    assert!(
        said.contains("a destination's folder file/out cannot be made: file is not a folder"),
        "{said}"
    );
    for part in [
        "absent.pem cannot be read; help: correct [[destination]], or make the file",
        "other users can read exposed; help: take that from them with `chmod 600 exposed`",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_key_is_made_once_shown_again_and_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let made = skyhaul(&["keygen", "node.key"], folder.path());
    assert!(made.status.success());
    let fingerprint = text(&made.stdout);
    assert!(fingerprint.starts_with("SHA256:") && fingerprint.trim().len() == 71, "{fingerprint}");
    assert_eq!(
        text(&skyhaul(&["keygen", "node.key", "--show"], folder.path()).stdout),
        fingerprint
    );
    let mode = std::fs::metadata(folder.path().join("node.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let again = skyhaul(&["keygen", "node.key"], folder.path());
    assert_refused(&again, 3, &["cannot be written", "exists", "node.key", "--show"]);
    assert_refused(
        &skyhaul(&["keygen", "absent/node.key"], folder.path()),
        3,
        &["existing folder"],
    );
    assert_refused(
        &skyhaul(&["keygen", "absent.key", "--show"], folder.path()),
        3,
        &["cannot be read"],
    );
    std::fs::write(folder.path().join("no.key"), "not a key").unwrap();
    assert_refused(
        &skyhaul(&["keygen", "no.key", "--show"], folder.path()),
        2,
        &["no.key", "help: make a key"],
    );
}

#[test]
fn a_wrong_command_line_ends_with_exit_code_2() {
    for arguments in
        [&["confg"][..], &[], &["config", "check"], &["config", "keys", "--no-such-flag"]]
    {
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
        assert!(
            help.contains("Example:") && help.contains(&example),
            "{words:?} shows no example:\n{help}"
        );
    }
}

/// Every subcommand that has none below it, as `--help` lists them.
fn leaf_commands(above: &[String]) -> Vec<Vec<String>> {
    let arguments: Vec<&str> = above.iter().map(String::as_str).chain(["--help"]).collect();
    let help = text(&skyhaul(&arguments, Path::new(".")).stdout);
    let below = listed_commands(&help);
    if below.is_empty() {
        return vec![above.to_vec()];
    }
    let below = below.into_iter().map(|name| [above, &[name.to_owned()]].concat());
    below.flat_map(|words| leaf_commands(&words)).collect()
}
