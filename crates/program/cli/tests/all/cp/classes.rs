//! Copies under a class of either end's tree.

use super::{Ends, noise, summary};
use crate::support::process::text;
use crate::support::refusal::assert_refused;
use serde_json::Value;
use std::fs;

/// A class that is slower than the line, and one that is not.
const TREE: &str =
    "[[class]]\nname = \"bulk\"\nceiling = \"8 Mbit/s\"\n\n[[class]]\nname = \"live\"\n";

/// Asserts that a file of 2 MB took at least as long as 8 Mbit/s allow. A slow machine takes
/// longer.
#[track_caller]
fn assert_held(account: &Value) {
    let rate = account["rate_bps"].as_u64().unwrap();
    assert_eq!(account["copied"], 1, "{account}");
    assert!(rate < 8_500_000, "{account}");
}

#[test]
fn an_upload_keeps_to_the_ceiling_of_its_class_at_this_end() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/classes.toml"), TREE).unwrap();
    fs::write(ends.path("near/file"), noise(2_000_000, 1)).unwrap();
    assert_held(&ends.copied(&["file", "far:", "--config", "classes.toml", "--class", "bulk"]));
    assert_eq!(fs::read(ends.path("far/file")).unwrap(), noise(2_000_000, 1));
    let other = ends.cp(&["file", "far:other", "--config", "classes.toml", "--class", "none"]);
    assert_refused(&other, 2, &["there is no class `none` for a copy", "bulk, live"]);
}

#[test]
fn a_download_keeps_to_the_ceiling_of_its_class_at_the_far_end() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("classes.toml");
    fs::write(&tree, TREE).unwrap();
    let ends = Ends::new(&["--config", tree.to_str().unwrap()]);
    fs::write(ends.path("far/file"), noise(2_000_000, 2)).unwrap();
    assert_held(&ends.copied(&["far:file", ".", "--class", "bulk"]));
    assert_eq!(fs::read(ends.path("near/file")).unwrap(), noise(2_000_000, 2));
    let other = ends.cp(&["far:file", "other", "--class", "none"]);
    assert_refused(
        &other,
        4,
        &["the far node `far` refuses", "no class `none` there", "bulk, live"],
    );
}

#[test]
fn a_mirror_keeps_to_the_ceiling_of_its_class() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir(ends.path("near/tree")).unwrap();
    fs::write(ends.path("near/tree/file"), noise(2_000_000, 3)).unwrap();
    fs::write(ends.path("near/classes.toml"), TREE).unwrap();
    let node = format!("far={}", ends.address);
    let words = [
        "sync",
        "tree",
        "far:",
        "--node",
        &node,
        "--insecure-test",
        "--cc",
        "line",
        "--rate",
        "400mbit",
    ];
    let classes = ["--config", "classes.toml", "--class", "bulk", "--json"];
    let output =
        crate::support::process::run(&[&words[..], &classes[..]].concat(), &ends.path("near"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_held(&summary(&text(&output.stdout)));
}
