//! Several inputs of one downlink: the better copy of each frame, in order and once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{printed, run};
use crate::support::recordings::{DAMAGED, expected, recording};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;

/// The recording from which both recordings below were made.
const CLEAN: &str = "npp.20241206T173815.dat";
const IMPAIRED: &str = "npp_sync_impaired.dat";
const CADU: usize = 1_024;
/// Written at once to each of two connections.
const PIECE: usize = 16 << 10;

/// The only contact, with every frame of the clean recording, each once.
#[track_caller]
fn assert_whole(site: &Site) -> Value {
    let contacts = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().any(|contact| contact["state"] == "done").then(|| contacts.clone())
    });
    let [contact] = &contacts[..] else { panic!("{contacts:?}") };
    let known = expected(CLEAN);
    assert_eq!(contact["frames"], known["frames_total"], "{contact}");
    assert_eq!(contact["frames_sha256"], known["frames_sha256"], "{contact}");
    assert_eq!(contact["unaccounted"], 0);
    contact.clone()
}

fn two_files(keys: &str) -> String {
    let [one, other] = [DAMAGED, IMPAIRED].map(|name| recording(name).display().to_string());
    format!(
        "[[channel]]\nname = \"x\"\n{keys}inputs = [{{ input = \"file:{one}\", name = \"north\" \
        }}, \"file:{other}\"]\n"
    )
}

/// The account of the contact in the newest product's file beside it.
fn account(site: &Site, contact: &Value) -> Value {
    let path = contact["products"][0]["path"].as_str().unwrap().replace("01.PDS", "00.json");
    let account = std::fs::read(site.folder().join(path)).unwrap();
    serde_json::from_slice::<Value>(&account).unwrap()["contacts"][0].clone()
}

#[test]
fn two_recordings_damaged_in_different_ways_make_one_whole_contact() {
    let site = Site::new();
    site.write(&two_files(""));
    assert_eq!(site.start().end().code, Some(0));
    let contact = assert_whole(&site);
    let of = |name: &str, what: &str| contact["inputs"][name][what].as_u64().unwrap();
    assert_eq!(of("north", "chosen") + of("2", "chosen"), contact["frames"].as_u64().unwrap());
    assert!(of("north", "only_here") > 0 && of("2", "only_here") > 0, "{contact}");
    let account = account(&site, &contact);
    assert_eq!(account["inputs"][0]["name"], "north");
    assert_eq!(account["inputs"][1]["only_here"], of("2", "only_here"));
    assert!(account["inputs"][1]["source"].as_str().unwrap().contains(IMPAIRED), "{account}");
}

#[test]
fn a_killed_station_resumes_its_files_and_loses_and_duplicates_no_frame() {
    let site = Site::new();
    site.write(&two_files("rate = \"8 Mbit/s\"\n"));
    let station = site.start_to_stay();
    let frames = site
        .until(|status| status["channels"][0]["frames"].as_u64().filter(|frames| *frames > 300));
    station.signal(rustix::process::Signal::KILL);
    station.end();
    assert!(frames < expected(CLEAN)["frames_total"].as_u64().unwrap(), "killed in time");
    site.write(&two_files(""));
    assert_eq!(site.start().end().code, Some(0));
    let contact = assert_whole(&site);
    assert!(contact["inputs"]["north"]["only_here"].as_u64().unwrap() > 0, "{contact}");
}

#[test]
fn a_contact_is_complete_although_one_live_input_dies_and_one_never_answers() {
    let site = Site::new();
    // Nobody listens there. One thread writes to both others, and the system may delay it: their
    // frames wait for a long time.
    site.write(
        "[[channel]]\nname = \"x\"\nselect_window = \"10 s\"\nrecord_raw = true\ninputs = [\
         { input = \"tcp-listen:127.0.0.1:0\", name = \"north\" }, { input = \
         \"tcp-listen:127.0.0.1:0\", name = \"south\" }, \
         { input = \"tcp:127.0.0.1:1\", name = \"far\" }]\n",
    );
    let station = site.start_to_stay();
    let connect = |at: usize| {
        let address = site.until(|status| {
            Some(status["channels"][0]["inputs"][at]["address"].as_str()?.to_owned())
        });
        TcpStream::connect(address).unwrap()
    };
    let (mut north, mut south) = (connect(0), connect(1));
    let clean = std::fs::read(recording(CLEAN)).unwrap();
    let half = clean.len() / CADU / 2 * CADU;
    let (mut one, mut other) = (clean.clone(), clean);
    // A stretch of it lies in two CADUs at the most.
    let destroy = |bytes: &mut [u8], first: usize| {
        for cadu in bytes.chunks_mut(CADU).skip(first).step_by(4) {
            cadu[8..700].iter_mut().for_each(|byte| *byte ^= 0x5A);
        }
    };
    // The first input ends half-way. Until then, each has frames that the other does not have.
    destroy(&mut one, 4);
    destroy(&mut other[..half - 10 * CADU], 6);
    for (one, other) in one[..half].chunks(PIECE).zip(other[..half].chunks(PIECE)) {
        north.write_all(one).unwrap();
        south.write_all(other).unwrap();
    }
    drop(north);
    site.until(|status| (status["channels"][0]["inputs"][0]["state"] == "waiting").then_some(()));
    let shown = site.shown("station.toml");
    assert!(shown.contains("north") && shown.contains("only here"), "{shown}");
    south.write_all(&other[half..]).unwrap();
    drop(south);
    let contact = assert_whole(&site);
    let only_here = |name: &str| contact["inputs"][name]["only_here"].as_u64().unwrap();
    assert!(
        only_here("north") > 100 && only_here("south") > 200 && only_here("far") == 0,
        "{contact}"
    );
    // The bytes of each input are recorded separately.
    site.until(|status| {
        let recorded = status["channels"][0]["inputs"][0]["recording"]["bytes"].as_u64()?;
        (recorded == half as u64).then_some(())
    });
    let replayed = printed(
        &["replay", "spool", "--channel", "x@north", "--rate", "max", "--output", "north.dat"],
        site.folder(),
    );
    assert!(!replayed.is_empty());
    assert_eq!(std::fs::read(site.folder().join("north.dat")).unwrap(), one[..half]);
    station.signal(rustix::process::Signal::TERM);
    assert_eq!(station.end().code, Some(0));
}

#[test]
fn inputs_that_change_to_another_downlink_give_one_contact_for_each() {
    let site = Site::new();
    let next = "aqua.20241206T175646.dat";
    for (name, first) in [("a.dat", DAMAGED), ("b.dat", IMPAIRED)] {
        let both = [first, next].map(|name| std::fs::read(recording(name)).unwrap());
        std::fs::write(site.folder().join(name), both.concat()).unwrap();
    }
    site.write("[[channel]]\nname = \"x\"\ninputs = [\"file:a.dat\", \"file:b.dat\"]\n");
    assert_eq!(site.start().end().code, Some(0));
    let contacts = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let done = contacts.iter().filter(|contact| contact["state"] == "done").count();
        (done >= 2).then(|| contacts.clone())
    });
    assert_eq!(contacts.len(), 2, "{contacts:?}");
    for (contact, name) in contacts.iter().zip([CLEAN, next]) {
        assert_eq!(contact["frames"], expected(name)["frames_total"], "{contact}");
        assert_eq!(contact["frames_sha256"], expected(name)["frames_sha256"], "{contact}");
    }
    assert_eq!(
        (&contacts[0]["mission"], &contacts[1]["mission"]),
        (&"suomi-npp".into(), &"aqua".into())
    );
}

#[test]
fn a_list_with_one_input_gives_the_same_products_as_the_input_alone() {
    let path = recording(DAMAGED).display().to_string();
    let products = |input: &str| {
        let site = Site::new();
        site.write(&format!("[[channel]]\nname = \"x\"\n{input}\n"));
        assert_eq!(site.start().end().code, Some(0));
        let contact = site.assert_whole();
        assert!(contact["inputs"].is_null());
        contact["products"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["sha256"].clone())
            .collect::<Vec<_>>()
    };
    let alone = products(&format!("input = \"file:{path}\""));
    assert_eq!(alone, products(&format!("inputs = [\"file:{path}\"]")));
}

#[test]
fn inputs_that_contradict_each_other_are_refused_with_the_line() {
    let site = Site::new();
    for (inputs, words) in [
        ("input = \"stdin\"\ninputs = [\"stdin\"]", "write only one of them"),
        ("inputs = [\"udp:127.0.0.1:9\", \"udp:127.0.0.1:9\"]", "write each once"),
        ("inputs = [\"file:a.dat\", \"udp:127.0.0.1:9\"]", "a channel for the file"),
    ] {
        site.write(&format!("[[channel]]\nname = \"x\"\n{inputs}\n"));
        let checked = run(&["config", "check", "station.toml"], site.folder());
        assert_refused(&checked, 2, &["channel `x`", words, "station.toml:11"]);
    }
}
