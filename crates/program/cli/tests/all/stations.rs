//! Overlapping contacts of several stations: joined frame by frame in the products of time windows,
//! and in later versions of the products of each contact.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::recording;
use serde_json::Value;
use skyhaul_level0::construction::ConstructionRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const RECORDING: &str = "npp.20241206T173815.dat";
const CADU: usize = 1_024;
const IMAGER: &str = "viirs-science";

type Made = BTreeMap<String, Value>;

/// A centre and the stations `north`, `south` and `whole`, of which each plays its own recording.
struct Network {
    folder: tempfile::TempDir,
    key: String,
    address: String,
    centre: Running,
}

impl Network {
    /// A centre that makes products of windows too.
    fn with(products: &str) -> Self {
        Self::making(&format!("time = true\nwait = \"10 min\"\n{products}"))
    }

    fn making(products: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let key = printed(&["keygen", "c.key"], at).trim().to_owned();
        let mut centre =
            "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[[listen]]\nbind = \
            \"127.0.0.1:0\"\n"
                .to_owned();
        for name in ["north", "south", "whole"] {
            let key = printed(&["keygen", &format!("{name}.key")], at).trim().to_owned();
            centre += &format!("[[peer]]\nname = \"{name}\"\nfingerprints = [\"{key}\"]\n");
        }
        centre += &format!("[products]\ndir = \"products\"\n{products}");
        std::fs::write(at.join("centre.toml"), centre).unwrap();
        let (centre, address) = Self::start(at);
        let network = Self { key, address, centre, folder };
        network.record();
        network
    }

    fn start(at: &Path) -> (Running, String) {
        let centre = Running::start(&["run", "centre.toml"], at);
        let address = status(at, |status| {
            Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
        });
        (centre, address)
    }

    /// Kills the centre as a power cut would, and starts it again.
    fn kill(&mut self) {
        self.centre.kill();
        (self.centre, self.address) = Self::start(self.folder.path());
    }

    /// Writes what each station receives. Neither `north` nor `south` has every frame, and the
    /// frames that only one of them has do not make whole packets.
    fn record(&self) {
        let whole = std::fs::read(recording(RECORDING)).unwrap();
        let without = |first: usize| {
            let mut bytes = whole.clone();
            for cadu in bytes.chunks_mut(CADU).skip(first).step_by(4) {
                cadu[8..700].iter_mut().for_each(|byte| *byte ^= 0x5A);
            }
            bytes
        };
        for (name, bytes) in
            [("north", without(4)), ("south", without(6)), ("whole", whole.clone())]
        {
            std::fs::write(self.folder.path().join(format!("{name}.dat")), bytes).unwrap();
        }
    }

    /// Lets a station play its recording until the centre has it.
    fn play(&self, name: &str) {
        let config = format!(
            "[node]\nname = \"{name}\"\nkey = \"{name}.key\"\nstate = \"{name}\"\n\
            [[destination]]\nto = \"node:c\"\n[[peer]]\nname = \
            \"c\"\n\
             addresses = [\"{}\"]\nfingerprints = [\"{}\"]\n[[channel]]\nname = \"x\"\ninput = \
             \"file:{name}.dat\"\n",
            self.address, self.key
        );
        let file = format!("{name}.toml");
        std::fs::write(self.folder.path().join(&file), config).unwrap();
        let station = Running::start(&["run", &file, "--until-sent"], self.folder.path());
        assert_eq!(station.end().code, Some(0));
    }

    /// Waits until `enough` accepts the newest versions of the window products, and returns them by
    /// product.
    fn made(&self, enough: impl Fn(&Made) -> bool) -> Made {
        status(self.folder.path(), |status| {
            let made = status["assembled"].as_array()?;
            let is_over = made.iter().all(|one| one["state"] == "made");
            let name = |one: &Value| one["product"].as_str().unwrap_or_default().to_owned();
            let of_windows = made.iter().filter(|one| one["contact"].is_null());
            let made = of_windows.map(|one| (name(one), one.clone())).collect();
            (is_over && enough(&made)).then_some(made)
        })
    }

    /// The same, when the product of the imager is of this many contacts.
    fn made_of(&self, contacts: u64) -> Made {
        self.made(|made| made.get(IMAGER).is_some_and(|one| one["contacts"] == contacts))
    }

    /// Waits until nothing more is to be made and `enough` accepts the newest versions of the
    /// products of a contact. Returns them by product.
    fn versions(&self, station: &str, enough: impl Fn(&Made) -> bool) -> Made {
        status(self.folder.path(), |status| {
            let name = |one: &Value| one["product"].as_str().unwrap_or_default().to_owned();
            let made = status["assembled"].as_array()?;
            let is_over = made.iter().all(|one| one["state"] == "made");
            let is_its = |one: &&Value| {
                one["contact"]
                    .as_str()
                    .is_some_and(|contact| contact.starts_with(&format!("{station}-")))
            };
            let made: Made =
                made.iter().filter(is_its).map(|one| (name(one), one.clone())).collect();
            (is_over && enough(&made)).then_some(made)
        })
    }

    /// The first versions of the products of a station's contact.
    fn first(&self, station: &str) -> Vec<Value> {
        status(self.folder.path(), |status| {
            let is_done = |one: &&Value| one["station"] == *station && one["state"] == "done";
            let contact = status["contacts"].as_array()?.iter().find(is_done)?;
            contact["products"].as_array().cloned()
        })
    }

    fn account(&self, product: &Value) -> Value {
        let path = product["path"].as_str().unwrap().replace("01.PDS", "00.json");
        serde_json::from_slice(&std::fs::read(self.folder.path().join(path)).unwrap()).unwrap()
    }
}

#[track_caller]
fn status<T>(at: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    let look = || node::part("centre.toml", at).and_then(|status| probe(&status));
    until(look, || text(&run(&["status", "--config", "centre.toml"], at).stdout))
}

fn digests(made: &Made) -> BTreeMap<&String, &Value> {
    made.iter().map(|(name, one)| (name, &one["sha256"])).collect()
}

fn count(of: &Value, what: &str) -> u64 {
    of[what].as_u64().unwrap()
}

/// The products of a window for a station that received everything: as many as those of its
/// contact.
fn heard() -> Made {
    let network = Network::with("");
    network.play("whole");
    let products = status(network.folder.path(), |status| {
        let contact =
            status["contacts"].as_array()?.iter().find(|contact| contact["state"] == "done")?;
        Some(contact["products"].as_array()?.len())
    });
    network.made(|made| made.len() == products)
}

#[test]
fn packets_split_over_several_stations_are_complete_in_any_order_of_the_stations() {
    let heard = heard();
    for order in [["north", "south"], ["south", "north"]] {
        let network = Network::with("");
        network.play(order[0]);
        let one = network.made_of(1).remove(IMAGER).unwrap();
        network.play(order[1]);
        let joined = network.made(|made| digests(made) == digests(&heard));
        let two = &joined[IMAGER];
        assert_eq!(
            count(two, "packets"),
            count(&one, "packets") + count(two, "added"),
            "{order:?}"
        );
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
fn contacts_are_not_joined_if_the_product_says_so() {
    let network = Network::with("select = false\n");
    network.play("north");
    network.made_of(1);
    network.play("south");
    let apart = network.made_of(2).remove(IMAGER).unwrap();
    let account = network.account(&apart);
    assert!(
        account["contacts"].as_array().unwrap().iter().all(|contact| contact["joined"].is_null())
    );
    network.play("whole");
    let whole = network.made_of(3).remove(IMAGER).unwrap();
    assert!(
        count(&apart, "packets") < count(&whole, "packets"),
        "frames of a packet lie at both stations"
    );
}

/// The digests of packet files.
fn files<'a>(products: impl IntoIterator<Item = &'a Value>) -> BTreeSet<&'a str> {
    products.into_iter().map(|product| product["sha256"].as_str().unwrap()).collect()
}

/// The products of a contact that received everything.
fn whole() -> Vec<Value> {
    let network = Network::making("");
    network.play("whole");
    network.first("whole")
}

#[test]
fn the_products_of_each_contact_are_completed_from_overlapping_contacts() {
    let whole = whole();
    let network = Network::making(
        "[[destination]]\nname = \"fast\"\nto = \"folder:fast\"\n[[destination]]\nname = \
         \"whole\"\nto = \"folder:whole\"\n[[subscription]]\nof = \"products\"\nname = \
         \"each\"\nto = \"fast\"\nversions = \"all\"\n[[subscription]]\nof = \
         \"products\"\nname = \"best\"\nto = \"whole\"\npatience = \"6 h\"\n",
    );
    network.play("north");
    let first = network.first("north");
    assert!(
        files(&first).is_disjoint(&files(&whole)),
        "either station lost frames of every product"
    );
    network.play("south");
    for (station, other) in [("north", "south"), ("south", "north")] {
        let second = network.versions(station, |made| files(made.values()) == files(&whole));
        for product in second.values() {
            assert_eq!(
                (count(product, "version"), count(product, "contacts")),
                (2, 2),
                "{product}"
            );
            let account = network.account(product);
            assert_eq!(account["accounting"]["balanced"], true);
            let named = |at: usize| account["contacts"][at]["station"].as_str().unwrap().to_owned();
            assert_eq!(
                (named(0), named(1)),
                (station.to_owned(), other.to_owned()),
                "its own first"
            );
            let replaces = &account["product"]["replaces"];
            assert_eq!((count(replaces, "version"), &replaces["added"]), (1, &product["added"]));
            assert!(count(product, "added") > 0, "{product}");
            // Only the other station delivered the missing frames: at least one in four.
            let runs = replaces["frames"].as_array().unwrap();
            let frames: u64 = runs.iter().map(|run| count(run, "frames")).sum();
            assert_eq!(frames, count(&account["contacts"][1]["joined"], "chosen"));
            let of = |at: usize| count(&account["contacts"][at]["joined"], "only_here");
            assert!(of(0) > 100 && of(1) > 100);
        }
        let record = second[IMAGER]["path"].as_str().unwrap().replace("01.PDS", "00.PDS");
        let record = std::fs::read(network.folder.path().join(record)).unwrap();
        assert_eq!(ConstructionRecord::parse(&record).unwrap().sessions.len(), 2);
    }
    // The consumer of complete products got only those. The consumer of early products got both,
    // each version of each contact once.
    status(network.folder.path(), |status| {
        let all = status["deliveries"].as_array()?;
        let of = |consumer: &str, state: &str| {
            let its =
                all.iter().filter(|one| one["destination"] == *consumer && one["state"] == *state);
            its.map(|one| count(one, "version")).collect::<Vec<_>>()
        };
        let versions = |second: usize| {
            of("fast", "accepted").iter().filter(|one| **one == 2).count() == second
        };
        let is_over = versions(2 * whole.len()) && of("fast", "accepted").len() == 4 * whole.len();
        let complete = of("whole", "accepted").len() + of("whole", "waiting").len();
        (is_over
            && complete == 2 * whole.len()
            && of("whole", "replaced") == vec![1; 2 * whole.len()])
        .then_some(())
    });
}

/// A kill while contacts are joined, and a third contact that arrives meanwhile: the planned job is
/// done as planned, and what came later makes a version of its own.
#[test]
fn a_kill_and_a_third_contact_while_contacts_are_joined_change_nothing() {
    let whole = whole();
    let mut network = Network::making("");
    let work = network.folder.path().join("products/.assembly.work");
    network.play("north");
    network.play("south");
    let mut kills = 0;
    let is_over = |network: &Network| {
        let status = node::part("centre.toml", network.folder.path()).unwrap_or_default();
        let is_made = |one: &Value| one["state"] == "made";
        let all = status["assembled"].as_array().cloned().unwrap_or_default();
        !all.is_empty() && all.iter().all(is_made)
    };
    // Whenever the job is seen at work, at any point of it, up to five times.
    while kills < 5 {
        let state = || if work.exists() { Some(true) } else { is_over(&network).then_some(false) };
        if !until(state, || "the job neither goes nor is done".to_owned()) {
            break;
        }
        network.kill();
        kills += 1;
    }
    println!("{kills} kills");
    network.play("whole");
    let versions =
        |station| network.versions(station, |made| files(made.values()).is_subset(&files(&whole)));
    // The job of `north` comes first: it was planned before it was seen at work. That of `south`
    // may be planned after the third contact came.
    for (station, contacts) in [("north", 2..=2), ("south", 2..=3)] {
        let second = versions(station);
        let is_right =
            |one: &Value| count(one, "version") == 2 && contacts.contains(&count(one, "contacts"));
        assert!(second.values().all(is_right), "{station}: {second:?}");
    }
    assert!(versions("whole").is_empty(), "it lacks nothing");
    let names = || {
        let folder = std::fs::read_dir(network.folder.path().join("products")).unwrap();
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    // The third contact may have products of its own under way.
    let is_tidy = || Some(names()).filter(|names| names.iter().all(|it| !it.starts_with('.')));
    let names = until(is_tidy, || format!("{:?}", names()));
    let records = names.iter().filter(|name| name.ends_with("00.PDS")).count();
    // The first of all three contacts, and the second of two of them.
    assert_eq!(records, 5 * whole.len(), "{names:?}");
}
