//! Two stations on one feed, of which one stands by for the other: real processes, real frames over
//! UDP.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the feed is sent at its own pace")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::{expected, recording};
use crate::support::refusal::assert_refused;
use rustix::process::Signal;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const RECORDING: &str = "npp.20241206T173815.dat";
const CADU: usize = 1_024;
/// CADUs in one datagram, and the time between two: the recording of 1 MB lasts some 4 s.
const TOGETHER: usize = 4;
const PACE: Duration = Duration::from_millis(16);
const STATIONS: [&str; 2] = ["station-1", "station-2"];

/// Centres, a first station, and one that stands by for it.
struct Pair {
    folder: tempfile::TempDir,
    centres: BTreeMap<&'static str, Running>,
    stations: [Option<Running>; 2],
    /// What the datagrams of the first station go through, where its line can be cut.
    line: Option<Running>,
    feeds: [SocketAddr; 2],
    feeder: UdpSocket,
}

/// How a pair is set up.
struct Setup {
    centres: &'static [&'static str],
    standby_of: &'static str,
    /// Keys of the standby's `[node]`.
    keys: &'static str,
    /// A contact ends after so much silence: longer than a test pauses on a busy machine.
    silence: &'static str,
    /// The datagrams of the first station go through a process of their own.
    has_line: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let (centres, standby_of) = (&["centre"][..], STATIONS[0]);
        Self { centres, standby_of, keys: "", silence: "5 s", has_line: false }
    }
}

impl Pair {
    fn start(standby_of: &'static str, keys: &'static str) -> Self {
        Self::of(Setup { standby_of, keys, ..Setup::default() })
    }

    fn of(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let feeds = [free_address(), free_address()];
        let own = STATIONS.map(|name| node::make_key(name, at));
        let mut stations = STATIONS.map(|name| node::table(name, name.as_ref()));
        stations[1] += &format!("standby_of = \"{}\"\n{}", setup.standby_of, setup.keys);
        let mut line = None;
        for name in setup.centres {
            let (key, address) = (node::make_key(name, at), free_address());
            let mut centre = node::table(name, name.as_ref());
            centre += &format!("[[listen]]\nbind = \"{address}\"\n");
            let mut ways = [address.to_string(), address.to_string()];
            if setup.has_line {
                let flags = ["emulate", "--listen", "127.0.0.1:0", "--to", &ways[0]];
                let proxy = line.insert(Running::start(&flags, at));
                ways[0] = proxy.address();
            }
            for ((station, way), own) in STATIONS.iter().zip(&ways).zip(own) {
                centre += &format!("[[peer]]\nname = \"{station}\"\nfingerprints = [\"{own}\"]\n");
                let nth = STATIONS.iter().position(|other| other == station).unwrap();
                stations[nth] += &format!(
                    "[[destination]]\nto = \"node:{name}\"\n[[peer]]\nname = \"{name}\"\n\
                     addresses = [\"{way}\"]\nfingerprints = [\"{key}\"]\n"
                );
            }
            centre +=
                &format!("[products]\ndir = \"{name}-products\"\ntime = true\nwait = \"10 min\"\n");
            std::fs::write(at.join(format!("{name}.toml")), centre).unwrap();
        }
        for ((name, station), feed) in STATIONS.iter().zip(&mut stations).zip(feeds) {
            *station += &format!(
                "[[channel]]\nname = \"x\"\ninput = \"udp:{feed}\"\nsilence = \"{}\"\n",
                setup.silence
            );
            std::fs::write(at.join(format!("{name}.toml")), station).unwrap();
        }
        let centres = setup.centres.iter().map(|name| (*name, node::start(name, at, &[])));
        let centres = centres.collect();
        let stations = STATIONS.map(|name| Some(node::start(name, at, &[])));
        let feeder = UdpSocket::bind("127.0.0.1:0").unwrap();
        let pair = Self { folder, centres, stations, line, feeds, feeder };
        for name in STATIONS {
            pair.until(name, |status| {
                let all = status["destinations"].as_array()?;
                let is_open = all.iter().all(|one| one["line"]["state"] == "open");
                (is_open && !status["channels"][0]["address"].is_null()).then_some(())
            });
        }
        pair.until(STATIONS[1], |status| {
            let mut all = status["destinations"].as_array()?.iter();
            all.all(|one| one["standby"]["state"] != "asking").then_some(())
        });
        pair
    }

    fn until<T>(&self, name: &str, probe: impl Fn(&Value) -> Option<T>) -> T {
        let config = format!("{name}.toml");
        let at = self.folder.path();
        let look = || node::part(&config, at).and_then(|status| probe(&status));
        until(look, || {
            let centre = printed(&["status", "--config", "centre.toml"], at);
            format!("{}\n{centre}", text(&run(&["status", "--config", &config], at).stdout))
        })
    }

    /// The same in mid-pass, which goes on with the CADUs of `rest` meanwhile.
    fn until_in_pass<T>(
        &self,
        rest: &Cell<&[u8]>,
        name: &str,
        probe: impl Fn(&Value) -> Option<T>,
    ) -> T {
        self.until(name, |status| {
            let (next, after) = rest.get().split_at(rest.get().len().min(TOGETHER * CADU));
            self.feed(next);
            rest.set(after);
            probe(status)
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
        self.contacts_at("centre", of)
    }

    fn contacts_at(&self, centre: &str, of: &[&str]) -> BTreeMap<String, Value> {
        self.until(centre, |status| {
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
        self.products_at("centre", enough);
    }

    fn products_at(&self, centre: &str, enough: impl Fn(&BTreeMap<String, Value>) -> bool) {
        self.until(centre, |status| enough(&made_of_windows(status)?).then_some(()));
    }
}

/// The digest of each product of a window that is made. Regression: a window that waited for its
/// contacts was taken for a product without a name, and a test went on for ever, or at once, as the
/// looks of the tests at the status fell.
fn made_of_windows(status: &Value) -> Option<BTreeMap<String, Value>> {
    let all = status["assembled"].as_array()?.iter();
    let made = all.filter(|one| one["contact"].is_null() && one["state"] == "made");
    let name = |one: &Value| one["product"].as_str().unwrap().to_owned();
    Some(made.map(|one| (name(one), one["sha256"].clone())).collect())
}

fn frames(contact: &Value, what: &str) -> u64 {
    contact[what].as_u64().unwrap_or_else(|| panic!("{what}: {contact:#}"))
}

/// Asserts that the contacts of both stations have no more frames in common than two seconds of the
/// pass for each of so many events.
#[track_caller]
fn assert_few_twice(contacts: [&Value; 2], events: u64) {
    let total = expected(RECORDING)["frames_total"].as_u64().unwrap();
    let came: u64 = contacts.iter().map(|contact| frames(contact, "frames")).sum();
    let per_second = (TOGETHER as u64 * 1_000).div_ceil(PACE.as_millis() as u64);
    let extra = came.saturating_sub(total);
    assert!(extra <= 2 * per_second * events, "{extra} of {total} came twice: {contacts:#?}");
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
        let status = node::part("centre.toml", pair.folder.path())?;
        let made = made_of_windows(&status)?;
        let products = status["contacts"][0]["products"].as_array()?.len();
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
    let rest = Cell::new(after);
    pair.until_in_pass(&rest, "station-2", |status| {
        (status["destinations"][0]["standby"]["state"] == "standing-by").then_some(())
    });
    let first = pair.stations[0].take().unwrap();
    first.signal(Signal::KILL);
    drop(first);
    pair.feed(rest.get());
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
    assert_few_twice([one, other], 1);
    assert!(frames(other, "kept_back_frames") > 0, "{other:#}");
    assert_eq!((&one["unaccounted"], &other["unaccounted"]), (&0.into(), &0.into()), "{other:#}");
    pair.products(|made| *made == whole);
}

/// Each centre hears of the standby what it misses itself.
#[test]
fn two_centres_miss_nothing_when_the_first_is_killed_in_mid_pass() {
    let whole = whole();
    let setup = Setup { centres: &["centre", "backup"], ..Setup::default() };
    let mut pair = Pair::of(setup);
    let cadus = std::fs::read(recording(RECORDING)).unwrap();
    let (before, after) = cadus.split_at(cadus.len() / 3 / CADU * CADU);
    pair.feed(before);
    let first = pair.stations[0].take().unwrap();
    first.signal(Signal::KILL);
    drop(first);
    pair.feed(after);
    pair.until("station-2", |status| {
        let mut all = status["destinations"].as_array()?.iter();
        all.all(|one| one["standby"]["state"] == "taking-over").then_some(())
    });
    pair.stations[0] = Some(node::start("station-1", pair.folder.path(), &[]));
    for centre in ["centre", "backup"] {
        let contacts = pair.contacts_at(centre, &STATIONS);
        let [one, other] = STATIONS.map(|name| &contacts[name]);
        assert_few_twice([one, other], 1);
        assert_eq!(
            (&one["unaccounted"], &other["unaccounted"]),
            (&0.into(), &0.into()),
            "{centre}"
        );
        pair.products_at(centre, |made| *made == whole);
    }
}

/// The first goes on capturing, and sends what it has when its line is back: the centre had it from
/// the standby long before.
#[test]
fn when_the_line_of_the_first_is_cut_the_centre_has_all_from_the_standby_before_it_is_back() {
    let whole = whole();
    let pair = Pair::of(Setup { has_line: true, ..Setup::default() });
    let line = pair.line.as_ref().unwrap();
    let cadus = std::fs::read(recording(RECORDING)).unwrap();
    let (before, after) = cadus.split_at(cadus.len() / 3 / CADU * CADU);
    pair.feed(before);
    line.signal(Signal::STOP);
    pair.feed(after);
    let contacts = pair.until("centre", |status| {
        let contacts = status["contacts"].as_array()?;
        let of = |name: &str| contacts.iter().find(|one| one["station"] == name).cloned();
        let [one, other] = [of(STATIONS[0])?, of(STATIONS[1])?];
        (other["state"] == "done").then_some([one, other])
    });
    assert_eq!(contacts[0]["state"], "open", "the end waits behind the cut: {:#}", contacts[0]);
    assert_few_twice([&contacts[0], &contacts[1]], 1);
    let total = expected(RECORDING)["frames_total"].as_u64().unwrap();
    let there: u64 = contacts.iter().map(|contact| frames(contact, "frames")).sum();
    assert!(there >= total, "{there} of {total}: {contacts:#?}");
    line.signal(Signal::CONT);
    let contacts = pair.contacts(&STATIONS);
    assert_eq!(frames(&contacts[STATIONS[0]], "frames"), total, "custody of the first holds");
    assert_eq!(contacts[STATIONS[1]]["unaccounted"], 0);
    pair.products(|made| *made == whole);
}

/// Neither station knows at first what the centre has.
#[test]
fn a_centre_that_is_killed_in_mid_pass_has_everything_and_few_frames_twice() {
    let whole = whole();
    let mut pair = Pair::of(Setup { silence: "20 s", ..Setup::default() });
    let cadus = std::fs::read(recording(RECORDING)).unwrap();
    let (before, after) = cadus.split_at(cadus.len() / 3 / CADU * CADU);
    pair.feed(before);
    let rest = Cell::new(after);
    pair.until_in_pass(&rest, "station-2", |status| {
        (status["destinations"][0]["standby"]["state"] == "standing-by").then_some(())
    });
    let centre = pair.centres.remove("centre").unwrap();
    centre.signal(Signal::KILL);
    drop(centre);
    pair.centres.insert("centre", node::start("centre", pair.folder.path(), &[]));
    pair.feed(rest.get());
    let contacts = pair.contacts(&["station-1"]);
    let total = expected(RECORDING)["frames_total"].as_u64().unwrap();
    let one = &contacts[STATIONS[0]];
    assert_eq!(frames(one, "frames"), total, "{one:#}");
    pair.until("station-2", |status| (status["spool"]["blocks"] == 0).then_some(()));
    // What the standby sent, if anything, came twice.
    if let Some(other) = pair.contacts(&["station-1"]).get(STATIONS[1]) {
        assert_few_twice([one, other], 1);
        assert_eq!(other["unaccounted"], 0, "{other:#}");
    }
    pair.products(|made| *made == whole);
}

#[test]
fn a_standby_of_itself_of_nobody_and_of_a_stranger_is_told_so() {
    let pair = Pair::start("station-9", "");
    let alarms = pair.until("station-2", |status| {
        let alarms = status["alarms"].as_array()?.clone();
        (!alarms.is_empty()).then_some(alarms)
    });
    let said = alarms[0]["sentence"].as_str().unwrap();
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
