//! Contacts of several stations that overlap, through the program: joined frame by frame in the products of windows of time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use support::patience::until;
use support::process::{Running, printed, run};
use support::recordings::recording;

const RECORDING: &str = "npp.20241206T173815.dat";
const CADU: usize = 1_024;
const IMAGER: &str = "viirs-science";

type Made = BTreeMap<String, Value>;

/// A centre and the stations `north`, `south` and `whole`, of which each plays its own recording.
struct Network {
    folder: tempfile::TempDir,
    key: String,
    address: String,
    _centre: Running,
}

impl Network {
    fn with(products: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let key = printed(&["keygen", "c.key"], at).trim().to_owned();
        let mut centre =
            "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[listen]\nbind = \"127.0.0.1:0\"\n"
                .to_owned();
        for name in ["north", "south", "whole"] {
            let key = printed(&["keygen", &format!("{name}.key")], at).trim().to_owned();
            centre += &format!("[[peer]]\nname = \"{name}\"\nfingerprint = \"{key}\"\n");
        }
        centre += &format!("[products]\ndir = \"products\"\ntime = true\nwait = \"10 min\"\n{products}");
        std::fs::write(at.join("centre.toml"), centre).unwrap();
        let centre = Running::start(&["centre", "--config", "centre.toml"], at);
        let address = status(at, |status| {
            Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
        });
        let network = Self { key, address, _centre: centre, folder };
        network.record();
        network
    }

    /// What each station heard: neither of two every frame, nor what either had alone in whole packets.
    fn record(&self) {
        let whole = std::fs::read(recording(RECORDING)).unwrap();
        let without = |first: usize| {
            let mut bytes = whole.clone();
            for cadu in bytes.chunks_mut(CADU).skip(first).step_by(4) {
                cadu[8..700].iter_mut().for_each(|byte| *byte ^= 0x5A);
            }
            bytes
        };
        for (name, bytes) in [("north", without(4)), ("south", without(6)), ("whole", whole.clone())] {
            std::fs::write(self.folder.path().join(format!("{name}.dat")), bytes).unwrap();
        }
    }

    /// A station plays its recording, until the centre has it.
    fn play(&self, name: &str) {
        let config = format!(
            "[node]\nname = \"{name}\"\nkey = \"{name}.key\"\nstate = \"{name}\"\n[centre]\nname = \"c\"\n\
             address = \"{}\"\nfingerprint = \"{}\"\n[[channel]]\nname = \"x\"\ninput = \"file:{name}.dat\"\n",
            self.address, self.key
        );
        let file = format!("{name}.toml");
        std::fs::write(self.folder.path().join(&file), config).unwrap();
        let station = Running::start(&["station", "--config", &file, "--until-sent"], self.folder.path());
        assert_eq!(station.end().code, Some(0));
    }

    /// The newest versions of the products of windows, by product, once `enough` says so.
    fn made(&self, enough: impl Fn(&Made) -> bool) -> Made {
        status(self.folder.path(), |status| {
            let made = status["assembled"].as_array()?;
            let is_over = made.iter().all(|one| one["state"] == "made");
            let name = |one: &Value| one["product"].as_str().unwrap_or_default().to_owned();
            let made = made.iter().map(|one| (name(one), one.clone())).collect();
            (is_over && enough(&made)).then_some(made)
        })
    }

    /// The same, once the imager's product is of so many contacts.
    fn made_of(&self, contacts: u64) -> Made {
        self.made(|made| made.get(IMAGER).is_some_and(|one| one["contacts"] == contacts))
    }

    fn account(&self, product: &Value) -> Value {
        let path = product["path"].as_str().unwrap().replace("01.PDS", "00.json");
        serde_json::from_slice(&std::fs::read(self.folder.path().join(path)).unwrap()).unwrap()
    }
}

#[track_caller]
fn status<T>(at: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    let ask = |keys: &[&str]| run(&[&["status", "--config", "centre.toml"], keys].concat(), at).stdout;
    let look = || serde_json::from_slice(&ask(&["--json"])).ok().and_then(|status| probe(&status));
    until(look, || String::from_utf8_lossy(&ask(&[])).into_owned())
}

fn digests(made: &Made) -> BTreeMap<&String, &Value> {
    made.iter().map(|(name, one)| (name, &one["sha256"])).collect()
}

fn count(of: &Value, what: &str) -> u64 {
    of[what].as_u64().unwrap()
}

/// What a window has of a station that heard everything: as many products as its contact.
fn heard() -> Made {
    let network = Network::with("");
    network.play("whole");
    let products = status(network.folder.path(), |status| {
        let contact = status["contacts"].as_array()?.iter().find(|contact| contact["state"] == "done")?;
        Some(contact["products"].as_array()?.len())
    });
    network.made(|made| made.len() == products)
}

#[test]
fn packets_of_which_no_station_had_every_frame_come_whole_in_whatever_order_the_stations_come() {
    let heard = heard();
    for order in [["north", "south"], ["south", "north"]] {
        let network = Network::with("");
        network.play(order[0]);
        let one = network.made_of(1).remove(IMAGER).unwrap();
        network.play(order[1]);
        let joined = network.made(|made| digests(made) == digests(&heard));
        let two = &joined[IMAGER];
        assert_eq!(count(two, "packets"), count(&one, "packets") + count(two, "added"), "{order:?}");
        let account = network.account(two);
        assert_eq!(account["accounting"]["balanced"], true);
        let contacts = account["contacts"].as_array().unwrap();
        assert_eq!(contacts.len(), 2);
        for contact in contacts {
            let of = |what: &str| count(&contact["joined"], what);
            assert!(of("only_here") > 100 && of("chosen") >= of("only_here"), "{contact}");
            assert_eq!((of("late"), of("repeated")), (0, 0), "{contact}");
            let counted = ["chosen", "worse", "duplicates", "repeated", "late"].map(of);
            assert_eq!(of("frames"), counted.iter().sum::<u64>(), "{contact}");
        }
    }
}

#[test]
fn contacts_are_not_joined_where_that_is_not_wanted() {
    let network = Network::with("select = false\n");
    network.play("north");
    network.made_of(1);
    network.play("south");
    let apart = network.made_of(2).remove(IMAGER).unwrap();
    let account = network.account(&apart);
    assert!(account["contacts"].as_array().unwrap().iter().all(|contact| contact["joined"].is_null()));
    network.play("whole");
    let whole = network.made_of(3).remove(IMAGER).unwrap();
    assert!(count(&apart, "packets") < count(&whole, "packets"), "frames of a packet lie at both stations");
}
