//! Sources that change while they are read.

use super::{Ends, assert_no_parts, noise, summary};
use crate::support::patience::until;
use crate::support::process::{Ended, Running};
use serde_json::Value;
use std::fs;

/// Starts a copy of `large`, and waits until a part of it is at the far end.
fn begun(ends: &Ends, words: &[&str]) -> Running {
    fs::write(ends.path("near/large"), noise(48 << 20, 11)).unwrap();
    let copying = ends.start(words);
    let map = ends.path("far/.large.skyhaul-map");
    let is_begun = || fs::metadata(&map).is_ok_and(|map| map.len() > 36).then_some(());
    until(is_begun, || "no chunk of the file is mapped".to_owned());
    copying
}

/// The message about the one file that failed. The other files must have arrived.
#[track_caller]
fn failed(ended: &Ended, copied: u64) -> Value {
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    let account = summary(&ended.output);
    assert_eq!((&account["copied"], &account["failed"]), (&copied.into(), &1.into()), "{account}");
    let lines = ended.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.into_iter().find(|line| line["event"] == "failed").unwrap()
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_reported_and_leaves_nothing_under_its_name() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/small"), "small").unwrap();
    let copying = begun(&ends, &["small", "large", "far:"]);
    fs::File::options()
        .write(true)
        .open(ends.path("near/large"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let told = failed(&copying.end(), 1);
    assert_eq!(
        (&told["path"], &told["reason"], &told["by"]),
        (&"large".into(), &"changed".into(), &"here".into())
    );
    assert!(!ends.path("far/large").exists() && ends.path("far/small").exists());

    assert_eq!(
        ends.copied(&["large", "far:"])["resumed_bytes"],
        0,
        "what came belongs to another file"
    );
    assert_eq!(fs::read(ends.path("far/large")).unwrap(), noise(48 << 20, 11)[..1 << 20]);
    assert_no_parts(&ends.path("far"));
}

#[test]
fn a_file_that_is_written_to_while_it_is_read_is_reported_and_leaves_nothing_under_its_name() {
    let ends = Ends::new(&["--write"]);
    let copying = begun(&ends, &["large", "far:"]);
    fs::File::options()
        .append(true)
        .open(ends.path("near/large"))
        .unwrap()
        .set_len(50 << 20)
        .unwrap();
    assert_eq!(failed(&copying.end(), 0)["reason"], "changed");
    assert!(!ends.path("far/large").exists());
}

#[test]
fn a_file_that_vanishes_before_it_is_read_is_reported_and_the_others_arrive() {
    let ends = Ends::new(&["--write"]);
    fs::write(ends.path("near/second"), noise(1 << 20, 12)).unwrap();
    let copying = begun(&ends, &["large", "second", "far:"]);
    fs::remove_file(ends.path("near/second")).unwrap();
    let told = failed(&copying.end(), 1);
    assert_eq!((&told["path"], &told["reason"]), (&"second".into(), &"vanished".into()), "{told}");
    assert_eq!(fs::read(ends.path("far/large")).unwrap(), noise(48 << 20, 11));
    assert!(!ends.path("far/second").exists());
    assert_no_parts(&ends.path("far"));
}
