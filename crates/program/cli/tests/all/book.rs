//! The address book: what `skyhaul node` writes, and that commands take its names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::ports::free_address;
use crate::support::process::{Running, skyhaul, text};
use crate::support::refusal::{assert_refused, assert_told};
use crate::support::user::User;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

fn key(digit: char) -> String {
    format!("SHA256:{}", digit.to_string().repeat(64))
}

#[test]
fn nodes_are_added_shown_renamed_and_removed_and_comments_stay() {
    let user = User::new();
    let said = user.done(&["node", "list"]);
    assert!(said.contains("empty") && said.contains("skyhaul pair"), "{said}");
    user.done(&["node", "add", "far", "far.example.org:4740", &key('a')]);
    let file = user.path("config/skyhaul/nodes.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&file, format!("# Mine.\n\n{}", user.book())).unwrap();
    // A second `add` adds to what is known.
    user.done(&["node", "add", "far", &key('b'), "192.0.2.7:4740"]);
    user.done(&["node", "add", "near", &key('c')]);
    let rows: Value = serde_json::from_str(&user.done(&["node", "list", "--json"])).unwrap();
    assert_eq!(rows[0]["name"], "far");
    assert_eq!(rows[0]["addresses"], serde_json::json!(["far.example.org:4740", "192.0.2.7:4740"]));
    assert_eq!(rows[0]["fingerprints"], serde_json::json!([key('a'), key('b')]));
    assert_eq!(rows[1]["name"], "near");
    user.done(&["node", "rename", "far", "ship"]);
    let shown = user.done(&["node", "show", "ship"]);
    assert!(shown.contains("address      192.0.2.7:4740") && shown.contains(&key('b')), "{shown}");
    user.done(&["node", "remove", "ship"]);
    assert!(user.book().starts_with("# Mine.\n"), "{}", user.book());
    assert!(!user.book().contains("ship") && user.book().contains("near"), "{}", user.book());
    let names: Vec<_> = fs::read_dir(user.path("config/skyhaul")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn what_cannot_be_in_the_book_is_refused_with_the_remedy() {
    let user = User::new();
    let add = |words: &[&str]| user.run(&[&["node", "add"], words].concat());
    assert_refused(&add(&["far", "192.0.2.7:4740"]), 2, &["there is no fingerprint"]);
    assert_refused(&add(&["far", "192.0.2.7", &key('a')]), 2, &["`192.0.2.7` is not an address"]);
    assert_refused(&add(&["f r", &key('a')]), 2, &["`f r` is not a name"]);
    assert_refused(&add(&["far", "SHA256:12"]), 2, &["is not a key fingerprint"]);
    user.done(&["node", "add", "observatory", &key('a')]);
    user.done(&["node", "add", "far", &key('b')]);
    let said = &["no node `obsrevatory`", "did you mean `observatory`?"];
    assert_refused(&user.run(&["node", "show", "obsrevatory"]), 2, said);
    assert_refused(&user.run(&["node", "remove", "obsrevatory"]), 2, said);
    let taken = user.run(&["node", "rename", "observatory", "far"]);
    assert_refused(&taken, 2, &["has a node `far`", "nodes.toml"]);
    let file = user.path("config/skyhaul/nodes.toml");
    fs::write(&file, "[[peer]]\nname = \"far\"\nfingerprint = \"x\"\n").unwrap();
    let parts = &["unknown key `fingerprint`", "nodes.toml:3", "`fingerprints`"];
    assert_refused(&user.run(&["node", "list"]), 2, parts);
    assert_refused(&user.run(&["node", "add", "near", &key('c')]), 2, parts);
    assert!(user.book().contains("fingerprint = \"x\""), "{}", user.book());
}

#[test]
fn parallel_changes_are_all_kept() {
    let user = User::new();
    let children: Vec<_> = (0..8)
        .map(|number| {
            let name = format!("node-{number}");
            user.command(&["node", "add", &name, &key('a')]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let rows: Value = serde_json::from_str(&user.done(&["node", "list", "--json"])).unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(8));
}

/// Two users who know each other; the far one serves its folder.
fn served(near: &User, far: &User) -> (Running, String) {
    let address = free_address().to_string();
    near.done(&["node", "add", "far", &address, &far.fingerprint()]);
    far.done(&["node", "add", "near", &near.fingerprint()]);
    fs::create_dir(far.path("in")).unwrap();
    let words = ["files", "serve", "--bind", &address, "--root", "in", "--write"];
    let mut serving =
        Running::of(far.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()));
    serving.log_until("note: accepts the address book: near");
    assert_eq!(serving.address(), address);
    (serving, address)
}

#[test]
fn a_copy_takes_the_name_and_nothing_else() {
    let (near, far) = (User::new(), User::new());
    let (_serving, address) = served(&near, &far);
    fs::write(near.path("pass.dat"), "frames").unwrap();
    near.done(&["cp", "pass.dat", "far:today/"]);
    assert_eq!(fs::read_to_string(far.path("in/today/pass.dat")).unwrap(), "frames");
    // Both keys of a rotation are accepted, whichever is first.
    near.done(&["node", "remove", "far"]);
    near.done(&["node", "add", "far", &address, &key('a'), &far.fingerprint()]);
    near.done(&["cp", "far:today/pass.dat", "back.dat"]);
    assert_eq!(fs::read_to_string(near.path("back.dat")).unwrap(), "frames");
    near.done(&["sync", ".", "far:mirror", "--exclude", "config"]);
    assert!(far.path("in/mirror/back.dat").exists());
    // A flag has priority over the book.
    let wrong = key('b');
    let refused = near.run(&["cp", "far:today/pass.dat", "again.dat", "--peer", &wrong]);
    assert_told(&refused, 4, &["key is not the expected", &wrong]);
    assert_told(&near.run(&["cp", "fra:x", "."]), 2, &["`fra` is not known", "mean `far`"]);
    // An address of the command line has priority, and the key is still that of the book.
    let node = format!("far={address}");
    near.done(&["cp", "far:today/pass.dat", "again.dat", "--node", &node]);
    let nowhere = near.run(&["cp", "far:x", ".", "--node", "far=nowhere.invalid:1"]);
    assert_told(&nowhere, 2, &["nowhere.invalid"]);
}

#[test]
fn the_own_key_is_made_at_first_use_and_is_for_its_user_alone() {
    let user = User::new();
    user.done(&["node", "add", "far", "127.0.0.1:9", &key('a')]);
    let address = free_address().to_string();
    let words = ["forward", "-L", &format!("{address}=far:127.0.0.1:9")];
    let mut forward =
        Running::of(user.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let said = forward.log_until("made this user's key");
    let file = user.path("config/skyhaul/node.key");
    assert!(said.contains(&user.fingerprint()), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn measuring_commands_take_the_name_and_another_port() {
    let (near, far) = (User::new(), User::new());
    near.done(&["node", "add", "far", "127.0.0.1:9", &far.fingerprint()]);
    far.done(&["node", "add", "near", &near.fingerprint()]);
    let address = free_address();
    let mut serving = Running::of(
        far.command(&["perf", "serve", "--bind", &address.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    serving.address();
    let to = format!("far:{}", address.port());
    let words =
        ["perf", "send", "--to", &to, "--bytes", "1MB", "--cc", "line", "--rate", "100mbit"];
    let report: Value =
        serde_json::from_str(&near.done(&[&words[..], &["--json"]].concat())).unwrap();
    assert!(report["goodput_bps"].as_u64() > Some(0), "{report}");
    let probing = free_address();
    let mut probe = Running::of(
        far.command(&["probe", "serve", "--bind", &probing.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    probe.address();
    let host = format!("far:{}", probing.port());
    near.done(&["probe", &host, "--seconds", "4", "--max-rate", "5mbit"]);
    let unknown = near.run(&["perf", "send", "--to", "fer:4710"]);
    assert_told(&unknown, 2, &["`fer:4710` is not found", "did you mean the node `far`?"]);
}

#[test]
fn a_user_without_a_folder_is_told_what_is_missing() {
    let here = tempfile::tempdir().unwrap();
    let output = skyhaul(&["node", "add", "far", &key('a')], here.path()).output().unwrap();
    assert_refused(&output, 2, &["no folder of configuration", "XDG_CONFIG_HOME"]);
    let at: &Path = here.path();
    let copy = skyhaul(&["cp", "x", "far:"], at).output().unwrap();
    assert_told(&copy, 2, &["`far` is not known", "skyhaul pair"]);
}

#[test]
fn a_node_is_tested_over_each_way_and_each_failure_has_its_sentence() {
    let (near, far) = (User::new(), User::new());
    let (serving, address) = served(&near, &far);
    let found = |words: &[&str]| -> (Output, Value) {
        let output = near.run(&[&["node", "test", "far", "--json"], words].concat());
        let found = serde_json::from_str(&text(&output.stdout)).unwrap();
        (output, found)
    };
    let shown = near.done(&["node", "test", "far", "--no-goodput"]);
    assert!(shown.starts_with(&format!("udp {address}  open, right key, round trip ")), "{shown}");
    assert!(shown.contains(&format!("tcp {address}  nothing listens there")), "{shown}");
    let perf = free_address();
    let port = perf.port().to_string();
    let (_, without) = found(&["--perf-port", &port]);
    assert_eq!((&without["reachable"], &without["goodput_bps"]), (&true.into(), &Value::Null));
    let words = ["perf", "serve", "--bind", &perf.to_string()];
    let mut measuring =
        Running::of(far.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()));
    measuring.address();
    let line = ["--cc", "line", "--rate", "20mbit"];
    let (_, with) = found(&[&["--perf-port", &port], &line[..]].concat());
    assert!(with["goodput_bps"].as_u64() > Some(0), "{with}");

    // Its key is another one than the book has.
    near.done(&["node", "remove", "far"]);
    near.done(&["node", "add", "far", &address, &key('a')]);
    let (output, wrong) = found(&[]);
    assert_eq!(wrong["ways"][0]["state"], "wrong-key", "{wrong}");
    let parts = [&far.fingerprint(), &key('a'), "skyhaul node add far", &address];
    assert_told(&output, 4, &parts);
    // It does not know this node.
    let stranger = User::new();
    stranger.done(&["node", "add", "far", &address, &far.fingerprint()]);
    let refused = stranger.run(&["node", "test", "far"]);
    assert_told(&refused, 4, &["does not know this one's key", &stranger.fingerprint()]);
    drop(serving);
    near.done(&["node", "add", "far", &far.fingerprint()]);
    let (output, gone) = found(&[]);
    assert_eq!(gone["reachable"], false, "{gone}");
    assert_eq!(gone["ways"][1]["state"], "unreachable", "{gone}");
    assert_told(&output, 4, &["`far` is not reached", &address]);
    let unknown = near.run(&["node", "test", "fra"]);
    assert_told(&unknown, 2, &["no node `fra`", "did you mean `far`?"]);
    near.done(&["node", "add", "caller", &key('b')]);
    assert_told(&near.run(&["node", "test", "caller"]), 2, &["has no address"]);
}
