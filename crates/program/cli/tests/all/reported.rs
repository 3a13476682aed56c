//! What nodes report of themselves to each other: an alarm of a station is at the centre, and a
//! station that was killed says nothing more.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::page::get;
use crate::support::browser::Browser;
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::refusal::assert_refused;
use crate::support::site::{Site, channel};
use serde_json::Value;

/// Another destination of the station, which is never there: that is an alarm.
const AWAY: &str = "[[peer]]\nname = \"d\"\naddresses = [\"127.0.0.1:9\"]\nfingerprints = \
    [\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n\
    silent_after = \"1 s\"\n[[destination]]\nto = \"node:d\"\n";

/// What a node shows of the node `name`, as soon as `is_enough` says so of it.
#[track_caller]
fn seen(site: &Site, config: &str, name: &str, is_enough: impl Fn(&Value) -> bool) -> Value {
    let list = ["nodes", "--config", config, name];
    let look = || {
        let answer = run(&[&list[..], &["--json"]].concat(), site.folder());
        let one: Value = serde_json::from_slice(&answer.stdout).ok()?;
        is_enough(&one).then_some(one)
    };
    until(look, || {
        let answer = run(&["nodes", "--config", config], site.folder());
        text(&answer.stdout) + &text(&answer.stderr)
    })
}

/// Waits until the metrics of the centre have these lines, and none that begins with `not`.
#[track_caller]
fn metrics(address: &str, lines: &[&str], not: &str) {
    let look = || {
        let (_, found) = get(address, "/metrics", "text/plain");
        let has = |line: &&str| found.lines().any(|one| one == *line);
        let is_clean = !found.lines().any(|one| one.starts_with(not));
        (lines.iter().all(has) && is_clean).then_some(())
    };
    until(look, || get(address, "/metrics", "text/plain").1);
}

#[test]
fn a_centre_shows_the_alarms_of_its_station_and_says_when_its_report_grows_stale() {
    let site = Site::with("[web]\nbind = \"127.0.0.1:0\"\n");
    site.write(&(AWAY.to_owned() + &channel("")));
    let mut station = site.start_to_stay();
    let reported = seen(&site, "centre.toml", "s", |one| {
        one["state"] == "alarm" && one["report"]["spool"]["blocks"].as_u64() > Some(0)
    });
    let report = &reported["report"];
    assert_eq!((&report["sends"], &report["receives"]), (&true.into(), &false.into()));
    assert_eq!(report["alarms"]["critical"], 1, "{report:#}");
    let said = report["worst"][0]["sentence"].as_str().unwrap();
    assert!(said.starts_with("node d is silent"), "{said}");
    assert!(reported["started"].as_str().unwrap() <= reported["heard"].as_str().unwrap());
    // The station hears of the centre over the same session, and of the other one nothing.
    let centre = seen(&site, "station.toml", "c", |one| one["state"] == "ok");
    assert_eq!(centre["report"]["receives"], true, "{centre:#}");
    let away = seen(&site, "station.toml", "d", |one| one["state"] == "unheard");
    assert_eq!((&away["connected"], &away["report"]), (&false.into(), &Value::Null));
    let status = run(&["status", "--config", "centre.toml", "--json"], site.folder());
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let address = status["web"]["address"].as_str().unwrap().to_owned();
    let critical = "skyhaul_reported_alarms{node=\"s\",severity=\"critical\"} 1";
    metrics(&address, &[critical, "skyhaul_report_stale{node=\"s\"} 0"], "skyhaul_none");
    let rows = |query: &str| {
        let (_, body) = get(&address, &format!("/api/v1/nodes{query}"), "*/*");
        serde_json::from_str::<Value>(&body).unwrap()["rows"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((rows("?state=alarm"), rows("?state=stale")), (1, 0));
    let shown = printed(&["nodes", "--config", "centre.toml"], site.folder());
    assert!(shown.contains("ALARM") && shown.contains("blocks") && shown.contains(said), "{shown}");
    let mut browser = Browser::start(site.folder());
    browser.iter_mut().for_each(|browser| browser.open(&address));
    let mut shows = |screen: &str, parts: [&str; 3]| {
        let Some(browser) = &mut browser else { return };
        browser.value(&format!("location.hash = '#{screen}'"));
        for part in parts {
            browser.until(&format!("document.body.innerText.includes('{part}')"));
        }
        assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    };
    shows("nodes", ["node d is silent", "1 critical", "Nodes (1)"]);
    station.kill();
    // Three reports did not come, or the session is known to be over: what is first depends on the
    // rest that the line had.
    let stale = seen(&site, "centre.toml", "s", |one| one["state"] == "stale");
    let shown = printed(&["nodes", "--config", "centre.toml"], site.folder());
    let since = format!("STALE    since {}: no ", stale["heard"].as_str().unwrap());
    assert!(shown.contains(&since) && shown.contains("node d is silent"), "{shown}");
    assert!(site.shown("centre.toml").contains("0 report alarms and 1 are stale"));
    metrics(&address, &["skyhaul_report_stale{node=\"s\"} 1"], "skyhaul_reported_alarms{");
    shows("node/s", ["Stale since", "It said: node d is silent", "What it has"]);
    let other = run(&["nodes", "--config", "centre.toml", "x"], site.folder());
    assert_refused(&other, 2, &["no node `x` reports here"]);
}
