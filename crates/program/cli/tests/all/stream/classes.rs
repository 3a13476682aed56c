//! Streams under a class.

use super::{Ends, count, summary, vdif};
use crate::support::process::{run, text};
use crate::support::refusal::{assert_refused, assert_told};
use std::fs;

#[test]
fn a_stream_keeps_to_the_ceiling_of_its_class_and_drops_what_is_above() {
    let ends = Ends::new(&["--allow", "null"]);
    fs::write(ends.path("x.vdif"), vdif(4_000)).unwrap();
    fs::write(
        ends.path("classes.toml"),
        "[[class]]\nname = \"slow\"\nceiling = \"1 Mbit/s\"\n[[class]]\nname = \"live\"\n",
    )
    .unwrap();
    let node = format!("far={}", ends.address);
    let stream = |class| {
        let words = [
            "stream",
            "--from",
            "x.vdif",
            "--to",
            "far:null",
            "--pace",
            "20mbit",
            "--node",
            &node,
            "--insecure-test",
        ];
        let line = [
            "--lateness",
            "100ms",
            "--budget",
            "50 %",
            "--json",
            "--cc",
            "line",
            "--rate",
            "100mbit",
        ];
        run(
            &[&words[..], &line, &["--config", "classes.toml", "--class", class]].concat(),
            ends.folder.path(),
        )
    };
    let slow = stream("slow");
    assert_told(&slow, 1, &["above the budget of 50 %"]);
    let account = summary(&text(&slow.stdout));
    assert!(count(&account, "lost") > 2_000 && count(&account, "sent") == 4_000, "{account}");
    assert_refused(&stream("other"), 2, &["there is no class `other` for a stream", "slow, live"]);
}
