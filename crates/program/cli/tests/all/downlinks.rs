//! Generated downlinks of kinds that have no recordings, from the station to the products:
//! parity-check codes, and frames of variable length.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::printed;
use crate::support::site::Site;
use serde_json::{Map, Value};
use skyhaul_ccsds::packet::{Header, Packets};
use std::path::Path;

/// A mission file with these frames and this coding.
fn mission(frame: &str, coding: &str) -> String {
    format!(
        "name = \"own\"\ntitle = \"Own\"\nscids = [77]\n[frame]\n{frame}\n[coding]\n{coding}\n\
         [[time]]\napids = [\"100-103\"]\ncode = \"cds8\"\n[[product]]\nname = \"own\"\n"
    )
}

/// Generates a downlink of the mission in `own.toml`. Returns what a receiver can recover from it.
fn generate(folder: &Path, flags: &[&str]) -> Value {
    let arguments = ["generate", "--mission", "own.toml", "--output", "pass.dat"];
    printed(&[&arguments[..], flags].concat(), folder);
    serde_json::from_slice(&std::fs::read(folder.join("pass.truth.json")).unwrap()).unwrap()
}

/// The packets of each application in the files below a folder.
fn applications(folder: &Path, found: &mut Map<String, Value>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            applications(&path, found);
        } else if path
            .extension()
            .is_none_or(|extension| extension != "json" && extension != "cadu")
        {
            let bytes = std::fs::read(&path).unwrap();
            let mut packets = Packets::new(&bytes);
            for (header, _) in &mut packets {
                let Header::Space(header) = header else { panic!("{}", path.display()) };
                let count = found.entry(header.apid.value().to_string()).or_insert(0.into());
                *count = (count.as_u64().unwrap() + 1).into();
            }
            assert!(packets.rest().is_empty(), "{}", path.display());
        }
    }
}

/// Asserts that a station receives the downlink from its channel, and that the centre has every
/// frame and packet of the truth.
fn assert_delivered(site: &Site, truth: &Value, channel: &str) -> Value {
    let keys = "[[channel]]\nname = \"x\"\ninput = \"file:pass.dat\"\nmission = \"own.toml\"\n";
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{keys}{channel}"));
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["state"] == "done").cloned()
    });
    assert_eq!(contact["frames"], truth["good_frames"]);
    assert_eq!(contact["frames_sha256"], truth["good_frames_sha256"]);
    let mut sent = Map::new();
    for channel in truth["vcids"].as_object().unwrap().values() {
        for (apid, count) in
            channel["apids"].as_object().unwrap().iter().filter(|(apid, _)| *apid != "2047")
        {
            assert!(
                sent.insert(apid.clone(), count.clone()).is_none(),
                "an application has one channel"
            );
        }
    }
    let mut found = Map::new();
    applications(&site.folder().join("products"), &mut found);
    assert_eq!(found, sent);
    assert!(sent.values().any(|count| count.as_u64() > Some(100)), "{sent:?}");
    contact
}

#[test]
fn a_downlink_with_an_ldpc_code_goes_from_soft_symbols_to_the_packet_file() {
    let site = Site::with("form = \"packets\"\n");
    let code =
        "randomiser = \"ccsds255\"\n[coding.ldpc]\ncode = \"ar4ja\"\nrate = \"1/2\"\nk = 4096\n";
    let text = mission("kind = \"tm\"\nlength = 512", code);
    std::fs::write(site.folder().join("own.toml"), text).unwrap();
    let truth = generate(site.folder(), &["--symbols", "soft", "--ebn0", "2.6", "--frames", "400"]);
    assert!(truth["symbols"]["wrong_symbols"].as_u64() > Some(10_000), "{truth}");
    assert_delivered(&site, &truth, "format = \"soft\"\n");
}

#[test]
fn variable_length_frames_go_from_the_station_to_the_packet_file() {
    let site = Site::with("form = \"packets\"\ncadu_files = true\n");
    let frame = "kind = \"uslp\"\nlength = 900\nvariable_length = true\ntruncated_length = \
                40\ninsert_zone = 4\nfecf = true";
    std::fs::write(site.folder().join("own.toml"), mission(frame, "randomiser = \"none\""))
        .unwrap();
    let truth = generate(site.folder(), &["--frames", "2000"]);
    let contact = assert_delivered(&site, &truth, "format = \"frames\"\n");
    assert_eq!(contact["set_aside"], 0, "{contact}");
    // After markers of their own, as other frames, and otherwise unchanged.
    let mut names = std::fs::read_dir(site.folder().join("products"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let cadus =
        names.find(|path| path.extension().is_some_and(|extension| extension == "cadu")).unwrap();
    let [cadus, sent] =
        [cadus, site.folder().join("pass.dat")].map(|path| std::fs::read(path).unwrap());
    let frames = truth["good_frames"].as_u64().unwrap() as usize;
    assert_eq!(cadus.len(), sent.len() + 4 * frames);
    let gaps = printed(&["gaps", "--config", "centre.toml", "--json"], site.folder());
    let gaps: Value = serde_json::from_str(&gaps).unwrap();
    assert_eq!(gaps["gaps"], Value::Array(Vec::new()), "frames that are not counted are no gaps");
}
