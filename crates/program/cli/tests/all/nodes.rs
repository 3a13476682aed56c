//! The commands that run nodes and query them: what they do, what they refuse, and their messages.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{Running, run};
use crate::support::refusal::assert_refused;
use crate::support::site::{Site, channel};
use rustix::process::Signal;

const CENTRE: &str = "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n
[[listen]]\nbind = \"127.0.0.1:0\"\n\n[products]\ndir = \"products\"\n";

const STATION: &str = "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"state\"\n
[[destination]]\nto = \"node:c\"\n[[peer]]\nname = \"c\"\naddresses = [\"127.0.0.1:9\"]
fingerprints = [\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n
[line]\nrate = \"93 Mbit/s\"\n\n[[channel]]\nname = \"x\"\ninput = \"tcp-listen:127.0.0.1:0\"\n";

#[test]
fn a_node_is_not_started_without_its_key_or_with_flags_that_have_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("centre.toml"), CENTRE).unwrap();
    std::fs::write(folder.path().join("station.toml"), STATION).unwrap();
    let refused = |arguments: &[&str], exit, parts: &[&str]| {
        assert_refused(&run(arguments, folder.path()), exit, parts);
    };
    refused(&["run", "centre.toml", "--until-sent"], 2, &["--until-sent", "no destination"]);
    refused(&["run", "absent.toml"], 2, &["absent.toml"]);
    refused(&["run", "centre.toml", "--log", "!loud="], 2, &["not a log level"]);
    refused(&["run", "centre.toml"], 3, &["key", "c.key", "keygen"]);
    refused(&["run", "station.toml"], 3, &["key", "s.key", "keygen"]);
}

#[test]
fn status_says_that_a_node_is_not_running() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("centre.toml"), CENTRE).unwrap();
    for arguments in
        [["status", "--config", "centre.toml"], ["status", "--socket", "state/status.sock"]]
    {
        let output = run(&arguments, folder.path());
        assert_refused(&output, 3, &["no node is running", "status.sock", "skyhaul run"]);
    }
}

#[test]
fn a_station_sends_a_file_and_ends_and_status_shows_the_result() {
    let site = Site::new();
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.assert_whole();
    assert_eq!((&contact["mission"], &contact["scid"]), (&"suomi-npp".into(), &157.into()));
    let shown = site.shown("centre.toml");
    assert!(shown.starts_with("centre c, up ") && shown.contains("suomi-npp"), "{shown}");
    site.centre.signal(Signal::TERM);
    assert_eq!(site.centre.end().code, Some(0), "told to end, it ends well");
}

#[test]
fn status_shows_contact_times_and_repeats_while_it_is_watched() {
    let site = Site::new();
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.assert_whole();
    let at = |key: &str| contact[key].as_str().unwrap()[..19].replace('T', " ");
    assert!(at("opened") <= at("closed"), "{contact:#}");
    let mut watching =
        Running::start(&["status", "--config", "centre.toml", "--watch", "200ms"], site.folder());
    for part in [" UTC, every 200 ms, until interrupted", &at("opened")].repeat(2) {
        let mut lines =
            std::iter::repeat_with(|| watching.line()).take_while(|line| !line.is_empty());
        assert!(lines.any(|line| line.contains(part)), "`{part}` is not shown");
    }
    watching.signal(Signal::INT);
    assert_eq!(watching.end().code, Some(0));
}
