//! The commands that run nodes and query them: what they do, what they refuse, and their messages.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, run, text};
use crate::support::refusal::assert_refused;
use crate::support::site::{Site, channel};
use rustix::process::Signal;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;

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

/// One process between two others: it receives from one and sends its own captures to the other.
/// A node that receives makes no paths, and a relay takes hints for its own paths and for those of
/// the node that connects to it.
fn assert_paths_of_a_relay(at: &Path) {
    let added = run(&["path", "add", "more", "--config", "end.toml"], at);
    assert_refused(&added, 2, &["without a destination makes no paths", "connects to this one"]);
    // The relay takes hints for its own paths, and for those of the node that connects to it.
    let hint = |name: &str| {
        let words = ["--rate", "9 Mbit/s", "--until", "2100-01-01T00:00:00Z", "--config"];
        run(&[&["path", "hint", name], &words[..], &["both.toml"]].concat(), at)
    };
    for name in ["path-1", "far", "far/0"] {
        assert!(hint(name).status.success(), "{name}: {:?}", hint(name));
    }
    assert_refused(&hint("x"), 2, &["no node of this name may connect here", "NAME/0"]);
}

#[test]
fn one_node_captures_sends_receives_and_makes_products() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let key =
        |name: &str| text(&run(&["keygen", &format!("{name}.key")], at).stdout).trim().to_owned();
    let keys = [key("far"), key("both"), key("end")];
    let [far, both, end] = ["far", "both", "end"].map(|name| (name, free_address()));
    let head = |name: &str| node::table(name, Path::new(name));
    let peer = |(name, address): (&str, SocketAddr), key: &str| {
        format!(
            "[[peer]]\nname = \"{name}\"\naddresses = [\"{address}\"]\nfingerprints = \
             [\"{key}\"]\n"
        )
    };
    let listens = |address: SocketAddr, who: &str| {
        format!(
            "[[listen]]\nbind = \"{address}\"\npeers = [\"{who}\"]\n[products]\ndir = \
             \"{who}-products\"\n"
        )
    };
    let sends = |to: &str| format!("[[destination]]\nto = \"node:{to}\"\n{}", channel(""));
    let files = [
        (far.0, peer(both, &keys[1]) + &sends("both")),
        (
            both.0,
            peer(far, &keys[0]) + &peer(end, &keys[2]) + &listens(both.1, "far") + &sends("end"),
        ),
        (end.0, peer(both, &keys[1]) + &listens(end.1, "both")),
    ];
    for (name, tables) in &files {
        std::fs::write(at.join(format!("{name}.toml")), head(name) + tables).unwrap();
    }
    let checked = text(&run(&["config", "check", "both.toml"], at).stdout);
    for part in ["node both\n", "  sends to   end at", "  listens    on", ", for far\n"] {
        assert!(checked.contains(part), "{checked}");
    }
    let _nodes = ["end", "both", "far"].map(|name| node::start(name, at, &[]));
    let status =
        |name: &str| -> Value { node::status(&format!("{name}.toml"), at).unwrap_or_default() };
    let is_done = |name: &str| {
        let contacts = status(name)["centre"]["contacts"].as_array().cloned().unwrap_or_default();
        contacts.iter().any(|contact| contact["state"] == "done")
    };
    until(
        || (is_done("both") && is_done("end")).then_some(()),
        || format!("{:#} {:#}", status("both"), status("end")),
    );
    let (both, end) = (status("both"), status("end"));
    let contact = &both["centre"]["contacts"][0];
    assert!(contact["frames"].as_u64().unwrap() > 500, "{both:#}");
    for other in [&both["station"]["contacts"][0], &end["centre"]["contacts"][0]] {
        assert_eq!(other["frames"], contact["frames"], "{both:#} {end:#}");
    }
    let shown = text(&run(&["status", "--config", "both.toml"], at).stdout);
    assert!(shown.contains("station both") && shown.contains("centre both"), "{shown}");
    let paths = run(&["path", "list", "--config", "both.toml"], at);
    assert!(paths.status.success() && text(&paths.stdout).contains("path-1"));
    // A session may be opened again meanwhile, where the machine is busy.
    let connected = || {
        let shown = text(&run(&["path", "list", "--config", "end.toml"], at).stdout);
        shown.contains("of both, which has connected").then_some(())
    };
    until(connected, || format!("{:#}", status("end")));
    assert_paths_of_a_relay(at);
    let made = |who: &str| std::fs::read_dir(at.join(format!("{who}-products"))).unwrap().count();
    assert!(made("far") > 0 && made("far") == made("both"), "the same capture, the same products");
}
