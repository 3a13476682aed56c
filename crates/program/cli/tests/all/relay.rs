//! Relays: contacts go from a station over one or two of them to a centre while they still come in,
//! whichever node is killed; a ring of relays is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, printed, run, skyhaul, text};
use crate::support::recordings::{DAMAGED, expected, recording};
use rustix::process::Signal;
use serde_json::{Value, json};
use skyhaul_quic::Fingerprint;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{PipeReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

/// Nodes of these names in one folder, each with a key and an address.
struct Network {
    folder: tempfile::TempDir,
    nodes: BTreeMap<&'static str, (Fingerprint, SocketAddr)>,
    running: BTreeMap<&'static str, Running>,
}

impl Network {
    fn of(names: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place =
            |name: &&'static str| (*name, (node::make_key(name, folder.path()), free_address()));
        let nodes = names.iter().map(place).collect();
        Self { folder, nodes, running: BTreeMap::new() }
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the configuration of a node that hears the nodes `from`, calls those in `to`, and has
    /// these further tables.
    fn write(&self, name: &str, from: &[&str], to: &[&str], tables: &str) {
        let mut config = node::table(name, Path::new(name));
        let mut peers: Vec<&&str> = from.iter().chain(to).collect();
        peers.sort();
        peers.dedup();
        for peer in peers {
            let (key, address) = &self.nodes[*peer];
            write!(
                config,
                "[[peer]]\nname = \"{peer}\"\naddresses = [\"{address}\"]\nfingerprints = \
                 [\"{key}\"]\n"
            )
            .unwrap();
        }
        if !from.is_empty() {
            writeln!(config, "[[listen]]\nbind = \"{}\"\npeers = {from:?}", self.nodes[name].1)
                .unwrap();
        }
        for one in to {
            writeln!(config, "[[destination]]\nto = \"node:{one}\"").unwrap();
        }
        std::fs::write(self.at().join(format!("{name}.toml")), config + tables).unwrap();
    }

    fn start(&mut self, name: &'static str) {
        let node = node::start(name, self.at(), &[]);
        self.running.insert(name, node);
    }

    /// A station whose channel reads what is written to the other end of `input`.
    fn start_from(&mut self, name: &'static str, input: PipeReader) {
        let mut command =
            skyhaul(&["run", "--end-with-parent", &format!("{name}.toml")], self.at());
        let node = Running::of(command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null()));
        self.running.insert(name, node);
    }

    fn kill(&mut self, name: &str) {
        self.running.get_mut(name).unwrap().kill();
    }

    fn shown(&self, name: &str) -> String {
        text(&run(&["status", "--config", &format!("{name}.toml")], self.at()).stdout)
    }

    /// Asks for a part of a node's status until `probe` returns a value.
    #[track_caller]
    fn until<T>(&self, name: &str, part: &str, probe: impl Fn(&Value) -> Option<T>) -> T {
        let config = format!("{name}.toml");
        let look = || probe(node::status(&config, self.at())?.get(part)?);
        until(look, || format!("{}\n{}", self.shown(name), self.logs()))
    }

    fn logs(&self) -> String {
        let log = |name: &&'static str| {
            let text = std::fs::read_to_string(self.at().join(format!("{name}.log")));
            format!("{name}.log:\n{}\n", text.unwrap_or_default())
        };
        self.nodes.keys().map(log).collect()
    }
}

const RELAYED: &str = "[[subscription]]\nof = \"contacts\"\nstation = [\"station\"]\n";
const STDIN: &str = "[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"600 s\"\n";
/// Where a contact goes on to is of no interest here.
const PRODUCTS: &str = "[products]\ndir = \"products\"\n";

/// The only contact of a centre, once it is in this state.
fn contact(state: &'static str) -> impl Fn(&Value) -> Option<Value> {
    move |status| match &status["contacts"].as_array()?[..] {
        [contact] if contact["state"] == state => Some(contact.clone()),
        _ => None,
    }
}

fn frames(status: &Value) -> u64 {
    status["contacts"][0]["frames"].as_u64().unwrap_or_default()
}

/// A chain of four nodes; the first relay also makes products. It is killed in mid-pass: what it
/// had promised and not passed on yet is on its disk, and the rest waits at the station.
#[test]
fn a_contact_arrives_over_two_relays_as_it_comes_in_though_one_is_killed_in_mid_pass() {
    let mut network = Network::of(&["station", "relay-1", "relay-2", "centre"]);
    network.write("station", &[], &["relay-1"], STDIN);
    network.write("relay-1", &["station"], &["relay-2"], &format!("{RELAYED}{PRODUCTS}"));
    network.write("relay-2", &["relay-1"], &["centre"], RELAYED);
    network.write("centre", &["relay-2"], &[], "");
    ["centre", "relay-2", "relay-1"].into_iter().for_each(|name| network.start(name));
    let (input, mut downlink) = std::io::pipe().unwrap();
    network.start_from("station", input);
    let bytes = std::fs::read(recording(DAMAGED)).unwrap();
    let pieces: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(4)).collect();
    let mut seen = 0;
    for piece in &pieces[..2] {
        downlink.write_all(piece).unwrap();
        // It is passed on while the contact goes on.
        seen = network.until("centre", "centre", |status| {
            Some(frames(status)).filter(|frames| *frames > seen)
        });
    }
    let relay = network.until("relay-1", "centre", contact("open"));
    assert_eq!(relay["to"], serde_json::json!(["relay-2"]), "{relay:#}");
    network.kill("relay-1");
    downlink.write_all(pieces[2]).unwrap();
    network.start("relay-1");
    network.until("centre", "centre", |status| (frames(status) > seen).then_some(()));
    network.kill("relay-2");
    downlink.write_all(pieces[3]).unwrap();
    drop(downlink);
    network.start("relay-2");
    let contact = network.until("centre", "centre", contact("done"));
    let known = expected(DAMAGED);
    for (ours, theirs) in [
        ("frames", "good_frames"),
        ("set_aside", "rs_uncorrectable_frames"),
        ("corrected_symbols", "rs_corrected_symbols_in_good_frames"),
        ("frames_sha256", "good_frames_sha256"),
    ] {
        assert_eq!(contact[ours], known[theirs], "{ours}: {contact:#}");
    }
    // As if it had come straight from its station.
    assert_eq!(contact["station"], "station");
    assert_eq!((&contact["damaged_blocks"], &contact["unaccounted"]), (&0.into(), &0.into()));
    let via: Vec<&str> = contact["via"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| hop["node"].as_str().unwrap())
        .collect();
    assert_eq!(via, ["relay-1", "relay-2"]);
    assert!(network.shown("centre").contains("came through relay-1, relay-2"));
    let made = network.until("relay-1", "centre", self::contact("done"));
    assert_eq!(made["frames_sha256"], contact["frames_sha256"], "a relay may make products too");
    assert!(!made["products"].as_array().unwrap().is_empty());
    assert_eq!(made["flow"], contact["flow"], "the station's number");
    for (name, part) in [("station", "station"), ("relay-1", "station"), ("relay-2", "station")] {
        network.until(name, part, |status| (status["spool"]["blocks"] == 0).then_some(()));
    }
}

/// Two relays pass everything to each other. The first one gets its own contact back, says so once,
/// and other contacts go on.
#[test]
fn a_ring_of_relays_is_refused_and_named_and_stalls_nothing() {
    let mut network = Network::of(&["station", "relay-1", "relay-2"]);
    let channel =
        |name: &str| format!("[[channel]]\nname = \"{name}\"\ninput = \"file:{name}.dat\"\n");
    std::fs::copy(recording(DAMAGED), network.at().join("x.dat")).unwrap();
    network.write("station", &[], &["relay-1"], &channel("x"));
    network.write("relay-1", &["station", "relay-2"], &["relay-2"], RELAYED);
    network.write("relay-2", &["relay-1"], &["relay-1"], RELAYED);
    ["relay-1", "relay-2", "station"].into_iter().for_each(|name| network.start(name));
    let ring = "relay-1 → relay-2 → relay-1";
    let alarms = |status: &Value| -> Vec<String> {
        let alarms = status["alarms"].as_array().unwrap().iter();
        alarms.map(|alarm| alarm["sentence"].as_str().unwrap().to_owned()).collect()
    };
    let raised = network.until("relay-1", "centre", |status| {
        alarms(status).into_iter().find(|alarm| alarm.contains(ring))
    });
    assert!(raised.contains("of channel x goes in a ring"), "{raised}");
    // Each has the contact once, and is done with it; the one in the ring is refused.
    let known = expected(DAMAGED);
    let whole = |status: &Value, state: &str| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["state"] == state).cloned()
    };
    for name in ["relay-1", "relay-2"] {
        let done = network.until(name, "centre", |status| whole(status, "done"));
        assert_eq!(done["frames_sha256"], known["good_frames_sha256"]);
        network.until(name, "station", |status| (status["spool"]["blocks"] == 0).then_some(()));
    }
    let refused = network.until("relay-1", "centre", |status| whole(status, "refused"));
    assert_eq!((&refused["frames"], &refused["station"]), (&0.into(), &"station".into()));
    let log = std::fs::read_to_string(network.at().join("relay-1.log")).unwrap();
    assert_eq!(log.matches(ring).count(), 1, "said once: {log}");
}

/// Writes a downlink of this many frames in which one in a hundred cannot be synchronised, and
/// returns how many those are. The first and the last 200 are whole: a gap shows between frames.
fn damaged_downlink(network: &Network, frames: usize) -> u64 {
    let count = frames.to_string();
    let words = ["generate", "--mission", "noaa-21", "--frames", &count, "--output", "clean.dat"];
    printed(&words, network.at());
    let clean = std::fs::read(network.at().join("clean.dat")).unwrap();
    let (mut bytes, mut damaged) = (Vec::new(), 0);
    for (at, cadu) in clean.chunks_exact(clean.len() / frames).enumerate() {
        let is_hit = at % 100 == 37 && (200..frames - 200).contains(&at);
        // A byte beside the marker moves it from the place where it is due.
        bytes.extend(is_hit.then_some(0x55));
        let start = bytes.len();
        bytes.extend_from_slice(cadu);
        if is_hit {
            bytes[start + 1] ^= 0x24;
            bytes.push(0x55);
            damaged += 1;
        }
    }
    std::fs::write(network.at().join("x.dat"), bytes).unwrap();
    damaged
}

/// Counts of the gaps of a node, once `enough` accepts them.
#[track_caller]
fn gap_counts(network: &Network, name: &str, enough: impl Fn(&Value) -> bool) -> Value {
    let config = format!("{name}.toml");
    let look = || {
        let said = node::asked(&config, network.at(), &json!({ "ask": "gaps" }))?;
        Some(said["counts"].clone()).filter(|counts| enough(counts))
    };
    until(look, || {
        let said = text(&run(&["gaps", "--config", &config], network.at()).stdout);
        format!("{said}\n{}\n{}", network.shown(name), network.logs())
    })
}

/// What the station's capture lost, the relay asks for; the frames that the station finds in its
/// recording go on to the centre, though the relay is killed in between.
#[test]
fn frames_that_were_lost_before_the_relay_are_asked_for_again_and_passed_on() {
    let mut network = Network::of(&["station", "relay", "centre"]);
    let damaged = damaged_downlink(&network, 4_000);
    let channel = "[[channel]]\nname = \"x\"\ninput = \"file:x.dat\"\nrate = \"20 Mbit/s\"\n\
                   mission = \"noaa-21\"\nrecord_raw = true\n";
    network.write("station", &[], &["relay"], channel);
    network.write("relay", &["station"], &["centre"], RELAYED);
    network.write("centre", &["relay"], &[], PRODUCTS);
    ["centre", "relay", "station"].into_iter().for_each(|name| network.start(name));
    network.until("centre", "centre", |status| (frames(status) > 500).then_some(()));
    network.kill("relay");
    network.start("relay");
    let is_settled = |counts: &Value| {
        counts["filled"].as_u64() > Some(0)
            && ["open", "requested", "missing_frames"].iter().all(|what| counts[what] == 0)
    };
    let counts = gap_counts(&network, "relay", is_settled);
    assert_eq!(counts["unrecoverable"], 0, "{counts:#}");
    let counts = gap_counts(&network, "centre", is_settled);
    assert_eq!(counts["unrecoverable"], 0, "{counts:#}");
    // Each frame once: those of the pass, and those of the recording, which came as contacts too.
    let came = network.until("centre", "centre", |status| {
        let contacts = status["contacts"].as_array()?;
        let is_done = contacts.len() > 1 && contacts.iter().all(|one| one["state"] == "done");
        is_done.then(|| contacts.iter().map(|one| one["frames"].as_u64().unwrap()).sum::<u64>())
    });
    // Idle frames are not asked for.
    assert!((4_000 - damaged / 2..=4_000).contains(&came), "{came}, of which {damaged} were lost");
    for (name, part) in [("station", "station"), ("relay", "station")] {
        network.until(name, part, |status| (status["spool"]["blocks"] == 0).then_some(()));
    }
}

/// Regression: frames that a relay sends before the pass that lacks them were taken for a pass of
/// their own. Here the centre was away, and they go first.
#[test]
fn frames_that_overtake_the_pass_that_lacks_them_complete_it() {
    let mut network = Network::of(&["station", "relay", "centre"]);
    damaged_downlink(&network, 2_000);
    let channel = "[[channel]]\nname = \"x\"\ninput = \"file:x.dat\"\nrate = \"20 Mbit/s\"\n\
                   mission = \"noaa-21\"\nrecord_raw = true\n";
    network.write("station", &[], &["relay"], channel);
    let slow = "[[class]]\nname = \"slow\"\nceiling = \"2 Mbit/s\"\n[refill]\npriority = 0\n";
    network.write("relay", &["station"], &["centre"], &format!("{RELAYED}{slow}"));
    network.write("centre", &["relay"], &[], PRODUCTS);
    ["relay", "station"].into_iter().for_each(|name| network.start(name));
    let is_settled = |counts: &Value| {
        counts["filled"].as_u64() > Some(0)
            && ["open", "requested", "missing_frames"].iter().all(|what| counts[what] == 0)
    };
    gap_counts(&network, "relay", is_settled);
    network.start("centre");
    let counts = gap_counts(&network, "centre", is_settled);
    assert_eq!(counts["unrecoverable"], 0, "{counts:#}");
}

/// A downlink of its own for each contact: this many frames, without idle ones between.
fn downlink(network: &Network, name: &str, frames: u64) -> String {
    let (count, file) = (frames.to_string(), format!("{name}.dat"));
    let words = ["generate", "--mission", "noaa-21", "--frames", &count, "--output", &file];
    printed(&[&words[..], &["--seed", name]].concat(), network.at());
    format!(
        "[[channel]]\nname = \"x{name}\"\ninput = \"file:{file}\"\nmission = \"noaa-21\"\n\
         compress = \"off\"\n"
    )
}

/// Limits of a relay: a contact of 2,500 frames has 2.9 MB.
const SMALL: &str = "[spool]\nmax_size = \"4 MiB\"\nsegment_size = \"1 MiB\"\n[store]\n\
                     max_size = \"4 MiB\"\n";

#[track_caller]
fn assert_whole(contact: &Value, frames: u64) {
    assert_eq!(contact["frames"], frames, "{contact:#}");
    for what in ["missing", "set_aside", "unaccounted", "damaged_blocks"] {
        assert_eq!(contact[what], 0, "{what}: {contact:#}");
    }
}

/// Waits until the spools of station and relay are empty, and neither they nor the store wait.
fn until_well(network: &Network) {
    for name in ["station", "relay"] {
        network.until(name, "station", |status| {
            (status["spool"]["blocks"] == 0 && status["spool"]["state"] == "ok").then_some(())
        });
    }
    network.until("relay", "centre", |status| (status["store"]["state"] == "ok").then_some(()));
}

/// A relay whose centre is away fills its spool, then its store, and then the station keeps its
/// data. When the centre is back, everything arrives once. The first contact fits into the spool,
/// the second one begins there and waits in the store for the rest, and the third one has no room
/// in either.
#[test]
fn a_relay_with_a_full_spool_holds_the_station_back_and_goes_on_when_there_is_room() {
    const FRAMES: u64 = 2_500;
    let mut network = Network::of(&["station", "relay", "centre"]);
    network.write("relay", &["station"], &["centre"], &format!("{RELAYED}{SMALL}"));
    network.write("centre", &["relay"], &[], "");
    network.start("relay");
    for (before, name) in ["1", "2", "3"].into_iter().enumerate() {
        let channel = downlink(&network, name, FRAMES);
        network.write("station", &[], &["relay"], &channel);
        network.start("station");
        if name == "3" {
            break;
        }
        // The relay has it whole before the next one begins.
        network.until("relay", "centre", |status| {
            let contacts = status["contacts"].as_array()?;
            let is_whole = |one: &&Value| one["frames"] == FRAMES && one["state"] != "open";
            (contacts.iter().filter(is_whole).count() > before).then_some(())
        });
        network
            .until("station", "station", |status| (status["spool"]["blocks"] == 0).then_some(()));
        network.kill("station");
    }
    let is_full = |network: &Network| {
        network.until("relay", "station", |status| {
            let alarms = status["alarms"].to_string();
            let is_told = alarms.contains("the spool is nearly full") && alarms.contains("centre");
            (is_told && status["spool"]["state"] == "full").then_some(())
        });
        network
            .until("relay", "centre", |status| (status["store"]["state"] == "full").then_some(()));
        // What the relay has no room for stays here.
        network.until("station", "station", |status| {
            (status["spool"]["blocks"].as_u64() > Some(2)).then_some(())
        });
    };
    is_full(&network);
    network.kill("relay");
    network.start("relay");
    is_full(&network);
    network.start("centre");
    let contacts = network.until("centre", "centre", |status| {
        let contacts = status["contacts"].as_array()?;
        let is_done = contacts.len() == 3 && contacts.iter().all(|one| one["state"] == "done");
        is_done.then(|| contacts.clone())
    });
    contacts.iter().for_each(|contact| assert_whole(contact, FRAMES));
    until_well(&network);
}

/// Nothing of a contact leaves the store before it is passed on as a whole. Regression: a relay
/// with a smaller store asked for free space, which would not have helped.
#[test]
fn a_contact_larger_than_the_store_of_a_relay_says_so_and_goes_on_when_that_is_raised() {
    const FRAMES: u64 = 8_000;
    let mut network = Network::of(&["station", "relay", "centre"]);
    let channel = downlink(&network, "1", FRAMES);
    network.write("station", &[], &["relay"], &channel);
    network.write("relay", &["station"], &["centre"], &format!("{RELAYED}{SMALL}"));
    network.write("centre", &["relay"], &[], "");
    ["centre", "relay", "station"].into_iter().for_each(|name| network.start(name));
    network.until("relay", "centre", |status| {
        let alarms = status["alarms"].to_string();
        let is_told = alarms.contains("stations are paused: 1 contacts that have not ended take");
        (is_told && alarms.contains("raise max_size in [store]")).then_some(())
    });
    let raised = SMALL.replace("[store]\nmax_size = \"4 MiB", "[store]\nmax_size = \"64 MiB");
    network.write("relay", &["station"], &["centre"], &format!("{RELAYED}{raised}"));
    network.running["relay"].signal(Signal::HUP);
    assert_whole(&network.until("centre", "centre", contact("done")), FRAMES);
    until_well(&network);
}

/// What began to be passed on is passed on to its end; the next contact is not.
#[test]
fn a_subscription_that_is_removed_in_mid_contact_takes_no_further_one() {
    let mut network = Network::of(&["station", "relay", "centre"]);
    network.write("station", &[], &["relay"], STDIN);
    network.write("relay", &["station"], &["centre"], RELAYED);
    network.write("centre", &["relay"], &[], "");
    ["centre", "relay"].into_iter().for_each(|name| network.start(name));
    let (input, mut downlink) = std::io::pipe().unwrap();
    network.start_from("station", input);
    let bytes = std::fs::read(recording(DAMAGED)).unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    downlink.write_all(first).unwrap();
    network.until("centre", "centre", |status| (frames(status) > 0).then_some(()));
    network.write("relay", &["station"], &["centre"], "");
    network.running["relay"].signal(Signal::HUP);
    let reloaded = || network.logs().contains("configuration reloaded").then_some(());
    until(reloaded, || network.logs());
    downlink.write_all(rest).unwrap();
    drop(downlink);
    let whole = network.until("centre", "centre", contact("done"));
    assert_eq!(whole["frames_sha256"], expected(DAMAGED)["good_frames_sha256"], "{whole:#}");
    // The next contact ends at the relay, also after that was killed.
    network.kill("station");
    let (input, mut downlink) = std::io::pipe().unwrap();
    network.start_from("station", input);
    downlink.write_all(&bytes).unwrap();
    drop(downlink);
    let done = |network: &Network| {
        network.until("relay", "centre", |status| {
            let contacts = status["contacts"].as_array()?;
            let is_done = |one: &Value| one["state"] == "done" && one["to"].is_null();
            contacts.iter().rev().find(|one| is_done(one)).cloned()
        })
    };
    let second = done(&network);
    assert_eq!(second["frames_sha256"], whole["frames_sha256"], "{second:#}");
    network.kill("relay");
    network.start("relay");
    network.until("relay", "station", |status| {
        let is_open = status["destinations"][0]["line"]["state"] == "open";
        (is_open && status["spool"]["blocks"] == 0).then_some(())
    });
    network.until("centre", "centre", contact("done"));
}
