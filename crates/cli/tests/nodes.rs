//! The commands that run and ask nodes: what they do by themselves, what they refuse, and how they say it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// A command in `folder`, whose log is kept from the test's own output.
fn skyhaul(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(arguments).current_dir(folder).stderr(Stdio::null());
    command
}

fn printed(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(skyhaul(arguments, folder).output().expect("the program starts").stdout).unwrap()
}

/// Asks the centre until `probe` finds what it looks for; the centre has as long as asking so often takes.
fn ask_until<T>(folder: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    for _ in 0..5_000 {
        let answer = printed(&["status", "--config", "centre.toml", "--json"], folder);
        if let Some(found) = serde_json::from_str(&answer).ok().and_then(|status| probe(&status)) {
            return found;
        }
    }
    panic!("{}", printed(&["status", "--config", "centre.toml"], folder))
}

/// A centre that is ended when the test ends.
struct Centre(Child);

impl Drop for Centre {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_station_sends_a_file_and_ends_and_status_says_what_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [centre_key, station_key] = ["c.key", "s.key"].map(|key| printed(&["keygen", key], folder));
    let peer = format!("[[peer]]\nname = \"s\"\nfingerprint = \"{}\"\n", station_key.trim());
    std::fs::write(folder.join("centre.toml"), format!("{CENTRE}{peer}")).unwrap();
    let mut centre = Centre(skyhaul(&["centre", "--config", "centre.toml"], folder).spawn().unwrap());
    let address = ask_until(folder, |status| {
        Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
    });
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cadu/npp_rs_errors.dat");
    let station = STATION
        .replace("127.0.0.1:9", &address)
        .replace("SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", centre_key.trim())
        .replace("state = \"state\"", "state = \"spool\"")
        .replace("tcp-listen:127.0.0.1:0", &format!("file:{recording}"));
    std::fs::write(folder.join("station.toml"), station).unwrap();
    let sent = skyhaul(&["station", "--config", "station.toml", "--until-sent"], folder).status().unwrap();
    assert_eq!(sent.code(), Some(0));

    let contact = ask_until(folder, |status| {
        Some(status["contacts"][0].clone()).filter(|contact| contact["state"] == "done")
    });
    assert_eq!((&contact["mission"], &contact["scid"]), (&"suomi-npp".into(), &157.into()));
    assert_eq!((&contact["frames"], &contact["set_aside"]), (&921.into(), &102.into()));
    assert_eq!(contact["corrected_symbols"], 13_652);
    let digest = "2aef857adfb30acaf1861bbe90379f4ab7dc09117918952fff5a6b1683017f8b";
    assert_eq!(contact["frames_sha256"], digest, "as expected.json has it");
    let shown = printed(&["status", "--config", "centre.toml"], folder);
    assert!(shown.starts_with("centre c, up ") && shown.contains("suomi-npp"), "{shown}");

    let pid = centre.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(centre.0.wait().unwrap().code(), Some(0), "told to end, it ends well");
}
