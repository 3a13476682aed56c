//! What is known of paths from outside: `skyhaul path hint`, feeds of modems, contact plans.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{Running, printed, run};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write as _;

const TABLE: &str = "[[path.map]]\nwhen = \"snr>=8\"\nrate = \"40 Mbit/s\"\nloss = \"0.1 %\"\n\
                     [[path.map]]\nrate = \"5 Mbit/s\"\nloss = \"2 %\"\n";

fn path(keys: &str) -> String {
    format!("[[path]]\nname = \"a\"\n{keys}\n")
}

fn path_of(status: &Value) -> &Value {
    &status["destinations"][0]["line"]["paths"][0]
}

/// The hints in force: what, by whom, and the figure.
fn hints(status: &Value) -> Vec<(String, String, f64)> {
    let hints = path_of(status)["hints"].as_array().cloned().unwrap_or_default();
    let text = |hint: &Value, key: &str| hint[key].as_str().unwrap_or_default().to_owned();
    let figure = |hint: &Value| hint["rate_bps"].as_f64().or(hint["loss"].as_f64()).unwrap_or(0.0);
    let shown = |hint: &Value| (text(hint, "hint"), text(hint, "by"), figure(hint));
    hints.iter().map(shown).collect()
}

/// The paths of the station, as the centre shows them.
fn paths_there(centre: &Value) -> Vec<Value> {
    centre["stations"][0]["paths"].as_array().cloned().unwrap_or_default()
}

fn hint(what: &str, by: &str, figure: f64) -> (String, String, f64) {
    (what.to_owned(), by.to_owned(), figure)
}

fn has_alarm(status: &Value, part: &str) -> bool {
    let alarms = status["alarms"].as_array().cloned().unwrap_or_default();
    alarms.iter().any(|alarm| alarm["sentence"].as_str().unwrap_or_default().contains(part))
}

#[test]
fn a_modem_that_tells_of_a_fade_is_believed_until_it_is_silent() {
    let site = Site::new();
    let modem = site.folder().join("modem.txt");
    let feed = "feed = \"file:modem.txt\"\nfeed_stale = \"2 s\"";
    std::fs::write(&modem, "snr=12.5dB\n").unwrap();
    site.write(&path(&format!("{feed}\n{TABLE}")));
    let station = Running::start_logged(&["run", "station.toml"], site.folder());
    let fine = [hint("rate", "feed", 4e7), hint("loss", "feed", 0.001)];
    site.until(|status| (hints(status) == fine).then_some(()));
    std::fs::write(&modem, "snr=3.1dB\n").unwrap();
    let faded = [hint("rate", "feed", 5e6), hint("loss", "feed", 0.02)];
    let status = site.until(|status| (hints(status) == faded).then(|| status.clone()));
    assert_eq!(path_of(&status)["feed"]["newest"], "snr=3.1dB");
    // The operator knows better.
    let order = |arguments: &[&str]| {
        let words = [&["path", "hint", "a"], arguments, &["--config", "station.toml"]].concat();
        run(&words, site.folder())
    };
    let said = order(&["--loss", "7 %", "--until", "2100-01-01T00:00:00Z"]);
    assert!(said.status.success(), "{said:?}");
    site.until(|status| {
        let by_operator = hint("loss", "operator", 0.07);
        hints(status).contains(&by_operator).then_some(())
    });
    let refused = order(&["--loss", "95 %", "--until", "2100-01-01T00:00:00Z"]);
    assert_refused(&refused, 2, &["a loss of 95 % is out of range", "path a"]);
    let refused = order(&["--rate", "1 bit/s"]);
    assert_refused(&refused, 2, &["a rate of 1 bit/s is out of range", "path a"]);
    // The modem falls silent: its hint expires, and the operator's stays.
    let stale =
        site.until(|status| has_alarm(status, "the feed of path a").then(|| status.clone()));
    assert!(has_alarm(&stale, "no line for more than 2 s"), "{:#}", stale["alarms"]);
    site.until(|status| (hints(status) == [hint("loss", "operator", 0.07)]).then_some(()));
    let shown = site.shown("station.toml");
    let part = "hint: loss 7.00 %, from the operator, until 2100-01-01T00:00:00Z";
    assert!(shown.contains(part) && shown.contains("feed: STALE, "), "{shown}");
    std::fs::write(&modem, "nonsense\n").unwrap();
    site.until(|status| (path_of(status)["feed"]["garbage"] == 1).then_some(()));
    std::fs::write(&modem, "snr=8\n").unwrap();
    site.until(|status| hints(status).contains(&hint("rate", "feed", 4e7)).then_some(()));
    // Another feed, by SIGHUP; the path and its operator's hint stay.
    let command = "feed = \"exec:while :; do echo rate=9Mbit/s; sleep 0.2; done\"";
    site.write(&path(command));
    station.signal(Signal::HUP);
    site.until(|status| hints(status).contains(&hint("rate", "feed", 9e6)).then_some(()));
    // It goes on, so that the alarm of the silent one is cleared.
    site.until(|status| (!has_alarm(status, "the feed of path a")).then_some(()));
    let status = site.until(|status| Some(status.clone()));
    assert!(hints(&status).contains(&hint("loss", "operator", 0.07)), "{:?}", hints(&status));
    assert_eq!(status["destinations"][0]["line"]["connects"], 1);
    site.write(&path(""));
    station.signal(Signal::HUP);
    site.until(|status| path_of(status)["feed"].is_null().then_some(()));
    station.signal(Signal::TERM);
    let ended = station.end();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    assert!(ended.log.contains("path a: its feed and plan are read anew"), "{}", ended.log);
    assert!(ended.log.contains("path a: its feed and plan are not used any more"));
    assert!(ended.log.contains("lines of the feed are refused; the first: `nonsense` is not"));
}

#[test]
fn a_contact_plan_is_followed_and_read_again_when_it_changes() {
    let site = Site::new();
    let plan = site.folder().join("plan.csv");
    // Ten thousand windows of the past, and one that lasts.
    let mut windows = "start,end,rate,loss\n".to_owned();
    for number in 0..10_000 {
        let [day, hour] = [1 + number / 24 % 28, number % 24];
        let [month, year] = [1 + number / 24 / 28 % 12, 2000 + number / 24 / 28 / 12];
        let at = format!("{year}-{month:02}-{day:02}T{hour:02}");
        writeln!(windows, "{at}:00:00Z,{at}:08:00Z,80 Mbit/s").unwrap();
    }
    let lasting = "2026-01-01T00:00:00Z,2100-01-01T00:00:00Z,30 Mbit/s,0.5 %\n";
    std::fs::write(&plan, format!("{windows}{lasting}")).unwrap();
    site.write(&path("plan = \"plan.csv\""));
    let station = site.start_to_stay();
    let present = [hint("rate", "plan", 3e7), hint("loss", "plan", 0.005)];
    let status = site.until(|status| (hints(status) == present).then(|| status.clone()));
    assert_eq!(path_of(&status)["plan"]["windows"], 10_001);
    assert_eq!(path_of(&status)["plan"]["ahead"], 1);
    // A broken file changes nothing, and is named.
    std::fs::write(&plan, format!("{lasting}2101-01-01,never,fast\n")).unwrap();
    let status =
        site.until(|status| has_alarm(status, "the plan of path a").then(|| status.clone()));
    assert!(has_alarm(&status, "plan.csv, line 2: "), "{:#}", status["alarms"]);
    assert_eq!(hints(&status), present);
    // The next file says that the path is out until the end of the century.
    let later = "[{\"start\": \"2099-01-01T00:00:00Z\", \"end\": \"2100-01-01T00:00:00Z\", \
                 \"rate\": \"1 Mbit/s\"}]";
    std::fs::write(&plan, later).unwrap();
    site.until(|status| {
        let is_out = hints(status) == [hint("outage", "plan", 0.0)];
        (is_out && !has_alarm(status, "the plan of path a")).then_some(())
    });
    let shown = printed(&["path", "list", "--config", "station.toml"], site.folder());
    assert!(shown.contains("outage forecast until 2099-01-01T00:00:00Z"), "{shown}");
    assert!(shown.contains("plan: 1 of 1 windows ahead, the next from 2099-01-01"), "{shown}");
    station.signal(Signal::TERM);
    assert_eq!(station.end().code, Some(0));
}

#[test]
fn a_node_that_receives_takes_hints_for_the_paths_of_nodes_that_connect() {
    let site = Site::new();
    site.write(&path(""));
    let order = |name: &str, arguments: &[&str]| {
        let words = [&["path", "hint", name], arguments, &["--config", "centre.toml"]].concat();
        run(&words, site.folder())
    };
    let until = ["--until", "2100-01-01T00:00:00Z"];
    let (rate, loss) = (["--rate", "5 Mbit/s"], ["--loss", "20 %"]);
    let (rate, loss) = ([&rate[..], &until].concat(), [&loss[..], &until].concat());
    assert_refused(&order("s", &rate), 2, &["s is not connected", "or give it there"]);
    assert_refused(&order("x", &rate), 2, &["no node of this name", "the nodes are s"]);
    let mut station = site.start_to_stay();
    site.centre_until(|centre| (paths_there(centre).first()?["state"] == "active").then_some(()));
    let shown = printed(&["path", "list", "--config", "centre.toml"], site.folder());
    assert!(shown.contains("of s, which has connected") && shown.contains("s/0"), "{shown}");
    assert_refused(&order("s/7", &rate), 2, &["s has no such path", "its paths are 0"]);
    assert_refused(&order("s/a", &rate), 2, &["no number of a path"]);
    assert_refused(&order("s", &["--rate", "1 bit/s"]), 2, &["a rate of 1 bit/s is out of range"]);
    for (name, hint) in [("s", &rate), ("s/0", &loss)] {
        assert!(order(name, hint).status.success(), "{:?}", order(name, hint));
    }
    let hinted = |centre: &Value, count: usize| {
        let paths = paths_there(centre);
        let first = paths.first().cloned().unwrap_or_default();
        let is_so = first["hints"].as_array().is_some_and(|hints| hints.len() == count);
        is_so.then_some(first)
    };
    let first = site.centre_until(|centre| hinted(centre, 2));
    let says = |hint: &Value| (hint["hint"].clone(), hint["by"].clone());
    let by = |what: &str| (Value::from(what), Value::from("operator"));
    let hints: Vec<_> = first["hints"].as_array().unwrap().iter().map(says).collect();
    assert_eq!(hints, [by("rate"), by("loss")], "{first:#}");
    // What the session plans with is what was said.
    site.centre_until(|centre| (paths_there(centre).first()?["loss"] == 0.2).then_some(()));
    // The hint for all paths is there in the next session too; that for a number is not.
    station.kill();
    let _station = site.start_to_stay();
    let first = site.centre_until(|centre| hinted(centre, 1));
    assert_eq!(says(&first["hints"][0]), by("rate"), "{first:#}");
    let said = order("s", &["--withdraw"]);
    assert!(said.status.success(), "{said:?}");
    site.centre_until(|centre| hinted(centre, 0));
}
