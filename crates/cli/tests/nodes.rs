//! The commands that run and ask nodes: what they refuse, and how they say it.

use std::path::Path;
use std::process::Command;

/// Asserts that the command ends with `exit` and one sentence that holds all `parts`.
fn assert_refused(arguments: &[&str], folder: &Path, exit: i32, parts: &[&str]) {
    let program = Command::new(env!("CARGO_BIN_EXE_skyhaul")).args(arguments).current_dir(folder).output();
    let output = program.expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {error}");
    let sentence = error.lines().last().unwrap_or_default();
    assert!(sentence.starts_with("error: ") && sentence.contains("; help: "), "{error}");
    for part in parts {
        assert!(sentence.contains(part), "`{part}` is not in: {sentence}");
    }
}

const CENTRE: &str = "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n
[listen]\nbind = \"127.0.0.1:0\"\n\n[products]\ndir = \"products\"\n";

const STATION: &str = "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"state\"\n
[centre]\nname = \"c\"\naddress = \"127.0.0.1:9\"
fingerprint = \"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n
[line]\nrate = \"93 Mbit/s\"\n\n[[channel]]\nname = \"x\"\ninput = \"tcp-listen:127.0.0.1:0\"\n";

#[test]
fn a_node_is_not_started_with_the_other_ends_file_or_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("centre.toml"), CENTRE).unwrap();
    std::fs::write(folder.path().join("station.toml"), STATION).unwrap();
    let refused =
        |arguments: &[&str], exit, parts: &[&str]| assert_refused(arguments, folder.path(), exit, parts);
    refused(&["station", "--config", "centre.toml"], 2, &["centre's configuration", "skyhaul centre"]);
    refused(&["centre", "--config", "station.toml"], 2, &["station's configuration", "skyhaul station"]);
    refused(&["centre", "--config", "absent.toml"], 2, &["absent.toml"]);
    refused(&["centre", "--config", "centre.toml", "--log", "!loud="], 2, &["not a log level"]);
    refused(&["centre", "--config", "centre.toml"], 3, &["key", "c.key", "keygen"]);
    refused(&["station", "--config", "station.toml"], 3, &["key", "s.key", "keygen"]);
}

#[test]
fn asking_a_node_that_does_not_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("centre.toml"), CENTRE).unwrap();
    for arguments in [["status", "--config", "centre.toml"], ["status", "--socket", "state/status.sock"]] {
        assert_refused(
            &arguments,
            folder.path(),
            3,
            &["no node is running", "status.sock", "skyhaul centre"],
        );
    }
}
