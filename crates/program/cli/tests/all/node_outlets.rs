//! Products at a folder of another node, which this one calls or which calls this one: each once,
//! on in mid-file whichever of the two dies, and nothing is replaced there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::outlets::publish_in;
use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::sha256;
use crate::support::refusal::assert_refused;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A centre, and a node that gets its products.
pub struct Pair {
    dir: tempfile::TempDir,
}

/// Which of the two calls the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Centre,
    Customer,
}

/// Half of it is more than a part is known to be on disk by.
const LONG: usize = 40 << 20;

impl Pair {
    /// The files of both. The customer's folder for the centre is `got`, and `keys` are of the
    /// destination.
    fn new(caller: Caller, keys: &str) -> Self {
        Self::with(caller, &format!("{keys}{SUBSCRIPTION}"), "")
    }

    /// The same with other tables behind the destination, and other rights of the centre.
    pub fn with(caller: Caller, keys: &str, rights: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        let [centre, customer] = ["centre", "customer"].map(|name| node::make_key(name, at));
        let addresses = [free_address(), free_address()];
        let address = |is_called: bool, nth: usize| match is_called {
            true => format!("addresses = [\"{}\"]\n", addresses[nth]),
            false => String::new(),
        };
        let calls = caller == Caller::Centre;
        let own = format!(
            "{}[[listen]]\nbind = \"{}\"\n[[peer]]\nname = \"customer\"\nfingerprints = \
             [\"{customer}\"]\n{}[products]\ndir = \"products\"\n[[destination]]\nname = \
             \"lance\"\nto = \"node:customer/in/modis\"\n{keys}",
            node::table("centre", Path::new("state")),
            addresses[0],
            address(calls, 1),
        );
        fs::write(at.join("centre.toml"), own).unwrap();
        let role = match caller {
            Caller::Centre => format!("[[listen]]\nbind = \"{}\"\n", addresses[1]),
            Caller::Customer => "[[destination]]\nto = \"node:centre\"\n".to_owned(),
        };
        let far = format!(
            "{}{role}[[peer]]\nname = \"centre\"\nfingerprints = [\"{centre}\"]\n{}\
             [peer.files]\nroot = \"got\"\n{rights}",
            node::table("customer", Path::new("far-state")),
            address(!calls, 0),
        );
        fs::write(at.join("customer.toml"), far).unwrap();
        Self { dir }
    }

    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub fn start(&self, name: &str) -> Running {
        node::start(name, self.folder(), &[])
    }

    /// The centre, once it answers.
    pub fn start_centre(&self) -> Running {
        let running = self.start("centre");
        let answers = || {
            let status = run(&["status", "--config", "centre.toml"], self.folder());
            status.status.success().then_some(())
        };
        until(answers, || self.logs());
        running
    }

    pub fn got(&self, name: &str) -> PathBuf {
        self.folder().join("got/in/modis").join(name)
    }

    pub fn own(&self, name: &str) -> PathBuf {
        self.folder().join("products").join(name)
    }

    pub fn logs(&self) -> String {
        let log = |name: &str| {
            let text = fs::read_to_string(self.folder().join(format!("{name}.log")));
            format!("{name}: {}", text.unwrap_or_default())
        };
        ["centre", "customer"].map(log).join("\n")
    }

    /// Begins the deliveries of what was published.
    pub fn backfill(&self) {
        let from = "1970-01-01T00:00:00Z";
        let order = ["subscription", "backfill", "all", "--from", from, "--config", "centre.toml"];
        // The node may still start.
        let begun = || run(&order, self.folder()).status.success().then_some(());
        until(begun, || self.logs());
    }

    pub fn deliveries(&self) -> Vec<Value> {
        node::deliveries("centre.toml", self.folder(), &json!({})).unwrap_or_default()
    }

    /// Waits until so many deliveries are in this state.
    #[track_caller]
    pub fn settled(&self, count: usize, state: &str) -> Vec<Value> {
        let look = || {
            let all = self.deliveries();
            let are = all.iter().filter(|one| one["state"] == state).count() == count;
            are.then_some(all)
        };
        until(look, || format!("{:?}\n{}", self.deliveries(), self.logs()))
    }

    #[track_caller]
    pub fn assert_there(&self, name: &str) {
        let (own, far) = (fs::read(self.own(name)).unwrap(), fs::read(self.got(name)).unwrap());
        assert_eq!(sha256(&own), sha256(&far), "{name}");
    }

    /// The length of the part of the long file.
    fn part(&self) -> Option<u64> {
        Some(self.got(".P0000000V1.PDS.skyhaul-part").metadata().ok()?.len())
    }

    /// Waits until the part has grown to this length, or the file is whole, and never has less than
    /// `least`: what was on the disk is not sent again.
    fn grown(&self, to: u64, least: u64) {
        let look = || {
            if self.got("P0000000V1.PDS").exists() {
                return Some(());
            }
            let part = self.part().unwrap_or(0);
            assert!(part >= least, "the part had {least} bytes, and has {part}: {}", self.logs());
            (part >= to).then_some(())
        };
        until(look, || format!("{:?} {}", self.part(), self.logs()));
    }
}

const SUBSCRIPTION: &str = "[[subscription]]\nof = \"products\"\nname = \"all\"\nto = \
                            \"lance\"\n[subscription.retry]\nfirst = \"1 s\"\nmost = \"2 s\"\n";

/// A long file goes on where it was, whoever is killed; then many go at a time.
fn goes_on_whoever_is_killed(caller: Caller) {
    // Slow enough for kills in mid-file: some seconds in all.
    let pair = Pair::new(caller, "rate = \"100 Mbit/s\"\n");
    let mut centre = pair.start_centre();
    publish_in(pair.folder(), 0..1, 1, |_| LONG);
    pair.backfill();
    let mut far = pair.start("customer");
    let (mut least, step) = (0, LONG as u64 / 4);
    for nth in 1..=2 {
        pair.grown(step * nth, least);
        far.kill();
        // What is synced stays: eight mebibytes and what waited for the disk may be sent again.
        least = pair.part().unwrap_or(0).saturating_sub(MAY_REPEAT).min(least.max(1));
        far = pair.start("customer");
        pair.grown(step * nth + step / 2, least);
        centre.kill();
        centre = pair.start_centre();
    }
    let all = pair.settled(1, "accepted");
    assert_eq!(all[0]["proof"], "receipt", "{all:?}");
    pair.assert_there("P0000000V1.PDS");
    pair.assert_there("P0000000V1.CR");
    assert_eq!(pair.part(), None, "no part is left");
    // Small ones, and both ends die at any time.
    publish_in(pair.folder(), 1..13, 1, |number| 1_000 + number as usize * 9_999);
    pair.backfill();
    until(|| pair.got("P0000012V1.PDS").exists().then_some(()), || pair.logs());
    centre.kill();
    far.kill();
    let (_centre, _far) = (pair.start_centre(), pair.start("customer"));
    pair.settled(13, "accepted");
    (1..13).for_each(|number| pair.assert_there(&format!("P{number:07}V1.PDS")));
    let names = fs::read_dir(pair.folder().join("got/in/modis")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with('.')).collect::<Vec<_>>(), [""; 0]);
}

/// The length between two notes of what is on the disk, and what waits for it.
const MAY_REPEAT: u64 = 16 << 20;

#[test]
fn products_go_on_in_mid_file_at_a_node_that_is_called_whoever_is_killed() {
    goes_on_whoever_is_killed(Caller::Centre);
}

#[test]
fn products_go_on_in_mid_file_at_a_node_that_calls_whoever_is_killed() {
    goes_on_whoever_is_killed(Caller::Customer);
}

#[test]
fn at_another_node_nothing_is_replaced_and_its_rights_hold() {
    let pair = Pair::new(Caller::Centre, "");
    let _centre = pair.start_centre();
    let test = || run(&["destination", "test", "lance", "--config", "centre.toml"], pair.folder());
    let unreached = until(
        || Some(test()).filter(|answer| text(&answer.stderr).contains("no session")),
        || pair.logs(),
    );
    assert_refused(&unreached, 3, &["node customer: there is no session with it"]);
    let far = pair.start("customer");
    let tested = until(|| Some(test()).filter(|answer| answer.status.success()), || pair.logs());
    let tested = text(&tested.stdout);
    for part in ["lance: node:customer/in/modis", "goes on after breaks yes", "BLAKE3"] {
        assert!(tested.contains(part), "{tested}");
    }
    // One is there already, and one of that name has other content.
    publish_in(pair.folder(), 0..3, 1, |_| 5_000);
    fs::create_dir_all(pair.got("")).unwrap();
    fs::copy(pair.own("P0000000V1.PDS"), pair.got("P0000000V1.PDS")).unwrap();
    let mut other = fs::read(pair.own("P0000001V1.PDS")).unwrap();
    other[77] ^= 1;
    fs::write(pair.got("P0000001V1.PDS"), &other).unwrap();
    fs::write(pair.got("P0000002V1.CR"), "short").unwrap();
    pair.backfill();
    let all = pair.settled(2, "refused");
    pair.settled(1, "accepted");
    for one in all.iter().filter(|one| one["state"] == "refused") {
        let reason = one["reason"].as_str().unwrap();
        let part = "with other contents is there, and stays untouched";
        assert!(reason.starts_with("node customer: ") && reason.contains(part), "{reason}");
    }
    assert_eq!(fs::read(pair.got("P0000001V1.PDS")).unwrap(), other);
    assert_eq!(fs::read(pair.got("P0000002V1.CR")).unwrap(), b"short");
    let status = || printed(&["status", "--config", "centre.toml"], pair.folder());
    let is_told = || status().contains("a product for lance is not delivered");
    until(|| is_told().then_some(()), status);
    // The alarm ends when each went again.
    for name in ["P0000001V1.PDS", "P0000002V1.CR"] {
        fs::remove_file(pair.got(name)).unwrap();
    }
    for one in all.iter().filter(|one| one["state"] == "refused") {
        let id = one["id"].to_string();
        printed(&["deliveries", "again", &id, "--config", "centre.toml"], pair.folder());
    }
    pair.settled(3, "accepted");
    until(|| (!is_told()).then_some(()), status);
    // The far node has the last word on who writes there.
    drop(far);
    let config = pair.folder().join("customer.toml");
    let text_of = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text_of}write = false\nread = true\n")).unwrap();
    let _far = pair.start("customer");
    let refused = until(
        || Some(test()).filter(|answer| text(&answer.stderr).contains("may not")),
        || pair.logs(),
    );
    assert_refused(&refused, 3, &["node customer: its folder may not be written to"]);
}
