//! Relays: contacts go from a station over one or two of them to a centre while they still come in,
//! whichever node is killed; a ring of relays is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::recordings::{DAMAGED, expected, recording};
use serde_json::Value;
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
        let place = |name: &&'static str| {
            (*name, (node::make_key(name, folder.path()), node::free_address()))
        };
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
        let ask = ["status", "--json", "--config", &format!("{name}.toml")].map(str::to_owned);
        let ask = ask.each_ref().map(String::as_str);
        let look = || {
            let answer: Value = serde_json::from_slice(&run(&ask, self.at()).stdout).ok()?;
            probe(answer.get(part)?)
        };
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
        alarms.map(|alarm| alarm.as_str().unwrap().to_owned()).collect()
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
