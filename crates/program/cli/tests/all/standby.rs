//! Two stations on one feed, of which one stands by for the other: real processes, real frames over
//! UDP.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the feed is sent at its own pace")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run};
use crate::support::recordings::{expected, recording};
use crate::support::refusal::assert_refused;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const RECORDING: &str = "npp.20241206T173815.dat";
const CADU: usize = 1_024;
/// CADUs in one datagram, and the time between two: the recording of 1 MB lasts some 4 s.
const TOGETHER: usize = 4;
const PACE: Duration = Duration::from_millis(16);
const STATIONS: [&str; 2] = ["station-1", "station-2"];

/// A centre, a first station, and one that stands by for it.
struct Pair {
    folder: tempfile::TempDir,
    _centre: Running,
    stations: [Option<Running>; 2],
    feeds: [SocketAddr; 2],
    feeder: UdpSocket,
}

impl Pair {
    fn start(standby_of: &str, keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let key = node::make_key("centre", at);
        let address = node::free_address();
        let mut centre = node::table("centre", "centre".as_ref());
        centre += &format!("[[listen]]\nbind = \"{address}\"\n");
        let feeds = [node::free_address(), node::free_address()];
        for (name, feed) in STATIONS.iter().zip(feeds) {
            let own = node::make_key(name, at);
            centre += &format!("[[peer]]\nname = \"{name}\"\nfingerprints = [\"{own}\"]\n");
            let mut station = node::table(name, name.as_ref());
            if *name == STATIONS[1] {
                station += &format!("standby_of = \"{standby_of}\"\n{keys}");
            }
            station += &format!(
                "[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\naddresses = \
                 [\"{address}\"]\nfingerprints = [\"{key}\"]\n[[channel]]\nname = \"x\"\ninput = \
                 \"udp:{feed}\"\nsilence = \"2 s\"\n"
            );
            std::fs::write(at.join(format!("{name}.toml")), station).unwrap();
        }
        centre += "[products]\ndir = \"products\"\ntime = true\nwait = \"10 min\"\n";
        std::fs::write(at.join("centre.toml"), centre).unwrap();
        let nodes = ["centre", STATIONS[0], STATIONS[1]].map(|name| node::start(name, at, &[]));
        let [centre, first, second] = nodes;
        let feeder = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stations = [Some(first), Some(second)];
        let pair = Self { folder, _centre: centre, stations, feeds, feeder };
        for name in STATIONS {
            pair.until(name, |status| {
                let is_open = status["destinations"][0]["line"]["state"] == "open";
                (is_open && !status["channels"][0]["address"].is_null()).then_some(())
            });
        }
        pair.until(STATIONS[1], |status| {
            let state = status["destinations"][0]["standby"]["state"].as_str()?;
            (state != "asking").then_some(())
        });
        pair
    }

    fn until<T>(&self, name: &str, probe: impl Fn(&Value) -> Option<T>) -> T {
        let config = format!("{name}.toml");
        let ask = |keys: &[&str]| {
            run(&[&["status", "--config", &config], keys].concat(), self.folder.path()).stdout
        };
        let look = || node::part(&ask(&["--json"])).and_then(|status| probe(&status));
        until(look, || {
            let centre = printed(&["status", "--config", "centre.toml"], self.folder.path());
            format!("{}\n{centre}", String::from_utf8_lossy(&ask(&[])))
        })
    }

    fn shown(&self, name: &str) -> String {
        printed(&["status", "--config", &format!("{name}.toml")], self.folder.path())
    }

    /// Sends the CADUs to both stations at their pace.
    fn feed(&self, cadus: &[u8]) {
        for datagram in cadus.chunks(TOGETHER * CADU) {
            for feed in self.feeds {
                // A station that was killed has no socket.
                let _ = self.feeder.send_to(datagram, feed);
            }
            std::thread::sleep(PACE);
        }
    }

    /// The contacts at the centre when all are done, by station; at least one of each named.
    fn contacts(&self, of: &[&str]) -> BTreeMap<String, Value> {
        self.until("centre", |status| {
            let contacts = status["contacts"].as_array()?;
            let is_done = |contact: &Value| contact["state"] == "done";
            let found: BTreeMap<String, Value> = contacts
                .iter()
                .map(|one| (one["station"].as_str().unwrap().to_owned(), one.clone()))
                .collect();
            let has_all = of.iter().all(|name| found.contains_key(*name));
            (has_all && contacts.iter().all(is_done)).then_some(found)
        })
    }

    /// The packets of each product of a window, when its newest version is made.
    fn products(&self, enough: impl Fn(&BTreeMap<String, Value>) -> bool) {
        self.until("centre", |status| {
            let made = status["assembled"].as_array()?;
            let name = |one: &Value| one["product"].as_str().unwrap_or_default().to_owned();
            let of_windows = made.iter().filter(|one| one["contact"].is_null());
            let made = of_windows.map(|one| (name(one), one["sha256"].clone())).collect();
            enough(&made).then_some(())
        });
    }
}

fn frames(contact: &Value, what: &str) -> u64 {
    contact[what].as_u64().unwrap_or_else(|| panic!("{what}: {contact:#}"))
}

/// The products of windows of a station that captured everything.
fn whole() -> BTreeMap<String, Value> {
    let pair = Pair::start("station-9", "");
    let file = recording(RECORDING).display().to_string();
    let config = std::fs::read_to_string(pair.folder.path().join("station-1.toml")).unwrap();
    let (head, _) = config.split_once("input = ").unwrap();
    std::fs::write(
        pair.folder.path().join("whole.toml"),
        format!("{head}input = \"file:{file}\"\n"),
    )
    .unwrap();
    drop(pair.stations);
    let station = Running::start(&["run", "whole.toml", "--until-sent"], pair.folder.path());
    assert_eq!(station.end().code, Some(0));
    let ask = || {
        let answer = run(&["status", "--config", "centre.toml", "--json"], pair.folder.path());
        let status = node::part(&answer.stdout)?;
        let made = status["assembled"].as_array()?.clone();
        let products = status["contacts"][0]["products"].as_array()?.len();
        let name = |one: &Value| one["product"].as_str().unwrap_or_default().to_owned();
        let made: BTreeMap<_, _> =
            made.iter().map(|one| (name(one), one["sha256"].clone())).collect();
        (products > 0 && made.len() == products).then_some(made)
    };
    until(ask, || "no products".to_owned())
}

#[test]
fn a_standby_sends_nothing_while_the_first_delivers_and_settles_what_the_centre_has() {
    // A busy machine may hold the first station up.
    let pair = Pair::start("station-1", "standby_after = \"60 s\"\n");
    let cadus = std::fs::read(recording(RECORDING)).unwrap();
    pair.feed(&cadus[..cadus.len() / 3 / CADU * CADU]);
    let contacts = pair.contacts(&["station-1"]);
    assert_eq!(contacts.len(), 1, "{contacts:#?}");
    let standby = pair.until("station-2", |status| {
        let standby = status["destinations"][0]["standby"].clone();
        (standby["settled_contacts"] == 1 && status["spool"]["blocks"] == 0).then_some(standby)
    });
    assert_eq!((&standby["state"], &standby["of"]), (&"standing-by".into(), &"station-1".into()));
    assert_eq!(standby["kept_back_blocks"], 0, "{standby:#}");
    assert!(standby["settled_blocks"].as_u64() > Some(0), "{standby:#}");
    let shown = pair.shown("station-2");
    assert!(shown.contains("standby of station-1: it delivers"), "{shown}");
    assert!(shown.contains("not sent, there from station-1: 1 contacts"), "{shown}");
    let log = std::fs::read_to_string(pair.folder.path().join("station-2.log")).unwrap();
    assert!(log.contains("settled without being sent"), "{log}");
}

#[test]
fn when_the_first_is_killed_in_mid_pass_no_frame_is_missing_and_few_come_twice() {
    let whole = whole();
    let mut pair = Pair::start("station-1", "");
    let cadus = std::fs::read(recording(RECORDING)).unwrap();
    let (before, after) = cadus.split_at(cadus.len() / 3 / CADU * CADU);
    pair.feed(before);
    pair.until("station-2", |status| {
        (status["destinations"][0]["standby"]["state"] == "standing-by").then_some(())
    });
    let first = pair.stations[0].take().unwrap();
    first.signal(Signal::KILL);
    drop(first);
    pair.feed(after);
    let shown = pair.until("station-2", |status| {
        let standby = &status["destinations"][0]["standby"];
        (standby["state"] == "taking-over").then(|| pair.shown("station-2"))
    });
    assert!(shown.contains("standby of station-1: taking over since "), "{shown}");
    // Back again, it ends the contact in which it was killed.
    pair.stations[0] = Some(node::start("station-1", pair.folder.path(), &[]));
    let contacts = pair.contacts(&STATIONS);
    let total = expected(RECORDING)["frames_total"].as_u64().unwrap();
    let [one, other] = STATIONS.map(|name| &contacts[name]);
    assert!(frames(one, "frames") < total, "{one:#}");
    let extra = (frames(one, "frames") + frames(other, "frames")).saturating_sub(total);
    let per_second = (TOGETHER as u64 * 1_000).div_ceil(PACE.as_millis() as u64);
    assert!(extra <= 2 * per_second, "{extra} of {total} frames came twice: {one:#} {other:#}");
    assert!(frames(other, "kept_back_frames") > 0, "{other:#}");
    assert_eq!((&one["unaccounted"], &other["unaccounted"]), (&0.into(), &0.into()), "{other:#}");
    pair.products(|made| *made == whole);
}

#[test]
fn a_standby_of_itself_of_nobody_and_of_a_stranger_is_told_so() {
    let pair = Pair::start("station-9", "");
    let alarms = pair.until("station-2", |status| {
        let alarms = status["alarms"].as_array()?.clone();
        (!alarms.is_empty()).then_some(alarms)
    });
    let said = alarms[0].as_str().unwrap();
    assert!(said.contains("centre knows no node station-9"), "{said}");
    let text = std::fs::read_to_string(pair.folder.path().join("station-2.toml")).unwrap();
    for (of, words) in [("station-2", "cannot stand by for itself"), ("centre", "is a destination")]
    {
        let other = text.replace("station-9", of);
        std::fs::write(pair.folder.path().join("other.toml"), other).unwrap();
        let checked = run(&["config", "check", "other.toml"], pair.folder.path());
        assert_refused(&checked, 2, &[words, "other.toml:5"]);
    }
    let explained = printed(&["config", "explain", "station-2.toml"], pair.folder.path());
    assert!(explained.contains("standby of station-9\n"), "{explained}");
}
