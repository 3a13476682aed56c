//! The line of a station and the work of its operator, with real processes: several paths that come
//! and go; classes, deadlines, forecasts of outages.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{Running, printed};
use crate::support::recordings::{DAMAGED, recording};
use crate::support::site::{Site, channel, channel_of};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{PipeWriter, Write};

/// A proxy on the way to the site's centre, and where it listens.
fn proxy(site: &Site, flags: &[&str]) -> (Running, String) {
    let arguments = ["emulate", "--listen", "127.0.0.1:0", "--to", &site.address];
    let mut running = Running::start(&[&arguments, flags].concat(), site.folder());
    let address = running.address();
    (running, address)
}

/// A short way and a longer one.
fn two_ways(site: &Site) -> [(Running, String); 2] {
    ["5ms", "15ms"].map(|delay| proxy(site, &["--delay", delay]))
}

/// Gives an order, which must be carried out.
fn order(site: &Site, arguments: &[&str]) -> String {
    printed(&[&["path"], arguments, &["--node", "spool/status.sock"]].concat(), site.folder())
}

fn states(status: &Value) -> Vec<String> {
    let paths = status["destinations"][0]["line"]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().map(|path| path["state"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The value of a key in the status of the path with this name.
fn of_path(status: &Value, name: &str, key: &str) -> Option<Value> {
    let paths = status["destinations"][0]["line"]["paths"].as_array()?;
    paths.iter().find(|path| path["name"] == name).map(|path| path[key].clone())
}

fn names(status: &Value) -> Vec<String> {
    let paths = status["destinations"][0]["line"]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().map(|path| path["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The damaged recording, which the test gives to a channel piece by piece. What must happen while
/// data flows happens while there is more to come, however slow the machine is.
struct Downlink {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    given: usize,
}

const CHANNEL: &str = "[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"600 s\"\n";

impl Downlink {
    /// A station that gets the recording, and has got nothing yet.
    fn start(site: &Site) -> (Running, Self) {
        let (input, pipe) = std::io::pipe().unwrap();
        let bytes = std::fs::read(recording(DAMAGED)).unwrap();
        (site.start_from(input), Self { pipe, bytes, given: 0 })
    }

    /// Gives the next third.
    fn third(&mut self) {
        let until = self.bytes.len().min(self.given + self.bytes.len().div_ceil(3));
        self.pipe.write_all(&self.bytes[self.given..until]).unwrap();
        self.given = until;
    }
}

fn sent(status: &Value, name: &str) -> u64 {
    of_path(status, name, "bytes_sent").and_then(|sent| sent.as_u64()).unwrap_or(0)
}

#[test]
fn a_station_uses_both_paths_and_loses_nothing_when_one_fails() {
    let site = Site::new();
    let [(first, by_first), (second, by_second)] = two_ways(&site);
    site.write(&format!(
        "[line]\nrate = \"20 Mbit/s\"\n\
         [[path]]\nlocal = \"127.0.0.1\"\nremote = \"{by_first}\"\n\
         [[path]]\nlocal = \"127.0.0.2\"\nremote = \"{by_second}\"\n\
         {CHANNEL}"
    ));
    let (station, mut downlink) = Downlink::start(&site);
    downlink.third();
    downlink.third();
    let busier = site.until(|status| {
        let sent = ["path-1", "path-2"].map(|path| sent(status, path));
        let both = states(status) == ["active", "active"] && sent[0] + sent[1] > 200_000;
        both.then_some(usize::from(sent[1] > sent[0]))
    });
    let shown = site.shown("station.toml");
    assert_eq!(shown.lines().filter(|line| line.starts_with("  path-")).count(), 2, "{shown}");
    let wide = shown.lines().filter(|line| line.starts_with("  path") && line.chars().count() > 80);
    assert_eq!(wide.count(), 0, "{shown}");
    // The proxy of the busier path ends without a message to either side: the path stops answering.
    let _other = if busier == 0 {
        drop(first);
        second
    } else {
        drop(second);
        first
    };
    downlink.third();
    drop(downlink);
    assert_eq!(station.end().code, Some(0));
    site.assert_whole();
}

#[test]
fn a_sighup_adds_a_path_and_removes_one_while_data_flows() {
    let site = Site::new();
    let [(_first, by_first), (_second, by_second)] = two_ways(&site);
    let first = format!("[[path]]\nname = \"a\"\nremote = \"{by_first}\"\n");
    let second = format!("[[path]]\nname = \"b\"\ninterface = \"lo\"\nremote = \"{by_second}\"\n");
    site.write(&format!("{first}{CHANNEL}"));
    let (station, mut downlink) = Downlink::start(&site);
    downlink.third();
    site.until(|status| (sent(status, "a") > 100_000).then_some(()));
    site.write(&format!("{first}{second}{CHANNEL}"));
    station.signal(Signal::HUP);
    site.until(|status| {
        (names(status) == ["a", "b"] && states(status) == ["active", "active"]).then_some(())
    });
    downlink.third();
    site.write(&format!("[line]\nmtu = \"1400 B\"\n{second}{CHANNEL}"));
    station.signal(Signal::HUP);
    site.until(|status| (names(status) == ["b"]).then_some(()));
    downlink.third();
    drop(downlink);
    assert_eq!(station.end().code, Some(0));
    site.assert_whole();
}

#[test]
fn paths_are_added_hinted_and_removed_by_command_while_data_flows() {
    let site = Site::new();
    let [(_first, by_first), (_second, by_second)] = two_ways(&site);
    site.write(&format!("[[path]]\nname = \"a\"\nremote = \"{by_first}\"\n{CHANNEL}"));
    let (station, mut downlink) = Downlink::start(&site);
    downlink.third();
    site.until(|status| (sent(status, "a") > 50_000).then_some(()));
    let with = |arguments: &[&str]| order(&site, arguments);
    with(&["add", "b", "--interface", "lo", "--remote", &by_second]);
    site.until(|status| (states(status) == ["active", "active"]).then_some(()));
    with(&["hint", "a", "--from", "2026-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z"]);
    let before = site.until(|status| {
        let absent = of_path(status, "a", "state")? == "absent";
        absent.then(|| (sent(status, "a"), sent(status, "b")))
    });
    downlink.third();
    assert!(with(&["list"]).contains("absent: outage forecast until 2100-01-01T00:00:00Z"));
    let stalls = site.until(|status| {
        let goes_on = sent(status, "b") > before.1 + 100_000;
        goes_on.then(|| (sent(status, "a"), of_path(status, "a", "stalls")))
    });
    assert_eq!(stalls, (before.0, Some(0.into())), "nothing goes there, and it is no alarm");
    with(&["remove", "a"]);
    site.until(|status| (names(status) == ["b"]).then_some(()));
    downlink.third();
    drop(downlink);
    assert_eq!(station.end().code, Some(0));
    site.assert_whole();
}

#[test]
fn each_class_gets_its_guaranteed_rate_on_a_slow_line() {
    let site = Site::new();
    let (_proxy, by_proxy) = proxy(&site, &["--delay", "5ms", "--rate", "4 Mbit/s"]);
    let channel = |name: &str| {
        channel_of(
            name,
            &format!(
                "rate = \"16 Mbit/s\"\n[[subscription]]\nof = \"contacts\"\nchannel = \
                [\"{name}\"]\nclass = \"{name}\"\n"
            ),
        )
    };
    site.write(&format!(
        "[line]\nrate = \"4 Mbit/s\"\n[spool]\nsync_interval = \"20 ms\"\n[[path]]\nremote = \
        \"{by_proxy}\"\n\
         [[class]]\nname = \"large\"\nguarantee = \"2700 kbit/s\"\n\
         [[class]]\nname = \"small\"\nguarantee = \"900 kbit/s\"\n{}{}",
        channel("small"),
        channel("large"),
    ));
    let station = site.start();
    let frames = |status: &Value, channel: &str| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["channel"] == channel)?["frames"].as_f64()
    };
    // One channel may begin before the other.
    let beyond = |least| {
        site.centre_until(|status| {
            let (large, small) = (frames(status, "large")?, frames(status, "small")?);
            (large > least && small > 0.0).then_some((large, small))
        })
    };
    let (first, last) = (beyond(100.0), beyond(600.0));
    let share = (last.1 - first.1) / (last.0 - first.0);
    assert!((0.2..0.55).contains(&share), "9 parts of 27, and half of what is left: {share}");
    assert_eq!(station.end().code, Some(0));
}

#[test]
fn a_station_forecasts_a_missed_deadline_before_it_passes() {
    let site = Site::new();
    site.write(&format!(
        "[line]\nrate = \"1 Mbit/s\"\n[spool]\nsync_interval = \"20 ms\"\n\
         {}",
        channel("rate = \"16 Mbit/s\"\n[[subscription]]\nof = \"contacts\"\ndeadline = \"4 s\"\n"),
    ));
    let _station = site.start();
    let spare = site.until(|status| {
        let alarms = status["alarms"].as_array()?;
        let told = alarms.iter().any(|alarm| {
            alarm["sentence"].as_str().unwrap_or_default().contains("will miss its deadline by")
        });
        status["destinations"][0]["forecasts"][0]["spare_s"]
            .as_f64()
            .filter(|spare| told && *spare < 0.0)
    });
    assert!(spare < 0.0 && spare > -8.0, "7.5 s for all of it, due within 4: {spare}");
    let shown = site.shown("station.toml");
    assert!(shown.contains("LATE by") && shown.contains("ALARM"), "{shown}");
}
