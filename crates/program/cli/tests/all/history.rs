//! The history of real nodes: over a kill, and where its folder cannot be used.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::patience::until;
use crate::support::process::{run, text};
use crate::support::site::{Site, channel};
use serde_json::Value;

const HISTORY: &str = "[history]\nkeep = \"2 d\"\n";

/// The lines of JSON that `skyhaul history` prints.
fn lines(site: &Site, arguments: &[&str]) -> Vec<Value> {
    let common = ["history", "--config", "centre.toml", "--json"];
    let said = run(&[&common, arguments].concat(), site.folder());
    let lines = text(&said.stdout);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asks until a series has rows for which this holds.
#[track_caller]
fn rows(site: &Site, arguments: &[&str], holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    until(
        || Some(lines(site, arguments)).filter(|rows| holds(rows)),
        || format!("{arguments:?}: {:?}", lines(site, arguments)),
    )
}

/// Values in all rows.
fn count(rows: &[Value]) -> u64 {
    rows.iter().filter_map(|row| row["count"].as_u64()).sum()
}

#[test]
fn a_node_that_is_killed_while_it_keeps_its_history_goes_on_with_it() {
    let mut site = Site::with(&format!("session = true\n{HISTORY}"));
    site.write(&channel(""));
    assert_eq!(site.start().end().code, Some(0));
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    // Frames and the product that nobody gets have their times, with the contact of the longest.
    let mission = ["frames/suomi-npp/total_s", "delivery/suomi-npp/total_s"];
    for series in mission {
        let found = rows(&site, &[series], |rows| count(rows) > 0);
        assert!(found[0]["worst"].as_str().unwrap().starts_with("s-"), "{found:?}");
        assert!(found[0]["p95"].as_f64() >= found[0]["p50"].as_f64(), "{found:?}");
    }
    let elements = lines(&site, &[]).len();
    assert!(elements > 20, "{elements} series");
    let before = lines(&site, &[mission[0], "--step", "1 min"]);
    let (frames, minute) = (count(&before), before.last().unwrap()["at"].clone());
    // Its minute is on the disk; the kill comes while the next one goes on.
    rows(&site, &["store/all/disk_bytes", "--step", "1 min"], |rows| {
        rows.last().is_some_and(|row| row["at"].as_str() > minute.as_str())
            && count(&rows[rows.len() - 1..]) > 2
    });
    let seconds = lines(&site, &["store/all/disk_bytes", "--last", "10 min", "--step", "1 s"]);
    assert!(seconds.len() > 2, "{seconds:?}");
    site.kill_centre();
    site.start_centre();
    // What was before is there, and it goes on.
    let again = rows(&site, &["frames/suomi-npp/total_s", "--step", "1 h"], |rows| count(rows) > 0);
    assert_eq!(count(&again), frames, "{again:?}");
    rows(&site, &["store/all/disk_bytes", "--last", "10 min", "--step", "1 s"], |rows| {
        rows.len() > 2
    });
    let shown = run(&["history", mission[0], "--config", "centre.toml"], site.folder());
    let shown = text(&shown.stdout);
    assert!(shown.contains("by 5 min, in seconds") && shown.contains("greatest of s-"), "{shown}");
    let wrong = run(&["history", "x", "--config", "centre.toml"], site.folder());
    assert!(text(&wrong.stderr).contains("there is no series `x`"), "{}", text(&wrong.stderr));
}

#[test]
fn where_the_history_cannot_be_kept_nothing_else_is_lacking() {
    let mut site = Site::with(&format!("session = true\n{HISTORY}"));
    site.kill_centre();
    let folder = site.folder().join("state/history");
    // It may have been killed before it made the folder.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::write(&folder, "in the way").unwrap();
    site.start_centre();
    let alarm = site.centre_until(|status| {
        let alarms = status["alarms"].as_array()?;
        alarms.iter().find(|alarm| alarm["kind"] == "history-stopped").cloned()
    });
    assert!(alarm["sentence"].as_str().unwrap().contains("state/history"), "{alarm}");
    site.write_by(
        &site.centre_until(|status| Some(status["address"].as_str()?.to_owned())),
        &channel(""),
    );
    assert_eq!(site.start().end().code, Some(0));
    site.assert_whole();
    // It begins when it can.
    std::fs::remove_file(&folder).unwrap();
    rows(&site, &["store/all/disk_bytes", "--last", "10 min", "--step", "1 s"], |rows| {
        !rows.is_empty()
    });
    site.centre_until(|status| status["alarms"].as_array()?.is_empty().then_some(()));
}
