//! Keys of nodes that run: changed without an edit and without a dropped session, and revoked.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run, text};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;

const NODES: [&str; 2] = ["station.toml", "centre.toml"];
/// A channel that the test feeds.
const FED: &str = "[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"600 s\"\n";

/// The answer of `skyhaul key`, with these words before the node.
fn key(words: &[&str], config: &str, folder: &Path) -> String {
    printed(&[&["key"], words, &["--config", config]].concat(), folder)
}

/// The keys of a node; none while it does not answer.
fn shown(config: &str, folder: &Path) -> Option<Value> {
    node::asked(config, folder, &json!({ "ask": "keys" }))
}

fn keys_until<T>(config: &str, folder: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    until(
        || shown(config, folder).and_then(|keys| probe(&keys)),
        || format!("{config}: {:?}", shown(config, folder)),
    )
}

/// Waits until a node has no change of its key under way.
fn settled(config: &str, folder: &Path) -> String {
    keys_until(config, folder, |keys| {
        keys.get("next").is_none().then(|| keys["key"].as_str().unwrap().to_owned())
    })
}

/// The kinds of events about keys at a node.
fn events(config: &str, folder: &Path) -> Vec<String> {
    let events = node::events(config, folder);
    let kinds = events.iter().filter_map(|event| event["kind"].as_str().map(str::to_owned));
    kinds.filter(|kind| kind.starts_with("key.")).collect()
}

/// A station whose input the test feeds, with an open line.
struct Streaming {
    site: Site,
    station: Running,
    input: std::io::PipeWriter,
}

impl Streaming {
    fn begin() -> Self {
        let site = Site::new();
        site.write(FED);
        let (reader, input) = std::io::pipe().unwrap();
        let station = site.start_from(reader);
        site.until(|status| (line(status)["state"] == "open").then_some(()));
        Self { site, station, input }
    }

    fn folder(&self) -> &Path {
        self.site.folder()
    }

    /// Feeds a part of the damaged recording.
    fn feed(&mut self, part: usize, of: usize) {
        let whole =
            fs::read(crate::support::recordings::recording(crate::support::recordings::DAMAGED))
                .unwrap();
        let piece = whole.len().div_ceil(of);
        self.input.write_all(whole.chunks(piece).nth(part).unwrap()).unwrap();
    }
}

fn line(status: &Value) -> &Value {
    &status["destinations"][0]["line"]
}

#[test]
fn both_nodes_change_their_keys_while_data_flows_in_one_session_and_no_file_is_edited() {
    let mut streaming = Streaming::begin();
    let configs = NODES.map(|config| fs::read(streaming.folder().join(config)).unwrap());
    let before = NODES.map(|config| settled(config, streaming.folder()));
    streaming.feed(0, 3);
    for config in NODES {
        let said = key(&["rotate"], config, streaming.folder());
        assert!(said.contains("the next key is SHA256:"), "{said}");
    }
    streaming.feed(1, 3);
    let after = NODES.map(|config| settled(config, streaming.folder()));
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before, after);
    }
    // Each accepts the key in use of the other one, and only that.
    for (config, key) in NODES.into_iter().zip([&after[1], &after[0]]) {
        keys_until(config, streaming.folder(), |keys| {
            (keys["peers"][0]["accepted"] == serde_json::json!([key])).then_some(())
        });
        for kind in ["key.staged", "key.switched", "key.retired"] {
            let found = events(config, streaming.folder());
            assert!(found.iter().any(|one| one == kind), "{config}: {found:?}");
        }
        let name = if config == "station.toml" { "s.key" } else { "c.key" };
        let file = printed(&["keygen", name, "--show"], streaming.folder());
        assert_eq!(file.trim(), settled(config, streaming.folder()));
        for end in ["rotation-next", "rotation-former"] {
            let left = streaming.folder().join(format!("{name}.{end}"));
            assert!(!left.exists(), "{}", left.display());
        }
        let mode = std::os::unix::fs::MetadataExt::mode(
            &fs::metadata(streaming.folder().join(name)).unwrap(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }
    let connects = streaming.site.until(|status| line(status)["connects"].as_u64());
    assert_eq!(connects, 1, "the session from the beginning goes on");
    streaming.feed(2, 3);
    let Streaming { mut site, station, input } = streaming;
    drop(input);
    assert_eq!(station.end().code, Some(0));
    site.assert_whole();
    // After a kill, both find each other by their new keys.
    let written = NODES.map(|config| fs::read(site.folder().join(config)).unwrap());
    assert_eq!(written, configs, "no configuration changes");
    site.kill_centre();
    site.start_centre();
    let address = site.centre_until(|status| {
        Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
    });
    site.write_by(&address, FED);
    let again = site.start_to_stay();
    site.until(|status| (line(status)["state"] == "open").then_some(()));
    drop(again);
    for config in NODES {
        let place = if config == "station.toml" { "spool" } else { "state" };
        let verified = printed(&["audit", "verify", "--state", place], site.folder());
        assert!(verified.contains("head"), "{verified}");
    }
}

#[test]
fn a_key_that_is_out_of_use_is_refused_though_the_configuration_lists_it() {
    let streaming = Streaming::begin();
    let folder = streaming.folder().to_owned();
    fs::copy(folder.join("s.key"), folder.join("stolen.key")).unwrap();
    let stolen = settled("station.toml", &folder);
    key(&["rotate"], "station.toml", &folder);
    settled("station.toml", &folder);
    keys_until("centre.toml", &folder, |keys| {
        let out = &keys["peers"][0]["out_of_use"];
        (*out == serde_json::json!([stolen])).then_some(())
    });
    let config = fs::read_to_string(folder.join("station.toml")).unwrap();
    let config = config.replace("s.key", "stolen.key").replace("\"spool\"", "\"other\"");
    fs::write(folder.join("thief.toml"), config).unwrap();
    let refused = run(&["config", "check", "--connect", "thief.toml"], &folder);
    assert!(!refused.status.success(), "{}", text(&refused.stdout));
    assert!(text(&refused.stderr).contains("does not trust our key"), "{}", text(&refused.stderr));
}

#[test]
fn a_change_waits_for_a_node_that_is_down_and_force_names_it() {
    let mut streaming = Streaming::begin();
    let folder = streaming.folder().to_owned();
    streaming.site.kill_centre();
    let before = settled("station.toml", &folder);
    key(&["rotate"], "station.toml", &folder);
    keys_until("station.toml", &folder, |keys| {
        let next = keys.get("next")?;
        let waits = next["waits_for"] == serde_json::json!(["c"]) && next["stage"] == "staged";
        (waits && keys["key"] == *before).then_some(())
    });
    let again = run(&["key", "rotate", "--config", "station.toml"], &folder);
    assert_refused(&again, 2, &["changed already", "key show"]);
    let shown = printed(&["key", "show", "--config", "station.toml"], &folder);
    assert!(shown.contains("waits for c"), "{shown}");
    let forced = key(&["rotate", "--force"], "station.toml", &folder);
    assert!(forced.contains("these nodes do not know it") && forced.contains(": c"), "{forced}");
    keys_until("station.toml", &folder, |keys| (keys["key"] != *before).then_some(()));
}

#[test]
fn a_revoked_key_is_refused_within_a_second_over_restarts_and_is_named() {
    let mut streaming = Streaming::begin();
    let folder = streaming.folder().to_owned();
    let station = settled("station.toml", &folder);
    let said = key(&["revoke", &station, "--reason", "lost laptop"], "centre.toml", &folder);
    assert!(said.contains("is revoked") && said.contains("a key of s"), "{said}");
    streaming.site.centre_until(|status| {
        let names = status["stations"].as_array()?;
        names.is_empty().then_some(())
    });
    streaming.site.until(|status| (line(status)["state"] == "refused").then_some(()));
    let alarms = || printed(&["alarms", "list", "--config", "centre.toml"], &folder);
    until(|| alarms().contains("key-revoked").then_some(()), alarms);
    assert_eq!(events("centre.toml", &folder), ["key.revoked"]);
    let checked = run(&["config", "check", "centre.toml"], &folder);
    let warned = text(&checked.stderr);
    assert!(warned.contains("is revoked: lost laptop") && warned.contains(&station), "{warned}");
    let own = settled("centre.toml", &folder);
    let refused = run(&["key", "revoke", &own, "--config", "centre.toml"], &folder);
    assert_refused(&refused, 2, &["this node itself", "key rotate"]);
    let audit = printed(&["audit", "list", "--config", "centre.toml"], &folder);
    assert!(audit.contains("revoke the key") && audit.contains("lost laptop"), "{audit}");
    // The same address, so that the station finds it again.
    let config = fs::read_to_string(folder.join("centre.toml")).unwrap();
    let config = config.replace("127.0.0.1:0", &streaming.site.address);
    fs::write(folder.join("centre.toml"), config).unwrap();
    streaming.site.kill_centre();
    streaming.site.start_centre();
    keys_until("centre.toml", &folder, |keys| {
        (keys["revoked"][0]["key"] == *station && keys["revoked"][0]["peer"] == "s").then_some(())
    });
    until(|| events("centre.toml", &folder).len().ge(&1).then_some(()), || "no events".to_owned());
    streaming.site.until(|status| (line(status)["state"] == "refused").then_some(()));
    let allowed = key(&["allow", &station], "centre.toml", &folder);
    assert!(allowed.contains("accepted again"), "{allowed}");
    streaming.site.until(|status| (line(status)["state"] == "open").then_some(()));
    let refused = run(&["key", "allow", &station, "--config", "centre.toml"], &folder);
    assert_refused(&refused, 2, &["neither revoked nor out of use"]);
}

#[test]
fn a_revoked_key_that_follows_the_one_of_the_configuration_is_named_too() {
    let streaming = Streaming::begin();
    let folder = streaming.folder().to_owned();
    let listed = settled("station.toml", &folder);
    key(&["rotate"], "station.toml", &folder);
    let station = settled("station.toml", &folder);
    assert_ne!(station, listed);
    let said = key(&["revoke", &station], "centre.toml", &folder);
    assert!(said.contains("a key of s, which cannot connect"), "{said}");
    let alarms = || printed(&["alarms", "list", "--config", "centre.toml"], &folder);
    until(|| alarms().contains("key-revoked").then_some(()), alarms);
    let checked = text(&run(&["config", "check", "centre.toml"], &folder).stderr);
    let named = format!("the key that follows {listed} of peer `s` is revoked");
    assert!(checked.contains(&named), "{checked}");
    streaming.site.until(|status| (line(status)["state"] == "refused").then_some(()));
}

#[test]
fn a_node_without_others_changes_its_key_at_once_and_an_old_key_is_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    printed(&["keygen", "c.key"], at);
    let config = format!(
        "{}key_old_after = \"1 s\"\n[[listen]]\nbind = \"127.0.0.1:0\"\n[products]\ndir = \
         \"products\"\n",
        node::table("c", Path::new("state"))
    );
    fs::write(at.join("c.toml"), config).unwrap();
    let _node = Running::start(&["run", "c.toml"], at);
    let before = settled("c.toml", at);
    let alarms = || text(&run(&["alarms", "list", "--config", "c.toml"], at).stdout);
    until(|| alarms().contains("key-old").then_some(()), alarms);
    let said = key(&["rotate"], "c.toml", at);
    assert!(said.contains("no other nodes"), "{said}");
    assert_ne!(settled("c.toml", at), before);
    // Events are written behind what is shown.
    let told = || events("c.toml", at);
    until(|| (told().len() >= 3).then_some(()), || format!("{:?}", told()));
    assert_eq!(told(), ["key.staged", "key.switched", "key.retired"]);
}
